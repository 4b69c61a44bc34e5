// Products of a row with columns as plain loops, for CPUs without a level of
// their own.

#include <cstring>

#include "base/values/half.h"
#include "driver/soft/dots/dot_levels.h"
#include "driver/soft/dots/dot_loops.h"

namespace rknnd::soft {
namespace {

struct Portable {
  static constexpr RowForm kForm = RowForm::kBytes;
  static constexpr uint32_t kMoreOfBytes = 0;
  static constexpr size_t kColumns = 8, kLanes = 1;
  using Ints = int32_t;
  using Floats = float;

  static Ints NoInts() { return 0; }
  static Floats NoFloats() { return 0; }
  static Ints Bytes(Ints sum, const std::byte* column, const std::byte* row) {
    const auto* const b = reinterpret_cast<const int8_t*>(column);
    const auto* const a = reinterpret_cast<const int8_t*>(row);
    for (int64_t i = 0; i < kDotUnit; ++i) sum += int32_t{b[i]} * a[i];
    return sum;
  }
  static Ints Pairs(Ints sum, const std::byte* column, const std::byte* row) {
    const auto* const a = reinterpret_cast<const int8_t*>(row);
    for (int64_t i = 0; i < kDotUnit / 2; ++i) {
      const int32_t pair = static_cast<int32_t>(column[i]) ^ 0x88;
      sum += (pair & 0xf) * a[i] + (pair >> 4) * a[i + kDotUnit / 2];
    }
    return sum;
  }
  static Floats Halves(Floats sum, const std::byte* column,
                       const std::byte* row) {
    for (int64_t i = 0; i < kDotUnit; ++i) {
      base::Half half;
      float value;
      std::memcpy(&half, column + i * 2, sizeof half);
      std::memcpy(&value, row + i * 4, sizeof value);
      sum += base::HalfToFloat(half) * value;
    }
    return sum;
  }
  static Floats Widen(const std::byte* at) {
    base::Half half;
    std::memcpy(&half, at, sizeof half);
    return base::HalfToFloat(half);
  }
  static int32_t Total(Ints sum) { return sum; }
  static float Total(Floats sum) { return sum; }
};

}  // namespace

constexpr DotKernels kDotsPortable = DotLoops<Portable>::Of("loops");

}  // namespace rknnd::soft
