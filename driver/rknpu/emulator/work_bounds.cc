// See work_bounds.h.

#include "driver/rknpu/emulator/work_bounds.h"

namespace rknnd::rknpu {
namespace {

constexpr uint16_t kConvInput = 0x1020, kConvKernel = 0x1038,
                   kConvOutput = 0x3014, kReader = 0x500c, kPoolOutput = 0x6018;

}  // namespace

bool IsBounded(const ConvSpec& conv, Access& access) {
  const FeatureSpec& feature = conv.feature;
  const uint64_t bytes = BytesOf(conv.precision);
  const uint64_t channels =
      feature.interleaved != 0 ? feature.interleaved : feature.channels;
  const uint64_t kernels = conv.depthwise ? 1 : conv.kernels;
  return access.Holds(
             uint64_t{conv.width} * conv.height * conv.channels * bytes,
             kConvOutput) &&
         access.Holds(
             uint64_t{feature.width} * feature.height * channels * bytes,
             kConvInput) &&
         access.Holds(kernels * conv.taps() * feature.channels * bytes,
                      kConvKernel);
}

bool IsBounded(const FlightSpec& flight, Access& access) {
  const ReaderSpec& reader = flight.reader;
  return access.Holds(
      uint64_t{reader.width} * reader.height * reader.surfaces * kAtom,
      kReader);
}

bool IsBounded(const PoolSpec& pool, Access& access) {
  return access.Holds(
      uint64_t{pool.out_width} * pool.out_height * pool.surfaces * kAtom,
      kPoolOutput);
}

}  // namespace rknnd::rknpu
