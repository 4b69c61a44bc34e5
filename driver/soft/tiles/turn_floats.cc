// See turn_floats.h. Four by four in registers, as every CPU has them.

#include "driver/soft/tiles/turn_floats.h"

#include <cstddef>
#include <cstring>

namespace rknnd::soft {
namespace {

using Four [[gnu::vector_size(16)]] = float;

Four Load(const float* at) {
  Four four;
  std::memcpy(&four, at, sizeof four);
  return four;
}
void Store(const Four& four, float* at) { std::memcpy(at, &four, sizeof four); }

void TurnSquare(const float* from, int64_t from_step, float* to,
                int64_t to_step) {
  const Four a = Load(from), b = Load(from + from_step);
  const Four c = Load(from + 2 * from_step), d = Load(from + 3 * from_step);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  Store(__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), to);
  Store(__builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7), to + to_step);
  Store(__builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
        to + 2 * to_step);
  Store(__builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7),
        to + 3 * to_step);
}

}  // namespace

void TurnFloats(const float* from, int64_t from_step, int64_t rows,
                int64_t columns, float* to, int64_t to_step) {
  if ((columns == 1 && from_step == 1) || (rows == 1 && to_step == 1)) {
    std::memcpy(to, from, static_cast<size_t>(rows * columns) * sizeof(float));
    return;
  }
  constexpr int64_t kSide = 4;
  int64_t row = 0;
  for (; row + kSide <= rows; row += kSide, from += kSide * from_step) {
    int64_t column = 0;
    for (; column + kSide <= columns; column += kSide) {
      TurnSquare(from + column, from_step, to + column * to_step + row,
                 to_step);
    }
    for (; column < columns; ++column) {
      for (int64_t r = 0; r < kSide; ++r) {
        to[column * to_step + row + r] = from[r * from_step + column];
      }
    }
  }
  for (; row < rows; ++row, from += from_step) {
    for (int64_t column = 0; column < columns; ++column) {
      to[column * to_step + row] = from[column];
    }
  }
}

}  // namespace rknnd::soft
