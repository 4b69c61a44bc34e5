// See product.h.

#include "driver/soft/kernels/product/product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/elementwise/broadcast.h"

namespace rknnd::soft {
namespace {

absl::StatusOr<Product> ParseMatMul(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  Shape a = node.shape(0), b = node.shape(1);
  const absl::Status misfit = node.Error(
      absl::StrCat("a product of ", ShapeText(a), " and ", ShapeText(b)));
  if (a.empty() || b.empty()) return misfit;
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  // One matrix on the right: all rows on the left are rows of one matrix.
  if (b.size() == 2 && a.size() > 2) {
    Product product;
    product.output = node.shape(0);
    product.output.pop_back();
    if (!column) product.output.push_back(b[1]);
    product.m = ProductOf(a, 0, a.size() - 1);
    product.k = a.back();
    product.n = b[1];
    product.a_row = product.k;
    product.b_row = product.n;
    if (b[0] != product.k) return misfit;
    return product;
  }
  Product product;
  product.m = a[a.size() - 2];
  product.k = a.back();
  product.n = b.back();
  if (b[b.size() - 2] != product.k) return misfit;
  product.a_row = product.k;
  product.b_row = product.n;
  const Shape a_batch(a.begin(), a.end() - 2), b_batch(b.begin(), b.end() - 2);
  RKNND_ASSIGN_OR_RETURN(product.batch, BroadcastShape(node, a_batch, b_batch));
  product.a_batch = BroadcastStrides(a_batch, product.batch);
  product.b_batch = BroadcastStrides(b_batch, product.batch);
  for (int64_t& stride : product.a_batch) stride *= product.m * product.k;
  for (int64_t& stride : product.b_batch) stride *= product.k * product.n;
  product.output = product.batch;
  if (!row) product.output.push_back(product.m);
  if (!column) product.output.push_back(product.n);
  return product;
}

absl::StatusOr<Product> ParseGemm(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 3}));
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  const Shape& a = node.shape(0);
  const Shape& b = node.shape(1);
  if (a.size() != 2 || b.size() != 2) {
    return node.Error(
        absl::StrCat("a product of ", ShapeText(a), " and ", ShapeText(b)));
  }
  const bool turn_a = node.Int("transA", 0) != 0;
  const bool turn_b = node.Int("transB", 0) != 0;
  Product product;
  product.alpha = node.Float("alpha", 1.0F);
  product.beta = node.Float("beta", 1.0F);
  product.m = turn_a ? a[1] : a[0];
  product.k = turn_a ? a[0] : a[1];
  product.n = turn_b ? b[0] : b[1];
  if ((turn_b ? b[1] : b[0]) != product.k) {
    return node.Error(
        absl::StrCat("a product of ", ShapeText(a), " and ", ShapeText(b)));
  }
  product.a_row = turn_a ? 1 : a[1];
  product.a_column = turn_a ? a[1] : 1;
  product.b_row = turn_b ? 1 : b[1];
  product.b_column = turn_b ? b[1] : 1;
  product.output = {product.m, product.n};
  if (node.has_input(2)) {
    RKNND_ASSIGN_OR_RETURN(const Shape with,
                           BroadcastShape(node, product.output, node.shape(2)));
    if (with != product.output) {
      return node.Error(absl::StrCat("C is ", ShapeText(node.shape(2)),
                                     ", the product ",
                                     ShapeText(product.output)));
    }
  }
  return product;
}

// Columns that libraries compute at once, at most.
constexpr int64_t kColumnUnit = 64;

// The batch axis to be cut: no axis before it has two indices.
size_t OuterAxis(const Shape& batch) {
  size_t axis = 0;
  while (axis + 1 < batch.size() && batch[axis] == 1) ++axis;
  return axis;
}

Part PartOf(int64_t index, int64_t count) {
  return {static_cast<uint32_t>(index), static_cast<uint32_t>(count)};
}

// Some matrices of a product: one index of each batch axis before `axis`, some
// of that one, all of the later ones. Past the last axis: one matrix.
struct Matrices {
  size_t axis = 0;
  Range share;
  int64_t before = 0;  // number of the indices before the axis
};

// These rows and columns of them.
ProductPiece Take(const Product& p, const Matrices& taken, const Range& rows,
                  const Range& columns) {
  ProductPiece piece;
  piece.batch = p.batch;
  int64_t rest = taken.before;
  for (size_t d = taken.axis; d > 0; --d) {
    const int64_t index = rest % p.batch[d - 1];
    rest /= p.batch[d - 1];
    piece.batch[d - 1] = 1;
    piece.a_at += index * p.a_batch[d - 1];
    piece.b_at += index * p.b_batch[d - 1];
  }
  const size_t rank = p.batch.size();
  int64_t first = taken.before;  // matrix
  if (taken.axis < rank) {
    piece.batch[taken.axis] = taken.share.size();
    piece.a_at += taken.share.begin * p.a_batch[taken.axis];
    piece.b_at += taken.share.begin * p.b_batch[taken.axis];
    first = (first * p.batch[taken.axis] + taken.share.begin) *
            ProductOf(p.batch, taken.axis + 1, rank);
  }
  const int64_t matrices = ProductOf(piece.batch, 0, rank);
  piece.m = rows.size();
  piece.n = columns.size();
  piece.first_column = columns.begin;
  piece.a_at += rows.begin * p.a_row;
  piece.b_at += columns.begin * p.b_column;
  piece.output_at = (first * p.m + rows.begin) * p.n + columns.begin;
  const bool whole_rows = piece.n == p.n;
  piece.runs = whole_rows ? 1 : piece.m;
  piece.run = whole_rows ? matrices * piece.m * p.n : piece.n;
  piece.run_step = p.n;
  // One matrix is a matrix, whatever axes of one index it has.
  if (matrices == 1) piece.batch.clear();
  return piece;
}

}  // namespace

absl::StatusOr<Product> ParseProduct(const NodeView& node) {
  return node.node().type == "Gemm" ? ParseGemm(node) : ParseMatMul(node);
}

Work WorkOf(const KernelRequest& request, const Product& product) {
  Work work = WorkOf(request);
  work.operations = product.batches() * product.m * product.n * product.k;
  return work;
}

std::vector<ProductPiece> CutProduct(const Product& product, int64_t count,
                                     Within within) {
  const Product& p = product;
  const size_t axis = OuterAxis(p.batch);
  const int64_t images = p.batch.empty() ? 1 : p.batch[axis];
  // Images where there are enough, else some rows or columns of each.
  const int64_t groups = std::min(images, count);
  const int64_t each = count / groups;
  if (count % groups != 0 || (each > 1 && p.batches() > groups)) return {};
  const bool by_rows = within == Within::kRows;
  // All of the right-hand matrix is read for each piece of the rows.
  constexpr int64_t kMostOfRows = 2;
  if (by_rows ? each > std::min(p.m, kMostOfRows)
              : each > (p.n + kColumnUnit - 1) / kColumnUnit) {
    return {};
  }
  std::vector<ProductPiece> pieces;
  for (int64_t i = 0; i < count; ++i) {
    const Range share = ShareOf(PartOf(i / each, groups), images);
    const Part inside = PartOf(i % each, each);
    pieces.push_back(
        Take(p, {axis, share}, ShareOf(by_rows ? inside : Part{}, p.m),
             ShareOf(by_rows ? Part{} : inside, p.n, kColumnUnit)));
  }
  return pieces;
}

std::vector<ProductPiece> CutLongProduct(const Product& product) {
  const Product& p = product;
  const int64_t most = MostOperations();
  const int64_t matrix = p.m * p.n * p.k;
  if (p.batches() * matrix <= kMostPieces * most) return {};
  // The first axis of which one index does not take long.
  size_t axis = 0;
  int64_t before = 1, inside = p.batches() * matrix;
  for (; axis < p.batch.size(); ++axis) {
    inside /= p.batch[axis];
    if (inside <= most) break;
    before *= p.batch[axis];
  }
  int64_t groups = 1, across = 1, down = 1;
  if (axis < p.batch.size()) {
    groups = (p.batch[axis] * inside + most - 1) / most;
  } else {
    // Rows and columns of each matrix, as many of both: that reads least.
    const int64_t numbers = std::max<int64_t>(most / p.k, 1);
    int64_t columns = kColumnUnit;
    while (columns * columns < numbers) columns += kColumnUnit;
    across = std::max<int64_t>(p.n / columns, 1);
    const int64_t high = std::max<int64_t>(numbers / (p.n / across), 1);
    down = (p.m + high - 1) / high;
  }
  std::vector<ProductPiece> pieces;
  for (int64_t i = 0; i < before * groups; ++i) {
    Matrices taken{axis, {}, i / groups};
    if (axis < p.batch.size()) {
      taken.share = ShareOf(PartOf(i % groups, groups), p.batch[axis]);
    }
    for (int64_t part = 0; part < down * across; ++part) {
      pieces.push_back(
          Take(p, taken, ShareOf(PartOf(part / across, down), p.m),
               ShareOf(PartOf(part % across, across), p.n, kColumnUnit)));
    }
  }
  return pieces;
}

ProductFinish::ProductFinish(const KernelRequest& request,
                             const Product& product)
    : step_(request), alpha_(product.alpha), beta_(product.beta) {
  has_c_ = request.node.node().type == "Gemm" && request.node.has_input(2);
  if (!has_c_) return;
  const Shape& to = product.output;
  const Shape strides = DenseStrides(to);
  c_ = StridedLoop<3>(
      to, {strides, BroadcastStrides(request.node.shape(2), to), strides});
}

void ProductFinish::Run(Inputs inputs, float* output, Range elements) const {
  if (alpha_ != 1.0F) {
    for (int64_t i = elements.begin; i < elements.end; ++i) output[i] *= alpha_;
  }
  if (has_c_) {
    RunBinary(c_, elements, output, As<float>(inputs[2]), output,
              [beta = beta_](float x, float c) { return x + beta * c; });
  }
  if (step_.adds()) {
    EpilogueStep::Add(As<float>(inputs[step_.add_index()]), output, elements);
  }
  step_.Activate(output, elements);
}

}  // namespace rknnd::soft
