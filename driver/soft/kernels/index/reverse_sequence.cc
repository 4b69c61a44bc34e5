// ReverseSequence: the first so many steps of each sequence in reverse.

#include <cstring>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

absl::Status Check(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_RETURN_IF_ERROR(CheckType(node, 1, {DataType::kInt64}));
  const Shape& shape = node.shape(0);
  const int64_t time = node.Int("time_axis", 0);
  const int64_t batch = node.Int("batch_axis", 1);
  if (shape.size() < 2 ||
      !((time == 0 && batch == 1) || (time == 1 && batch == 0))) {
    return node.Error(absl::StrCat("time_axis ", time, ", batch_axis ", batch,
                                   " of ", ShapeText(shape)));
  }
  if (node.shape(1) != Shape{shape[static_cast<size_t>(batch)]}) {
    return node.Error(absl::StrCat("has ", ShapeText(node.shape(1)),
                                   " lengths for ", ShapeText(shape)));
  }
  const Constant* known = node.constant(1);
  const int64_t steps = shape[static_cast<size_t>(time)];
  for (int64_t i = 0; known != nullptr && i < known->elements(); ++i) {
    const int64_t length = known->as<int64_t>()[i];
    if (length < 0 || length > steps) {
      return node.Error(absl::StrCat("sequence length ", length,
                                     " is not within 0 and ", steps));
    }
  }
  return absl::OkStatus();
}

Inference InferReverse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(Check(node));
  return InferOne(node, node.type(0), node.shape(0));
}

class ReverseKernel final : public Kernel {
 public:
  explicit ReverseKernel(const KernelRequest& request)
      : work_(WorkOf(request)) {
    const Shape& shape = request.inputs[0].shape;
    const bool time_first = request.node.Int("time_axis", 0) == 0;
    steps_ = shape[time_first ? 0 : 1];
    batch_ = shape[time_first ? 1 : 0];
    run_ = static_cast<size_t>(ProductOf(shape, 2, shape.size())) *
           SizeOf(request.inputs[0].type);
    step_by_ = time_first ? batch_ : 1;
    sequence_by_ = time_first ? 1 : steps_;
    bad_length_ = request.node.Error(
        absl::StrCat("a sequence length is not within 0 and ", steps_));
  }

  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    return PartsOf(work_, batch_, cores);
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart(Part{}, inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* /*scratch*/) const override {
    const Range share = ShareOf(part, batch_);
    for (int64_t b = share.begin; b < share.end; ++b) {
      StopPoint();
      const int64_t length = Once(As<int64_t>(inputs[1])[b]);
      if (length < 0 || length > steps_) return bad_length_;
      for (int64_t t = 0; t < steps_ && run_ > 0; ++t) {
        const int64_t from = t < length ? length - 1 - t : t;
        const auto place = [&](int64_t step) {
          return static_cast<size_t>(step * step_by_ + b * sequence_by_) * run_;
        };
        std::memcpy(outputs[0] + place(t), inputs[0] + place(from), run_);
      }
    }
    return absl::OkStatus();
  }

 private:
  const Work work_;
  int64_t steps_, batch_, step_by_, sequence_by_;
  size_t run_;
  absl::Status bad_length_;
};

MadeKernel MakeReverse(const KernelRequest& request) {
  RKNND_RETURN_IF_ERROR(Check(request.node));
  return std::make_unique<ReverseKernel>(request);
}

}  // namespace

void RegisterReverseSequence(OperatorTable& table) {
  table.Add(
      {.type = "ReverseSequence", .infer = InferReverse, .make = MakeReverse});
}

}  // namespace rknnd::soft
