// See report.h.

#include "driver/rknpu/emulator/report.h"

#include <algorithm>

namespace rknnd::rknpu {
namespace {

// One atom a clock is taken to go in, and one to come out.
void Close(uint64_t computing, TaskReport& report) {
  report.computing = computing;
  report.moving = std::max(report.bytes_read, report.bytes_written) / kAtom;
  report.cycles = std::max(report.computing, report.moving);
}

uint64_t Steps(uint64_t count, uint64_t at_once) {
  return (count + at_once - 1) / at_once;
}

// Of the coefficients and the operand of the output stages.
uint64_t OperandBytes(const OutputSpec& output, uint64_t atoms) {
  const uint64_t records = Steps(output.writer.channels, 8);
  uint64_t bytes = records * (output.bs.memory.record_bytes() +
                              output.bn.memory.record_bytes());
  if (output.ew.operand == Operand::kPixel) bytes += atoms * kAtom;
  if (output.ew.operand == Operand::kChannel) bytes += output.writer.channels;
  return bytes;
}

}  // namespace

void CountConv(const ConvSpec& conv, const OutputSpec& output,
               TaskReport& report) {
  const FeatureSpec& feature = conv.feature;
  const uint64_t pixels = uint64_t{conv.width} * conv.height;
  const uint64_t size = BytesOf(conv.precision);
  const uint64_t atoms = pixels * conv.channels * size / kAtom;
  const uint64_t window = uint64_t{conv.taps()} * feature.channels;
  const uint64_t there =
      feature.interleaved != 0 ? feature.interleaved : feature.channels;
  const uint64_t weights = window * (conv.depthwise ? 1 : conv.kernels) * size;
  report.macs = pixels * window * (conv.depthwise ? 1 : conv.kernels);
  report.bytes_read = uint64_t{feature.width} * feature.height * there * size +
                      weights + OperandBytes(output, atoms);
  report.bytes_written = atoms * kAtom;
  // 1024 multipliers of int8, half as many of float16: 32 channels with 32 or
  // 16 kernels; depthwise 64 channels.
  const uint64_t at_once = conv.precision == Precision::kHalf ? 16 : 32;
  const uint64_t computing =
      conv.depthwise ? pixels * conv.taps() * Steps(feature.channels, 64)
                     : pixels * conv.taps() * Steps(feature.channels, 32) *
                           Steps(conv.kernels, at_once);
  Close(computing, report);
}

void CountFlight(const FlightSpec& flight, TaskReport& report) {
  const ReaderSpec& reader = flight.reader;
  const uint64_t atoms =
      uint64_t{reader.width} * reader.height * reader.surfaces;
  const uint64_t copies = uint64_t{reader.window_width} * reader.window_height;
  report.bytes_read = atoms * kAtom + OperandBytes(flight.output, atoms);
  report.bytes_written = atoms * copies * kAtom;
  Close(atoms, report);
}

void CountPool(const PoolSpec& pool, TaskReport& report) {
  const uint64_t in = uint64_t{pool.width} * pool.height * pool.surfaces;
  const uint64_t out =
      uint64_t{pool.out_width} * pool.out_height * pool.surfaces;
  report.bytes_read = in * kAtom;
  report.bytes_written = out * kAtom;
  Close(out, report);
}

}  // namespace rknnd::rknpu
