// A product of matrices, as MatMul and Gemm mean it: its operands, the pieces
// that the cores of a gang share out, and what comes behind it.
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_PRODUCT_PRODUCT_H_
#define DRIVER_SOFT_KERNELS_PRODUCT_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/soft/kernels/epilogue.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/kernels/work.h"

namespace rknnd::soft {

// A product of matrices over common batch axes, each operand given by strides.
struct Product {
  Shape batch;  // of the result
  int64_t m = 0, n = 0, k = 0;
  Shape a_batch, b_batch;           // strides, 0 where broadcast
  int64_t a_row = 0, a_column = 1;  // of the left matrix
  int64_t b_row = 0, b_column = 1;
  float alpha = 1.0F, beta = 1.0F;  // Gemm
  Shape output;

  [[nodiscard]] int64_t batches() const {
    return ProductOf(batch, 0, batch.size());
  }
};

absl::StatusOr<Product> ParseProduct(const NodeView& node);
Work WorkOf(const KernelRequest& request, const Product& product);

// Some images of a product, or some rows or columns of one.
struct ProductPiece {
  Shape batch;
  int64_t m = 0, n = 0, first_column = 0;
  // Elements from the first of the left matrices, the right ones, the output.
  int64_t a_at = 0, b_at = 0, output_at = 0;
  // Its output: so many runs of memory, `run_step` apart.
  int64_t runs = 1, run = 0, run_step = 0;

  [[nodiscard]] bool has_sizes_of(const ProductPiece& other) const {
    return batch == other.batch && m == other.m && n == other.n;
  }
};

// Even shares for gangs of two and of three.
inline constexpr int64_t kMostPieces = 6;

// The product in `count` pieces: of whole images, or so many columns of each,
// or so many rows. Empty: it has not so many.
enum class Within : uint8_t { kColumns, kRows };
std::vector<ProductPiece> CutProduct(const Product& product, int64_t count,
                                     Within within);
// The product in so many pieces that none takes long (MostOperations in
// work.h), as far as it can be cut; empty: the whole of it does not.
std::vector<ProductPiece> CutLongProduct(const Product& product);

// What Gemm adds, and what fusion put behind the product.
class ProductFinish {
 public:
  ProductFinish(const KernelRequest& request, const Product& product);

  // What a library has done already.
  void DropAlpha() { alpha_ = 1.0F; }
  void DropC() { has_c_ = false; }

  // Of some elements of the output.
  void Run(Inputs inputs, float* output, Range elements) const;

 private:
  EpilogueStep step_;
  StridedLoop<3> c_;
  bool has_c_ = false;
  float alpha_, beta_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_PRODUCT_PRODUCT_H_
