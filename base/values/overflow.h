// Sums and products of sizes and offsets that somebody else chose.

#ifndef BASE_VALUES_OVERFLOW_H_
#define BASE_VALUES_OVERFLOW_H_

#include <cstdint>
#include <optional>

namespace rknnd::base {

[[nodiscard]] constexpr std::optional<uint64_t> CheckedAdd(uint64_t a,
                                                           uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

[[nodiscard]] constexpr std::optional<uint64_t> CheckedMultiply(uint64_t a,
                                                                uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// `value` rounded up to a multiple of `alignment`, a power of two.
[[nodiscard]] constexpr std::optional<uint64_t> CheckedAlignUp(
    uint64_t value, uint64_t alignment) {
  const std::optional<uint64_t> sum = CheckedAdd(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

// Whether [offset, offset + length) lies inside [0, size).
[[nodiscard]] constexpr bool RangeFits(uint64_t offset, uint64_t length,
                                       uint64_t size) {
  return offset <= size && length <= size - offset;
}

}  // namespace rknnd::base

#endif  // BASE_VALUES_OVERFLOW_H_
