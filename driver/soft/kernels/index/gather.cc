// Gather and GatherElements. Indices that the model brings are checked when it
// is loaded. Others come from a tensor that a job brings: each is checked when
// it is used, and one out of range fails the job.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/index/indices.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

absl::StatusOr<size_t> CheckGather(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_RETURN_IF_ERROR(
      CheckType(node, 1, {DataType::kInt32, DataType::kInt64}));
  RKNND_ASSIGN_OR_RETURN(const size_t axis, CheckAxis(node, node.Int("axis", 0),
                                                      node.shape(0).size()));
  RKNND_RETURN_IF_ERROR(CheckKnownIndices(node, axis));
  return axis;
}

Inference InferGather(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, CheckGather(node));
  const Shape& data = node.shape(0);
  const Shape& indices = node.shape(1);
  Shape shape(data.begin(), data.begin() + static_cast<ptrdiff_t>(axis));
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), data.begin() + static_cast<ptrdiff_t>(axis) + 1,
               data.end());
  return InferOne(node, node.type(0), shape);
}

class GatherKernel final : public Kernel {
 public:
  GatherKernel(const KernelRequest& request, size_t axis)
      : out_of_range_(OutOfRange(request.node, axis, "an index")) {
    const Shape& data = request.inputs[0].shape;
    outer_ = ProductOf(data, 0, axis);
    size_ = data[axis];
    inner_ = static_cast<size_t>(ProductOf(data, axis + 1, data.size())) *
             SizeOf(request.inputs[0].type);
    indices_ = request.inputs[1].elements();
    wide_ = request.inputs[1].type == DataType::kInt64;
  }

  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* /*scratch*/) const override {
    std::byte* to = outputs[0];
    for (int64_t o = 0; o < outer_; ++o) {
      StopPoint();
      const std::byte* from =
          inputs[0] + static_cast<size_t>(o * size_) * inner_;
      for (int64_t i = 0; i < indices_; ++i) {
        const int64_t index = IndexAt(inputs[1], wide_, i, size_);
        if (index < 0) return out_of_range_;
        if (inner_ > 0) {
          std::memcpy(to, from + static_cast<size_t>(index) * inner_, inner_);
        }
        to += inner_;
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status out_of_range_;
  int64_t outer_, size_, indices_;
  size_t inner_;
  bool wide_;
};

MadeKernel MakeGather(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, CheckGather(request.node));
  return std::make_unique<GatherKernel>(request, axis);
}

Inference InferGatherElements(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, CheckGather(node));
  const Shape& data = node.shape(0);
  const Shape& indices = node.shape(1);
  bool fits = data.size() == indices.size();
  for (size_t d = 0; fits && d < data.size(); ++d) {
    fits = d == axis || indices[d] <= data[d];
  }
  if (!fits) {
    return node.Error(absl::StrCat("data ", ShapeText(data), ", indices ",
                                   ShapeText(indices)));
  }
  return InferOne(node, node.type(0), indices);
}

class GatherElementsKernel final : public Kernel {
 public:
  GatherElementsKernel(const KernelRequest& request, size_t axis)
      : out_of_range_(OutOfRange(request.node, axis, "an index")) {
    Shape from = DenseStrides(request.inputs[0].shape);
    const Shape& indices = request.inputs[1].shape;
    axis_stride_ = std::exchange(from[axis], 0);
    size_ = request.inputs[0].shape[axis];
    wide_ = request.inputs[1].type == DataType::kInt64;
    element_ = SizeOf(request.inputs[0].type);
    loop_ = StridedLoop<2>(indices, {from, DenseStrides(indices)});
  }

  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* /*scratch*/) const override {
    bool good = true;
    const int64_t step = loop_.inner_strides()[0];
    const int64_t to_step = loop_.inner_strides()[1];
    loop_.Run([&](const auto& at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t to = at[1] + i * to_step;
        const int64_t index = IndexAt(inputs[1], wide_, to, size_);
        if (index < 0) {
          good = false;
          return;
        }
        const int64_t from = at[0] + i * step + index * axis_stride_;
        std::memcpy(outputs[0] + static_cast<size_t>(to) * element_,
                    inputs[0] + static_cast<size_t>(from) * element_, element_);
      }
    });
    return good ? absl::OkStatus() : out_of_range_;
  }

 private:
  absl::Status out_of_range_;
  StridedLoop<2> loop_;
  int64_t axis_stride_, size_;
  size_t element_;
  bool wide_;
};

MadeKernel MakeGatherElements(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, CheckGather(request.node));
  return std::make_unique<GatherElementsKernel>(request, axis);
}

}  // namespace

void RegisterGather(OperatorTable& table) {
  table.Add({.type = "Gather", .infer = InferGather, .make = MakeGather});
  table.Add({.type = "GatherElements",
             .infer = InferGatherElements,
             .make = MakeGatherElements});
}

}  // namespace rknnd::soft
