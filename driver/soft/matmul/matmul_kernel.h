// The product of one shape on the CPU, on every level of it. Products of
// integers are summed exactly; those of half-precision numbers, or with a scale
// for each group, as floats.
//
//   A  some rows -> the form that tiles multiply      B  some columns -> panels
//         \_______________ tile: sums of 32 columns ______________/
//                                    |
//                     zero points, scales -> C, in its layout
//
// The tiles are those of networks' convolutions and products (tiles). Where A
// has few rows, as when a language model writes a word, packing B would take
// longer than multiplying: its columns are read where they lie (dots).
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_MATMUL_MATMUL_KERNEL_H_
#define DRIVER_SOFT_MATMUL_MATMUL_KERNEL_H_

#include <cstddef>
#include <cstdint>

#include "driver/matmul/matmul_layout.h"
#include "driver/matmul/matmul_spec.h"
#include "driver/soft/dots/dots.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/matmul/panel.h"
#include "driver/soft/tiles/cpu_level.h"
#include "driver/soft/tiles/tile_kernels.h"

namespace rknnd::soft {

class MatmulKernel {
 public:
  // Of a spec that matmul::Check has seen.
  MatmulKernel(const matmul::Spec& spec, const matmul::Shape& shape,
               const matmul::Blocks& blocks,
               CpuLevel level = CurrentCpuLevel());

  [[nodiscard]] size_t scratch_size() const { return scratch_; }
  [[nodiscard]] const char* name() const {
    if (dot_ != nullptr || dot_rows_ != nullptr) return dots_.name;
    return sums_bytes_ ? bytes_.name : floats_.name;
  }
  // At most so many parts can be computed apart.
  [[nodiscard]] int64_t most_parts() const { return steps_; }

  // The matrices in memory of programs, which may write it meanwhile. `scales`:
  // matmul::ScaleHeader and B's; null where the spec has none.
  struct Matrices {
    const std::byte* a = nullptr;
    const std::byte* b = nullptr;
    const std::byte* scales = nullptr;
    std::byte* c = nullptr;
  };
  // Has StopPoints.
  void Run(Part part, const Matrices& matrices, std::byte* scratch) const;

 private:
  struct Numbers;  // of scales
  struct Room;     // a scratch, by parts

  [[nodiscard]] Room RoomIn(std::byte* scratch) const;
  // One row of A as numbers in their order.
  [[nodiscard]] const std::byte* RowOfA(const Matrices& matrices, int64_t row,
                                        std::byte* line) const;
  void RunTiles(Part part, const Matrices& matrices, const Numbers& numbers,
                const Room& room) const;
  void RunDots(Part part, const Matrices& matrices, const Numbers& numbers,
               const Room& room) const;
  void RunRows(Part part, const Matrices& matrices, const Numbers& numbers,
               const Room& room) const;
  // The sums of one row and some columns.
  void AddDots(Dots dots, const std::byte* b, int64_t column,
               int64_t columns) const;
  // Rows of A as dots take them; gives the sums of their numbers.
  void PrepareDots(const Matrices& matrices, const Room& room) const;
  // Rows of A, in form; what further sums of them are needed.
  void PrepareRows(const Matrices& matrices, int64_t first, int64_t count,
                   const Numbers& numbers, const Room& room) const;
  void PreparePanels(const Matrices& matrices, int64_t first, int64_t columns,
                     const Numbers& numbers, const Room& room) const;
  // From the sums of one panel to C. `more`: so much each number of A was more
  // than it is; the sums of B's columns follow those of the rows.
  void FinishBytes(const Numbers& numbers, const Room& room, uint32_t more,
                   int64_t row, int64_t count, int64_t column, int64_t columns,
                   std::byte* c) const;
  void FinishFloats(const Numbers& numbers, const Room& room, int64_t row,
                    int64_t count, int64_t column, int64_t columns,
                    std::byte* c) const;
  void StoreRow(const void* numbers, int64_t row, int64_t column,
                int64_t columns, std::byte* c) const;
  void StoreFloats(const float* values, int64_t row, int64_t column,
                   int64_t columns, std::byte* c) const;

  const matmul::Spec spec_;
  const matmul::Shape shape_;
  const matmul::Blocks blocks_;
  const matmul::Elements elements_;
  const ByteKernels& bytes_;
  const FloatKernels& floats_;
  const DotKernels& dots_;
  const bool sums_bytes_;   // else floats
  const bool scales_late_;  // B's scales are one for each column, or one
  const PanelSource source_;
  // One of both where A has few rows.
  void (*dot_)(const Dots& dots) = nullptr;
  void (*dot_rows_)(const DotRows& rows) = nullptr;
  size_t dot_number_ = 1;  // bytes of one of A's, for it
  // C takes the tiles' sums as they are, where it has them.
  bool sums_are_c_ = false;
  size_t row_bytes_ = 0, panel_bytes_ = 0;
  int64_t rows_ = 1;    // at once
  int64_t panels_ = 1;  // likewise
  int64_t panels_in_n_ = 1;
  int64_t steps_ = 1;  // so many times panels_ in it
  size_t panels_at_ = 0, sums_at_ = 0, row_sums_at_ = 0, line_at_ = 0;
  size_t scratch_ = 0;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_MATMUL_MATMUL_KERNEL_H_
