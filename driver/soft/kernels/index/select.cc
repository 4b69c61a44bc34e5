// Compress and NonZero: how much they give depends on what they are told, so
// this must be known when the model is loaded. Then the one is a Gather and the
// other a constant.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/expansion.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

// Indices of one NonZero: 8 MiB of constants, and more than the elements of any
// tensor whose shape a network computes.
constexpr size_t kMostIndices = size_t{1} << 20;

absl::Status ExpandCompress(const NodeView& node, Expansion& to) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_RETURN_IF_ERROR(CheckType(node, 1, {DataType::kBool}));
  RKNND_RETURN_IF_ERROR(node.NeedsConstant(1));
  ValueId data = node.node().inputs[0];
  Shape shape = node.shape(0);
  size_t axis = 0;
  if (node.Has("axis")) {
    RKNND_ASSIGN_OR_RETURN(axis,
                           CheckAxis(node, node.Int("axis", 0), shape.size()));
  } else {
    shape = {ProductOf(shape, 0, shape.size())};
    data = to.Add("Reshape", {data, to.Ints({shape[0]})},
                  {{"allowzero", int64_t{1}}});
  }
  const Constant& taken = *node.constant(1);
  if (taken.shape.size() != 1) {
    return node.Error(
        absl::StrCat("its condition is ", ShapeText(taken.shape)));
  }
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < taken.elements(); ++i) {
    if (taken.data[static_cast<size_t>(i)] == std::byte{0}) continue;
    if (i >= shape[axis]) {
      return node.Error(absl::StrCat("takes index ", i, " of axis ", axis,
                                     ", which has ", shape[axis]));
    }
    indices.push_back(i);
  }
  to.Finish(0, to.Add("Gather", {data, to.Ints(indices)},
                      {{"axis", static_cast<int64_t>(axis)}}));
  return absl::OkStatus();
}

absl::Status ExpandNonZero(const NodeView& node, Expansion& to) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_RETURN_IF_ERROR(node.NeedsConstant(0));
  const Constant& data = *node.constant(0);
  std::vector<int64_t> found;
  const NumberReader read = ReaderOf(data.type);
  const size_t rank = data.shape.size();
  for (int64_t i = 0; i < data.elements(); ++i) {
    if (read(data.data.data(), i) == 0.0) continue;
    found.push_back(i);
    if (found.size() > kMostIndices / std::max<size_t>(rank, 1)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "NonZero '", node.node().name, "' finds more than ", kMostIndices,
          " indices, all of which a model would "
          "hold as constants"));
    }
  }
  const size_t count = found.size();
  const Shape strides = DenseStrides(data.shape);
  std::vector<int64_t> indices(rank * count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t d = 0; d < rank; ++d) {
      indices[d * count + i] = found[i] / strides[d] % data.shape[d];
    }
  }
  to.Finish(0,
            to.Add("Reshape",
                   {to.Ints(indices), to.Ints({static_cast<int64_t>(rank),
                                               static_cast<int64_t>(count)})},
                   {{"allowzero", int64_t{1}}}));
  return absl::OkStatus();
}

}  // namespace

void RegisterSelect(OperatorTable& table) {
  table.Add({.type = "Compress", .expand = ExpandCompress});
  table.Add({.type = "NonZero", .expand = ExpandNonZero});
}

}  // namespace rknnd::soft
