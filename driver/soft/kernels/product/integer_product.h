// The product of two 8-bit matrices that are both computed while the model
// runs: the right one is packed as weights known at load time are, and
// multiplied on the same tiles (driver/soft/tiles), the same to the bit on
// every CPU.
//
//   sum((a - a_zero) * (b - b_zero)) = sum(a * b) - a_zero * sum(b)
//                                    - b_zero * sum(a) + k * a_zero * b_zero
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_PRODUCT_INTEGER_PRODUCT_H_
#define DRIVER_SOFT_KERNELS_PRODUCT_INTEGER_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/soft/kernels/operator.h"
#include "driver/soft/tiles/cpu_level.h"
#include "driver/soft/tiles/packed_weights.h"
#include "driver/soft/tiles/tile_kernels.h"

namespace rknnd::soft {

struct IntegerProductSpec {
  int64_t m = 0, n = 0, k = 0;
  bool transposed = false;  // the right one: n rows of k
  DataType a = DataType::kUint8, b = DataType::kUint8;
  DataType output = DataType::kInt32;  // or 8-bit, or float32
  // From sums to steps of the output: one, or one for each column.
  std::vector<float> scale = {1.0F};
  std::vector<float> bias;  // in units of the sums; empty: none
  int32_t output_zero = 0;
  Epilogue epilogue;  // alpha and beta of kClip in steps
};

// Zero points: null is 0; one, or one for each row of a or column of b.
struct ZeroPoints {
  const std::byte* data = nullptr;
  bool many = false;
};

class IntegerProduct {
 public:
  explicit IntegerProduct(const IntegerProductSpec& spec,
                          CpuLevel level = CurrentCpuLevel());

  [[nodiscard]] size_t scratch_size() const { return scratch_; }
  [[nodiscard]] const char* name() const { return loops_.name; }

  // What Multiply then takes as its right matrix.
  void Pack(const std::byte* b, std::byte* scratch) const;
  void Multiply(const std::byte* a, ZeroPoints a_zero, ZeroPoints b_zero,
                std::byte* output, std::byte* scratch) const;

 private:
  struct Zeros;
  // From the sums of tiles, `count` rows from `row` on, to outputs.
  void Finish(const int32_t* sums, int64_t row, int64_t count, int64_t column,
              int64_t columns, const Zeros& zeros, std::byte* output) const;

  const IntegerProductSpec spec_;
  const ByteKernels& loops_;
  PackedShape packed_;
  std::vector<ptrdiff_t> offsets_;
  std::vector<float> bias_, scale_;  // of each column
  TileEpilogue epilogue_;
  int64_t rows_ = 1;  // at once
  // In the scratch, behind the packed matrix.
  size_t sums_at_ = 0, starts_at_ = 0, rows_at_ = 0, tile_at_ = 0, scratch_ = 0;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_PRODUCT_INTEGER_PRODUCT_H_
