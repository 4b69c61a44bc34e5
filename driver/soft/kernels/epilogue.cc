// See epilogue.h.

#include "driver/soft/kernels/epilogue.h"

namespace rknnd::soft {

absl::Status EpilogueStep::Check(const KernelRequest& request) {
  const NodeView& node = request.node;
  if (node.node().epilogue.add == kNoValue) return absl::OkStatus();
  if (request.inputs.size() != node.input_count() + 1) {
    return node.Error("the tensor to add is missing");
  }
  const TensorSpec& added = request.inputs.back();
  const TensorSpec& output = request.outputs[0];
  if (added.type != output.type || added.shape != output.shape ||
      added.placement != output.placement) {
    return node.Error("the tensor to add does not look like the output");
  }
  return absl::OkStatus();
}

EpilogueStep::EpilogueStep(const KernelRequest& request)
    : output_(request.outputs[0]), count_(PhysicalElements(output_)) {
  const Epilogue& epilogue = request.node.node().epilogue;
  adds_ = epilogue.add != kNoValue;
  add_index_ = request.node.input_count();
  activation_ = LoopOf(epilogue.activation);
  kind_ = epilogue.activation;
  alpha_ = epilogue.alpha;
  beta_ = epilogue.beta;
}

void EpilogueStep::MoveActivationTo(dnnl::post_ops& post_ops) {
  using Algorithm = dnnl::algorithm;
  switch (kind_) {
    case Activation::kRelu:
      post_ops.append_eltwise(1.0F, Algorithm::eltwise_relu, 0.0F, 0.0F);
      break;
    case Activation::kLeakyRelu:
      post_ops.append_eltwise(1.0F, Algorithm::eltwise_relu, alpha_, 0.0F);
      break;
    case Activation::kClip:
      if (!(alpha_ <= 0.0F && beta_ >= 0.0F)) return;
      post_ops.append_eltwise(1.0F, Algorithm::eltwise_clip, alpha_, beta_);
      break;
    default:
      return;
  }
  activation_ = nullptr;
  kind_ = Activation::kNone;
}

void EpilogueStep::MoveActivationTo(TileEpilogue& epilogue) {
  if (adds_) return;
  switch (kind_) {
    case Activation::kRelu:
      // Not a slope of 0, which makes no number of what is infinite.
      epilogue.low = 0.0F;
      break;
    case Activation::kLeakyRelu:
      epilogue.slope = alpha_;
      break;
    case Activation::kClip:
      epilogue.low = alpha_;
      epilogue.high = beta_;
      break;
    default:
      return;
  }
  activation_ = nullptr;
  kind_ = Activation::kNone;
}

void EpilogueStep::Activate(float* output) const {
  Activate(output, {0, count_});
}

void EpilogueStep::Activate(float* output, Range elements) const {
  if (activation_ == nullptr) return;
  float* const from = output + elements.begin;
  activation_(from, from, elements.size(), alpha_, beta_);
  if (!KeepsZero(kind_, alpha_, beta_)) {
    ClearPadding(output_, output, elements);
  }
}

void EpilogueStep::Add(const float* added, float* output, Range elements) {
  for (int64_t i = elements.begin; i < elements.end; ++i) {
    output[i] += added[i];
  }
}

}  // namespace rknnd::soft
