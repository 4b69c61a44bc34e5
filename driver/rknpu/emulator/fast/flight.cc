// Flights of the fast engine (fast_engine.h): copies with another scale, sums
// and products of maps. Where every channel is treated alike the result is a
// function of one byte, made once for all 256 of them.

#include <algorithm>
#include <array>
#include <cstring>

#include "driver/rknpu/emulator/fast/extent.h"
#include "driver/rknpu/emulator/fast/fast_engine.h"
#include "driver/rknpu/emulator/fast/target.h"

namespace rknnd::rknpu::fast {
namespace {

constexpr size_t kChunk = 128;  // pixels

bool SamePlaces(const ReaderSpec& reader, const WriterSpec& writer) {
  return reader.base == writer.base && reader.line_step == writer.line_step &&
         reader.surface_step == writer.surface_step &&
         writer.group_step == writer.group * writer.surface_step;
}

// The values of all bytes, in the order of their bits.
std::array<int8_t, 256> AllBytes() {
  std::array<int8_t, 256> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<int8_t>(i);
  return bytes;
}

void Map(const std::array<int8_t, 256>& function, const std::byte* from,
         size_t count, std::byte* to) {
  for (size_t i = 0; i < count; ++i) {
    to[i] = static_cast<std::byte>(function[static_cast<size_t>(from[i])]);
  }
}

}  // namespace

bool FastEngine::RunFlight(const FlightSpec& flight, const Tables& tables,
                           Access& access) {
  const ReaderSpec& reader = flight.reader;
  const OutputSpec& output = flight.output;
  if (reader.flight != Flight::kCompute) return false;
  Target target;
  if (!target.Find(output, reader.surfaces, reader.height, reader.width,
                   access)) {
    return false;
  }
  const Extent source(reader.base,
                      {{reader.line_step, reader.height},
                       {reader.surface_step, reader.surfaces}},
                      int64_t{kAtom} * reader.width);
  const std::byte* const in = source.At(reader.base, false, access);
  const WriterSpec& writer = output.writer;
  const Extent written(
      writer.base,
      {{writer.line_step, writer.height},
       {writer.surface_step, std::min(writer.group, reader.surfaces)},
       {writer.group_step,
        (reader.surfaces + writer.group - 1) / writer.group}},
      int64_t{kAtom} * writer.width);
  if (in == nullptr || (source.Meets(written) && !SamePlaces(reader, writer)) ||
      !plan_.Make(output, reader.surfaces * kAtom, {128, 0}, 0, tables,
                  table_bytes_, kernels_, access)) {
    return !access.ok();
  }
  std::array<int8_t, 256> function = AllBytes();
  const bool maps = plan_.is_function_of_byte();
  if (maps) {
    const std::array<int8_t, 256> bytes = function;
    StageJob job;
    job.count = bytes.size() / kLanes;
    job.values = bytes.data();
    job.out = function.data();
    plan_.Run(0, job);
  }
  const bool copies = maps && function == AllBytes();
  operands_.resize(kChunk * kLanes);

  // Lines that follow each other are one.
  const int64_t packed = int64_t{kAtom} * reader.width;
  const bool joined =
      reader.line_step == packed && output.writer.line_step == packed &&
      (output.ew.operand != Operand::kPixel || output.ew.line_step == packed);
  const uint32_t lines = joined ? 1 : reader.height;
  const size_t pixels = size_t{reader.width} * (joined ? reader.height : 1);
  for (uint32_t s = 0; s < reader.surfaces; ++s) {
    for (uint32_t y = 0; y < lines; ++y) {
      const std::byte* const from =
          in + s * reader.surface_step + y * reader.line_step;
      std::byte* const to = target.out + Target::OffsetOf(output, s, y, 0);
      for (size_t x = 0; x < pixels; x += kChunk) {
        if (!access.GoesOn()) return true;
        const size_t count = std::min(kChunk, pixels - x);
        if (copies) {
          std::memmove(to + x * kAtom, from + x * kAtom, count * kAtom);
        } else if (maps) {
          Map(function, from + x * kAtom, count * kAtom, to + x * kAtom);
        } else {
          StageJob job;
          job.count = count;
          job.values = reinterpret_cast<const int8_t*>(from + x * kAtom);
          job.out = reinterpret_cast<int8_t*>(to + x * kAtom);
          if (output.ew.operand == Operand::kPixel) {
            job.operands = reinterpret_cast<const int8_t*>(
                target.OperandsOf(output.ew, s, y, static_cast<uint32_t>(x)));
          } else if (output.ew.operand == Operand::kChannel) {
            const std::byte* const operand =
                target.OperandsOf(output.ew, s, 0, 0);
            for (size_t i = 0; i < count; ++i) {
              std::memcpy(operands_.data() + i * kLanes, operand, kLanes);
            }
            job.operands = operands_.data();
          }
          plan_.Run(s, job);
        }
      }
    }
  }
  return true;
}

}  // namespace rknnd::rknpu::fast
