// Where each number of A, B and C lies. Native layouts are blocks, so that the
// NPU reads and writes whole ones; partial blocks are filled with zeros.
//
//   A  M x K   normal: rows       native: [K/a_k][M][a_k]
//   B  K x N   normal: rows       native: [N/b_n][K/b_k][b_n][b_k], for each
//              transposed: N x K  piece of at most `piece` rows of K by itself
//   C  M x N   normal: rows       native: [N/c_n][M][c_n]
//
// Source: the vendor's guide, table 3-12 and what follows 3-14.
// Thread: any. No abseil: the client library uses this.

#ifndef DRIVER_MATMUL_MATMUL_LAYOUT_H_
#define DRIVER_MATMUL_MATMUL_LAYOUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "driver/matmul/matmul_spec.h"

namespace rknnd::matmul {

struct Blocks {
  int32_t a_k = 1, b_n = 1, b_k = 1, c_n = 1;
  int32_t piece = INT32_MAX;  // rows of B that are laid out together
};
// Of a type that the SoC has (Check).
Blocks BlocksOf(int32_t type, const std::string& soc);

// One matrix, as rknn_matmul_tensor_attr tells of it.
struct Form {
  std::vector<uint32_t> dims;
  Element element = Element::kInt8;
  uint64_t bytes = 0;
};
struct Forms {
  Form a, b, c;
};
Forms FormsOf(const Spec& spec, const Shape& shape, const Blocks& blocks);

// B of one shape in one of its layouts: runs of rows of one column that lie
// together. Positions count numbers, not bytes.
class PlacesOfB {
 public:
  PlacesOfB(Layout layout, const Shape& shape, const Blocks& blocks)
      : layout_(layout), shape_(shape), blocks_(blocks) {}

  [[nodiscard]] Layout layout() const { return layout_; }
  // Of row k, column n.
  [[nodiscard]] int64_t Of(int64_t k, int64_t n) const {
    switch (layout_) {
      case Layout::kNormal:
        return k * shape_.n + n;
      case Layout::kTransposed:
        return n * shape_.k + k;
      case Layout::kNative:
        break;
    }
    const int64_t piece = k / blocks_.piece;
    const int64_t first = piece * blocks_.piece;
    const int64_t rows = std::min<int64_t>(blocks_.piece, shape_.k - first);
    const int64_t blocks = (rows + blocks_.b_k - 1) / blocks_.b_k;
    const int64_t columns =
        (shape_.n + blocks_.b_n - 1) / blocks_.b_n * blocks_.b_n;
    k -= first;
    return first * columns +
           ((n / blocks_.b_n * blocks + k / blocks_.b_k) * blocks_.b_n +
            n % blocks_.b_n) *
               blocks_.b_k +
           k % blocks_.b_k;
  }

 private:
  Layout layout_;
  Shape shape_;
  Blocks blocks_;
};

// B from K x N, row by row, into the native layout. `to` has the native form's
// bytes. The two do not overlap.
void MakeNative(int32_t type, const Shape& shape, const Blocks& blocks,
                const std::byte* from, std::byte* to);

}  // namespace rknnd::matmul

#endif  // DRIVER_MATMUL_MATMUL_LAYOUT_H_
