// Products whose A has few rows: columns of B are read where they lie.

#include <algorithm>
#include <cstring>
#include <span>

#include "base/values/half.h"
#include "driver/soft/kernels/stop.h"
#include "driver/soft/kernels/work.h"
#include "driver/soft/matmul/matmul_kernel.h"
#include "driver/soft/matmul/run_state.h"

namespace rknnd::soft {
namespace {

using matmul::Element;

// Between two looks whether the answer is still wanted.
constexpr int64_t kRowsOfB = 8192;

}  // namespace

void MatmulKernel::PrepareDots(const Matrices& matrices,
                               const Room& room) const {
  const auto k = static_cast<size_t>(shape_.k);
  for (int64_t r = 0; r < shape_.m; ++r) {
    const std::byte* const from = RowOfA(matrices, r, room.line);
    const size_t at = static_cast<size_t>(r) * k;
    if (!sums_bytes_) {
      base::HalfToFloat(std::span(reinterpret_cast<const base::Half*>(from), k),
                        std::span(reinterpret_cast<float*>(room.rows) + at, k));
      continue;
    }
    room.row_sums[r] = SumOf(from, k);
    if (dot_rows_ != nullptr) {
      std::copy_n(from, k, room.rows + at);
    } else if (elements_.b == Element::kInt4) {
      std::byte* const to = room.rows + at;
      constexpr auto kUnit = static_cast<size_t>(kDotUnit);
      for (size_t i = 0; i < k; ++i) {
        to[i / kUnit * kUnit + i % kUnit / 2 + i % 2 * kUnit / 2] = from[i];
      }
    } else if (dots_.form == RowForm::kWide) {
      const auto* const bytes = reinterpret_cast<const int8_t*>(from);
      std::copy_n(bytes, k, reinterpret_cast<int16_t*>(room.rows) + at);
    } else {
      std::copy_n(from, k, room.rows + at);
    }
  }
}

void MatmulKernel::AddDots(Dots dots, const std::byte* b, int64_t column,
                           int64_t columns) const {
  const size_t bits = matmul::BitsOf(elements_.b);
  const auto bytes = [bits](int64_t numbers) {
    return static_cast<size_t>(numbers) * bits / 8;
  };
  const bool native = spec_.b_layout == matmul::Layout::kNative;
  const int64_t piece = native ? blocks_.piece : shape_.k;
  const int64_t group =
      native ? std::min<int64_t>(blocks_.b_n, columns) : columns;
  dots.column_step = bytes(native ? kDotUnit : shape_.k);
  dots.unit_step = bytes(native ? blocks_.b_n * kDotUnit : kDotUnit);
  dots.columns = static_cast<size_t>(group);
  const std::byte* const row = dots.row;
  auto* const sums = static_cast<uint32_t*>(dots.sums);
  const uint32_t row_sum = dots.row_sum;
  for (int64_t k = 0; k < shape_.k; k += piece) {
    dots.units = static_cast<size_t>(std::min(piece, shape_.k - k) / kDotUnit);
    dots.row = row + static_cast<size_t>(k) * dot_number_;
    // Once for all of K.
    dots.row_sum = k == 0 ? row_sum : 0;
    for (int64_t c = 0; c < columns; c += group) {
      dots.column = b + bytes(source_.places.Of(k, column + c));
      dots.sums = sums + c;
      dot_(dots);
    }
  }
}

void MatmulKernel::RunRows(Part part, const Matrices& matrices,
                           const Numbers& numbers, const Room& room) const {
  PrepareDots(matrices, room);
  const Range steps = ShareOf(part, panels_in_n_);
  const auto end = std::min(steps.end * kPanelColumns, int64_t{shape_.n});
  // As many as have their sums in a core's nearest cache.
  for (int64_t first = steps.begin * kPanelColumns; first < end;
       first += kRowColumns) {
    const int64_t columns = std::min(kRowColumns, end - first);
    for (int64_t r = 0; r < shape_.m; ++r) {
      std::memset(room.row_of_c, 0,
                  static_cast<size_t>(columns) * sizeof(int32_t));
      const size_t bits = matmul::BitsOf(elements_.b);
      for (int64_t k = 0; k < shape_.k; k += kRowsOfB) {
        StopPoint();
        dot_rows_(
            {.row = room.rows +
                    static_cast<size_t>(r * shape_.k + k) * dot_number_,
             .matrix = matrices.b +
                       static_cast<size_t>(k * shape_.n + first) * bits / 8,
             .matrix_step = static_cast<size_t>(shape_.n) * bits / 8,
             .rows = static_cast<size_t>(std::min(kRowsOfB, shape_.k - k)),
             .columns = static_cast<size_t>(columns),
             .sums = room.row_of_c});
      }
      for (int64_t c = 0; c < columns; c += kPanelColumns) {
        const int64_t here = std::min(kPanelColumns, columns - c);
        Room at = room;
        at.sums = room.row_of_c + static_cast<size_t>(c) * sizeof(int32_t);
        at.row_sums = room.row_sums + r;
        if (sums_bytes_) {
          FinishBytes(numbers, at, 0, r, 1, first + c, here, matrices.c);
        } else {
          FinishFloats(numbers, at, r, 1, first + c, here, matrices.c);
        }
      }
    }
  }
}

void MatmulKernel::RunDots(Part part, const Matrices& matrices,
                           const Numbers& numbers, const Room& room) const {
  PrepareDots(matrices, room);
  const Range steps = ShareOf(part, panels_in_n_);
  const size_t row_bytes = static_cast<size_t>(shape_.k) * dot_number_;
  for (int64_t step = steps.begin; step < steps.end; ++step) {
    StopPoint();
    const int64_t first = step * kPanelColumns;
    const int64_t columns = std::min(kPanelColumns, shape_.n - first);
    std::memset(room.sums, 0,
                static_cast<size_t>(shape_.m) * kColumns * sizeof(int32_t));
    for (int64_t r = 0; r < shape_.m; ++r) {
      Dots dots;
      dots.row = room.rows + static_cast<size_t>(r) * row_bytes;
      dots.row_sum = sums_bytes_ ? room.row_sums[r] : 0;
      dots.sums =
          room.sums + static_cast<size_t>(r) * kColumns * sizeof(int32_t);
      AddDots(dots, matrices.b, first, columns);
    }
    if (sums_bytes_) {
      FinishBytes(numbers, room, 0, 0, shape_.m, first, columns, matrices.c);
    } else {
      FinishFloats(numbers, room, 0, shape_.m, first, columns, matrices.c);
    }
  }
}

// sum((a - a_zero) * (b - b_zero)), of sums of x * b, where x is a and what its
// form adds.

}  // namespace rknnd::soft
