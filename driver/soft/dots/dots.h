// Products of one row with a matrix, for those whose rows are few: each number
// of the matrix is used once, so what counts is how fast it is read. Nothing is
// packed: it is read where it lies, as columns in units of 32 numbers that lie
// together, or as rows.
//
//   bytes    int8 x int8       exact, modulo 2^32
//   pairs    int8 x int4, two to a byte, likewise
//   halves   float32 x float16, summed as floats
//
// Thread: any. Nothing allocates.

#ifndef DRIVER_SOFT_DOTS_DOTS_H_
#define DRIVER_SOFT_DOTS_DOTS_H_

#include <cstddef>
#include <cstdint>

#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::soft {

inline constexpr int64_t kDotUnit = 32;
// Columns are a multiple of it.
inline constexpr int64_t kDotColumns = 8;

struct Dots {
  // The row, unit by unit: of bytes as RowForm says, of pairs int8, the 16 even
  // ones of a unit before the odd ones, of halves float32.
  const std::byte* row = nullptr;
  // The sum of its numbers, modulo 2^32. Not of halves.
  uint32_t row_sum = 0;
  const std::byte* column = nullptr;  // first unit of the first
  size_t column_step = 0;             // bytes from column to column
  size_t unit_step = 0;               // bytes from unit to unit of a column
  size_t units = 0, columns = 0;
  // int32 or float32 of each column; added to what is there.
  void* sums = nullptr;
};

// The same of a matrix that lies row by row.
struct DotRows {
  // int8 or float32, one for each row of the matrix.
  const std::byte* row = nullptr;
  const std::byte* matrix = nullptr;  // first column of the first row
  size_t matrix_step = 0;             // bytes from row to row
  // A multiple of four rows, and of kDotColumns columns.
  size_t rows = 0, columns = 0;
  void* sums = nullptr;  // as of Dots
};

// What the numbers of a row are multiplied as, with columns.
enum class RowForm : uint8_t { kBytes, kWide };  // int8, int16

struct DotKernels {
  const char* name = "";
  RowForm form = RowForm::kBytes;  // of bytes
  void (*bytes)(const Dots& dots) = nullptr;
  void (*pairs)(const Dots& dots) = nullptr;
  void (*halves)(const Dots& dots) = nullptr;
  void (*byte_rows)(const DotRows& rows) = nullptr;
  void (*pair_rows)(const DotRows& rows) = nullptr;
  void (*half_rows)(const DotRows& rows) = nullptr;
};

// Those for `level`, which must be one that this process may use.
const DotKernels& DotKernelsFor(CpuLevel level);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_DOTS_DOTS_H_
