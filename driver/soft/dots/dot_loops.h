// The loops of dots.h, written once. Each level of CPU instantiates them with
// its own vector type `V`, in a file that is compiled for that CPU; as in
// driver/soft/tiles/tile_loops.h, nothing here is a plain inline function.
//
// V has:
//   kForm                  RowForm of bytes
//   kColumns               at once; divides kDotColumns
//   kMoreOfBytes           what it adds to each int8 of a column
//   Ints, Floats           registers
//   NoInts(), NoFloats()   zeros
//   Bytes(sum, column, row)   the sum with the products of a unit
//   Pairs(sum, column, row)   likewise; of int4, to each of which 8 is added
//   Halves(sum, column, row)  likewise
//   Total(sum)             of all lanes
//   kLanes, Widen(at)      floats of so many halves

#ifndef DRIVER_SOFT_DOTS_DOT_LOOPS_H_
#define DRIVER_SOFT_DOTS_DOT_LOOPS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "driver/soft/dots/dots.h"

namespace rknnd::soft {

template <class V>
struct DotLoops {
  static constexpr auto kUnit = static_cast<size_t>(kDotUnit);
  static constexpr size_t kColumns = V::kColumns;
  static constexpr size_t kWideBytes = V::kForm == RowForm::kWide ? 2 : 1;

  struct OfBytes {
    using Sum = typename V::Ints;
    static constexpr size_t kRow = kUnit * kWideBytes;
    static constexpr uint32_t kMore = V::kMoreOfBytes;
    static Sum Zero() { return V::NoInts(); }
    static Sum Step(Sum sum, const std::byte* column, const std::byte* row) {
      return V::Bytes(sum, column, row);
    }
  };
  struct OfPairs {
    using Sum = typename V::Ints;
    static constexpr size_t kRow = kUnit;
    static constexpr uint32_t kMore = 8;
    static Sum Zero() { return V::NoInts(); }
    static Sum Step(Sum sum, const std::byte* column, const std::byte* row) {
      return V::Pairs(sum, column, row);
    }
  };
  struct OfHalves {
    using Sum = typename V::Floats;
    static constexpr size_t kRow = kUnit * sizeof(float);
    static constexpr uint32_t kMore = 0;
    static Sum Zero() { return V::NoFloats(); }
    static Sum Step(Sum sum, const std::byte* column, const std::byte* row) {
      return V::Halves(sum, column, row);
    }
  };

  template <class Kind, class Number>
  static void Run(const Dots& dots) {
    auto* sums = static_cast<Number*>(dots.sums);
    for (size_t c = 0; c < dots.columns; c += kColumns) {
      typename Kind::Sum lanes[kColumns];
      for (size_t i = 0; i < kColumns; ++i) lanes[i] = Kind::Zero();
      const std::byte* column = dots.column + c * dots.column_step;
      const std::byte* row = dots.row;
      for (size_t unit = 0; unit < dots.units; ++unit) {
        for (size_t i = 0; i < kColumns; ++i) {
          lanes[i] = Kind::Step(lanes[i], column + i * dots.column_step, row);
        }
        column += dots.unit_step;
        row += Kind::kRow;
      }
      for (size_t i = 0; i < kColumns; ++i) {
        sums[c + i] += static_cast<Number>(V::Total(lanes[i])) -
                       static_cast<Number>(Kind::kMore * dots.row_sum);
      }
    }
  }

  // Rows at once, so that sums are read and written seldom.
  static constexpr size_t kRows = 4;

  // The compiler makes vectors of these two.
  static void ByteRows(const DotRows& rows) {
    auto* const sums = static_cast<int32_t*>(rows.sums);
    const auto* const a = reinterpret_cast<const int8_t*>(rows.row);
    for (size_t k = 0; k < rows.rows; k += kRows) {
      const auto* const b =
          reinterpret_cast<const int8_t*>(rows.matrix + k * rows.matrix_step);
      const int8_t* const b1 = b + rows.matrix_step;
      const int8_t* const b2 = b1 + rows.matrix_step;
      const int8_t* const b3 = b2 + rows.matrix_step;
      const int32_t a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
      for (size_t n = 0; n < rows.columns; ++n) {
        sums[n] += a0 * b[n] + a1 * b1[n] + a2 * b2[n] + a3 * b3[n];
      }
    }
  }
  // Columns in blocks, whose even and odd ones are summed apart.
  static void PairRows(const DotRows& rows) {
    constexpr size_t kBlock = 512;
    const auto* const a = reinterpret_cast<const int8_t*>(rows.row);
    for (size_t first = 0; first < rows.columns; first += kBlock) {
      const size_t left = rows.columns - first;
      const size_t pairs = (left < kBlock ? left : kBlock) / 2;
      int32_t even[kBlock / 2] = {}, odd[kBlock / 2] = {};
      for (size_t k = 0; k < rows.rows; ++k) {
        const auto* const b = reinterpret_cast<const uint8_t*>(
            rows.matrix + k * rows.matrix_step + first / 2);
        const int32_t a0 = a[k];
        for (size_t n = 0; n < pairs; ++n) {
          const int32_t pair = b[n] ^ 0x88;
          even[n] += a0 * ((pair & 0xf) - 8);
          odd[n] += a0 * ((pair >> 4) - 8);
        }
      }
      auto* const sums = static_cast<int32_t*>(rows.sums) + first;
      for (size_t n = 0; n < pairs; ++n) {
        sums[2 * n] += even[n];
        sums[2 * n + 1] += odd[n];
      }
    }
  }
  static void HalfRows(const DotRows& rows) {
    using Floats = typename V::Floats;
    auto* const sums = static_cast<float*>(rows.sums);
    for (size_t k = 0; k < rows.rows; k += kRows) {
      float a[kRows];
      std::memcpy(a, rows.row + k * sizeof(float), sizeof a);
      const std::byte* const b = rows.matrix + k * rows.matrix_step;
      for (size_t n = 0; n < rows.columns; n += V::kLanes) {
        Floats sum;
        std::memcpy(&sum, sums + n, sizeof sum);
        for (size_t i = 0; i < kRows; ++i) {
          sum += V::Widen(b + i * rows.matrix_step + n * 2) * a[i];
        }
        std::memcpy(sums + n, &sum, sizeof sum);
      }
    }
  }

  static constexpr DotKernels Of(const char* name) {
    return {name,
            V::kForm,
            &Run<OfBytes, uint32_t>,
            &Run<OfPairs, uint32_t>,
            &Run<OfHalves, float>,
            &ByteRows,
            &PairRows,
            &HalfRows};
  }
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_DOTS_DOT_LOOPS_H_
