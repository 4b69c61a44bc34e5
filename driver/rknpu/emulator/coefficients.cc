// See coefficients.h.

#include "driver/rknpu/emulator/coefficients.h"

#include <cstddef>
#include <cstring>

namespace rknnd::rknpu {
namespace {

constexpr uint32_t kRecord = 8;  // channels

template <class T>
const std::byte* Append(const std::byte* from, std::vector<T>& to) {
  T values[kRecord];
  std::memcpy(values, from, sizeof(values));
  to.insert(to.end(), values, values + kRecord);
  return from + sizeof(values);
}

}  // namespace

Coefficients ReadCoefficients(const CoefficientSpec& spec, uint32_t channels,
                              uint16_t reg, Access& access) {
  Coefficients read;
  const uint32_t size = spec.record_bytes();
  if (size == 0) return read;
  const uint32_t records = (channels + kRecord - 1) / kRecord;
  const std::byte* at = access.Read(spec.base, uint64_t{records} * size, reg);
  for (uint32_t i = 0; at != nullptr && i < records; ++i) {
    if (spec.bias) at = Append(at, read.bias);
    if (spec.ow) at = Append(at, read.ow);
    if (spec.mul) at = Append(at, read.mul);
  }
  return read;
}

uint64_t PlaceOf(const OutputSpec& spec, uint32_t s, uint32_t y, uint32_t x) {
  const WriterSpec& writer = spec.writer;
  if (spec.by_lines) {
    s += y * writer.group;
    y = x;
    x = 0;
  }
  return writer.base +
         static_cast<uint64_t>((s / writer.group) * writer.group_step +
                               (s % writer.group) * writer.surface_step +
                               y * writer.line_step + int64_t{x} * kAtom);
}

}  // namespace rknnd::rknpu
