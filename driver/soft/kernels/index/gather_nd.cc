// GatherND: slices of a tensor, each found by a tuple of indices.

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/index/indices.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

absl::StatusOr<IndexTuples> Parse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  const Shape& data = node.shape(0);
  const Shape& indices = node.shape(1);
  const int64_t batch = node.Int("batch_dims", 0);
  bool fits = batch >= 0 && static_cast<size_t>(batch) < data.size() &&
              static_cast<size_t>(batch) < indices.size();
  for (size_t d = 0; fits && d < static_cast<size_t>(batch); ++d) {
    fits = data[d] == indices[d];
  }
  if (!fits) {
    return node.Error(absl::StrCat(batch, " batch_dims of data ",
                                   ShapeText(data), " and indices ",
                                   ShapeText(indices)));
  }
  return ParseTuples(node, static_cast<size_t>(batch));
}

Inference InferGatherNd(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const IndexTuples tuples, Parse(node));
  const Shape& data = node.shape(0);
  Shape shape(node.shape(1).begin(), node.shape(1).end() - 1);
  shape.insert(
      shape.end(),
      data.begin() + static_cast<ptrdiff_t>(tuples.first + tuples.width),
      data.end());
  return InferOne(node, node.type(0), shape);
}

class GatherNdKernel final : public Kernel {
 public:
  GatherNdKernel(const KernelRequest& request, IndexTuples tuples)
      : out_of_range_(
            request.node.Error("an index is out of range of its data " +
                               ShapeText(request.inputs[0].shape))),
        tuples_(std::move(tuples)),
        work_(WorkOf(request)) {
    const Shape& data = request.inputs[0].shape;
    const Shape& indices = request.inputs[1].shape;
    rows_ = ProductOf(indices, 0, indices.size() - 1);
    rows_of_batch_ = std::max<int64_t>(
        ProductOf(indices, tuples_.first, indices.size() - 1), 1);
    batch_ = ProductOf(data, tuples_.first, data.size());
    size_ = SizeOf(request.inputs[0].type);
    slice_ = static_cast<size_t>(
                 ProductOf(data, tuples_.first + tuples_.width, data.size())) *
             size_;
  }

  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    return PartsOf(work_, rows_, cores);
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart(Part{}, inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* /*scratch*/) const override {
    constexpr int64_t kRowsAtOnce = 4096;
    const Range share = ShareOf(part, rows_);
    for (int64_t row = share.begin; row < share.end; ++row) {
      if (row % kRowsAtOnce == 0 || slice_ > kRowsAtOnce) StopPoint();
      const int64_t at = tuples_.At(inputs[1], row);
      if (at < 0) return out_of_range_;
      const int64_t from = row / rows_of_batch_ * batch_ + at;
      if (slice_ == 0) continue;
      std::memcpy(outputs[0] + static_cast<size_t>(row) * slice_,
                  inputs[0] + static_cast<size_t>(from) * size_, slice_);
    }
    return absl::OkStatus();
  }

 private:
  const absl::Status out_of_range_;
  const IndexTuples tuples_;
  const Work work_;
  int64_t rows_, rows_of_batch_, batch_;
  size_t size_, slice_;
};

MadeKernel MakeGatherNd(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(IndexTuples tuples, Parse(request.node));
  return std::make_unique<GatherNdKernel>(request, std::move(tuples));
}

}  // namespace

void RegisterGatherNd(OperatorTable& table) {
  table.Add({.type = "GatherND", .infer = InferGatherNd, .make = MakeGatherNd});
}

}  // namespace rknnd::soft
