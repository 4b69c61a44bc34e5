// Tasks of the DPU alone: it reads atoms, computes with them or only puts them
// elsewhere, and writes them.

#include <array>
#include <cstring>

#include "driver/rknpu/emulator/plain/plain_engine.h"
#include "driver/rknpu/emulator/plain/stages.h"

namespace rknnd::rknpu {
namespace {

constexpr uint16_t kSource = 0x5018, kTarget = 0x4020;

const std::byte* AtomAt(const ReaderSpec& spec, uint32_t s, uint32_t y,
                        uint32_t x, Access& access) {
  const int64_t offset =
      s * spec.surface_step + y * spec.line_step + int64_t{x} * kAtom;
  return access.Read(spec.base + static_cast<uint64_t>(offset), kAtom, kSource);
}

bool Copy(const std::byte* atom, uint64_t to, Access& access) {
  std::byte* const at = access.Write(to, kAtom, kTarget);
  if (at == nullptr) return false;
  std::memmove(at, atom, kAtom);
  return true;
}

// Calls `visit` with each atom's place in the order of the reader, until it
// says false or the task ends.
template <class Visit>
void ForEachAtom(const ReaderSpec& spec, Access& access, Visit visit) {
  for (uint32_t s = 0; s < spec.surfaces; ++s) {
    for (uint32_t y = 0; y < spec.height; ++y) {
      for (uint32_t x = 0; x < spec.width; ++x) {
        if (!access.GoesOn()) return;
        const std::byte* const atom = AtomAt(spec, s, y, x, access);
        if (atom == nullptr || !visit(atom, s, y, x)) return;
      }
    }
  }
}

void Compute(const FlightSpec& spec, const Tables& tables, Access& access) {
  PlainStages stages(spec.output, spec.reader.surfaces * kAtom, tables, access);
  ForEachAtom(spec.reader, access,
              [&](const std::byte* atom, uint32_t s, uint32_t y, uint32_t x) {
                std::array<int64_t, kAtom> values;
                for (uint32_t i = 0; i < kAtom; ++i) {
                  values[i] = static_cast<int8_t>(atom[i]);
                }
                return stages.Put(s, y, x, values.data(), nullptr);
              });
}

void Unpool(const FlightSpec& spec, Access& access) {
  const ReaderSpec& reader = spec.reader;
  const WriterSpec& writer = spec.output.writer;
  ForEachAtom(
      reader, access,
      [&](const std::byte* atom, uint32_t, uint32_t y, uint32_t x) {
        std::array<std::byte, kAtom> copy;
        std::memcpy(copy.data(), atom, kAtom);
        for (uint32_t j = 0; j < reader.window_height; ++j) {
          for (uint32_t i = 0; i < reader.window_width; ++i) {
            const int64_t offset =
                j * writer.surface_step + y * writer.line_step +
                int64_t{kAtom} * (x * reader.window_width + i);
            if (!Copy(copy.data(), writer.base + static_cast<uint64_t>(offset),
                      access)) {
              return false;
            }
          }
        }
        return true;
      });
}

// Sixteen atoms of pixels become sixteen of channels.
void ByteTranspose(const FlightSpec& spec, Access& access) {
  const WriterSpec& writer = spec.output.writer;
  std::array<std::array<std::byte, kAtom>, kAtom> group;
  uint32_t count = 0;
  ForEachAtom(
      spec.reader, access,
      [&](const std::byte* atom, uint32_t, uint32_t, uint32_t) {
        const uint32_t k = count % kAtom, g = count / kAtom;
        for (uint32_t c = 0; c < kAtom; ++c) group[c][k] = atom[c];
        ++count;
        if (k + 1 < kAtom) return true;
        for (uint32_t c = 0; c < kAtom; ++c) {
          const int64_t offset = (c / 8) * writer.line_step +
                                 (c % 8) * writer.surface_step +
                                 g * writer.group_step;
          if (!Copy(group[c].data(),
                    writer.base + static_cast<uint64_t>(offset), access)) {
            return false;
          }
        }
        return count < spec.reader.atoms;
      });
}

void AtomTranspose(const FlightSpec& spec, Access& access) {
  const WriterSpec& writer = spec.output.writer;
  ForEachAtom(
      spec.reader, access,
      [&](const std::byte* atom, uint32_t s, uint32_t y, uint32_t x) {
        const int64_t offset =
            s * writer.line_step + x * writer.surface_step + int64_t{y} * kAtom;
        return Copy(atom, writer.base + static_cast<uint64_t>(offset), access);
      });
}

}  // namespace

void RunPlainFlight(const FlightSpec& flight, const Tables& tables,
                    Access& access) {
  switch (flight.reader.flight) {
    case Flight::kCompute:
      return Compute(flight, tables, access);
    case Flight::kUnpool:
      return Unpool(flight, access);
    case Flight::kByteTranspose:
      return ByteTranspose(flight, access);
    case Flight::kAtomTranspose:
      return AtomTranspose(flight, access);
  }
}

}  // namespace rknnd::rknpu
