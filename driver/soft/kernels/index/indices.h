// Indices that a model or a job brings: counted from the end where they are
// below zero, and checked. Those of a job may change while it runs: each is
// checked when it is used.
//
// Thread: any.

#ifndef DRIVER_SOFT_KERNELS_INDEX_INDICES_H_
#define DRIVER_SOFT_KERNELS_INDEX_INDICES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {

// Index `i` of `indices`, counted from the front; -1 when out of range.
inline int64_t IndexAt(const std::byte* indices, bool wide, int64_t i,
                       int64_t size) {
  int64_t index =
      Once(wide ? As<int64_t>(indices)[i] : int64_t{As<int32_t>(indices)[i]});
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

// "Gather 'rows': index 7 is out of range: axis 0 of its data has 5"
inline absl::Status OutOfRange(const NodeView& node, size_t axis,
                               const std::string& index) {
  return node.Error(absl::StrCat(index, " is out of range: axis ", axis,
                                 " of its data has ", node.shape(0)[axis]));
}

// Tuples of indices: the last axis of a tensor, into axes of `data` from
// `first` on.
struct IndexTuples {
  bool wide = true;
  size_t first = 0, width = 0;
  std::vector<int64_t> sizes, strides;  // of these axes; strides in elements

  // How far the `row`th tuple points, in elements; -1 when out of range.
  [[nodiscard]] int64_t At(const std::byte* indices, int64_t row) const {
    int64_t at = 0;
    for (size_t k = 0; k < width; ++k) {
      const int64_t index =
          IndexAt(indices, wide,
                  row * static_cast<int64_t>(width) + static_cast<int64_t>(k),
                  sizes[k]);
      if (index < 0) return -1;
      at += index * strides[k];
    }
    return at;
  }
};

// Of input 1 into input 0. Those that are known are checked.
inline absl::StatusOr<IndexTuples> ParseTuples(const NodeView& node,
                                               size_t first) {
  RKNND_RETURN_IF_ERROR(
      CheckType(node, 1, {DataType::kInt32, DataType::kInt64}));
  const Shape& data = node.shape(0);
  const Shape& indices = node.shape(1);
  if (indices.empty() || indices.back() < 1 ||
      static_cast<size_t>(indices.back()) + first > data.size()) {
    return node.Error(absl::StrCat("indices ", ShapeText(indices),
                                   " into data ", ShapeText(data)));
  }
  IndexTuples tuples;
  tuples.wide = node.type(1) == DataType::kInt64;
  tuples.first = first;
  tuples.width = static_cast<size_t>(indices.back());
  for (size_t d = first; d < first + tuples.width; ++d) {
    tuples.sizes.push_back(data[d]);
    tuples.strides.push_back(ProductOf(data, d + 1, data.size()));
  }
  const Constant* known = node.constant(1);
  for (int64_t i = 0; known != nullptr && i < known->elements(); ++i) {
    const size_t k = static_cast<size_t>(i) % tuples.width;
    if (IndexAt(known->data.data(), tuples.wide, i, tuples.sizes[k]) >= 0) {
      continue;
    }
    const int64_t index = tuples.wide ? known->as<int64_t>()[i]
                                      : int64_t{known->as<int32_t>()[i]};
    return OutOfRange(node, first + k, absl::StrCat("index ", index));
  }
  return tuples;
}

// That axis `axis` of the data has each of the indices of input 1, if known.
inline absl::Status CheckKnownIndices(const NodeView& node, size_t axis) {
  const Constant* known = node.constant(1);
  const bool wide = node.type(1) == DataType::kInt64;
  for (int64_t i = 0; known != nullptr && i < known->elements(); ++i) {
    if (IndexAt(known->data.data(), wide, i, node.shape(0)[axis]) >= 0) {
      continue;
    }
    const int64_t index =
        wide ? known->as<int64_t>()[i] : int64_t{known->as<int32_t>()[i]};
    return OutOfRange(node, axis, absl::StrCat("index ", index));
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_INDEX_INDICES_H_
