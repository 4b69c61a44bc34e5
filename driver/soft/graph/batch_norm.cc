// Conv + BatchNormalization -> Conv. Per output channel m, with
// s = scale / sqrt(variance + epsilon): w' = w * s, b' = (b - mean) * s +
// shift.

#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

// The floats of an input that must be a constant of `channels` elements.
const float* PerChannel(const Graph& graph, const Node& node, size_t i,
                        int64_t channels) {
  if (i >= node.inputs.size() || node.inputs[i] == kNoValue) return nullptr;
  const Constant* constant = graph.value(node.inputs[i]).constant.get();
  if (constant == nullptr || constant->type != DataType::kFloat32 ||
      constant->elements() != channels) {
    return nullptr;
  }
  return constant->as<float>();
}

bool HasOnlyOutput(const Node& node, const Uses& uses) {
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue && uses.count(node.outputs[i]) > 0) {
      return false;
    }
  }
  return !node.outputs.empty() && node.outputs[0] != kNoValue;
}

bool Fold(Graph& graph, Node& conv, const Node& norm) {
  if (conv.inputs.size() < 2 || conv.inputs[1] == kNoValue) return false;
  std::shared_ptr<const Constant> weight = graph.value(conv.inputs[1]).constant;
  if (weight == nullptr || weight->type != DataType::kFloat32 ||
      weight->shape.empty() || weight->shape[0] <= 0) {
    return false;
  }
  int64_t channels = weight->shape[0];
  bool has_bias = conv.inputs.size() > 2 && conv.inputs[2] != kNoValue;
  const float* bias = PerChannel(graph, conv, 2, channels);
  const float* scale = PerChannel(graph, norm, 1, channels);
  const float* shift = PerChannel(graph, norm, 2, channels);
  const float* mean = PerChannel(graph, norm, 3, channels);
  const float* variance = PerChannel(graph, norm, 4, channels);
  if ((has_bias && bias == nullptr) || scale == nullptr || shift == nullptr ||
      mean == nullptr || variance == nullptr) {
    return false;
  }
  NodeView view(graph, norm);
  if (view.Int("training_mode", 0) != 0) return false;
  double epsilon = view.Float("epsilon", 1e-5F);

  Constant new_weight = *weight;
  Constant new_bias;
  new_bias.shape = {channels};
  new_bias.data.resize(static_cast<size_t>(channels) * sizeof(float));
  auto* w = reinterpret_cast<float*>(new_weight.data.data());
  auto* b = reinterpret_cast<float*>(new_bias.data.data());
  int64_t inner = weight->elements() / channels;
  for (int64_t m = 0; m < channels; ++m) {
    double s = scale[m] / std::sqrt(variance[m] + epsilon);
    for (int64_t i = 0; i < inner; ++i, ++w) {
      *w = static_cast<float>(*w * s);
    }
    double old = has_bias ? bias[m] : 0.0;
    b[m] = static_cast<float>((old - mean[m]) * s + shift[m]);
  }
  conv.inputs.resize(2);
  conv.inputs[1] = AddConstant(graph, absl::StrCat(conv.name, ".weight"),
                               std::move(new_weight));
  conv.inputs.push_back(AddConstant(graph, absl::StrCat(conv.name, ".bias"),
                                    std::move(new_bias)));
  return true;
}

}  // namespace

absl::Status FoldBatchNorm(Graph& graph) {
  Uses uses(graph);
  std::vector<bool> removed(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& norm = graph.nodes[n];
    if (!norm.domain.empty() || norm.type != "BatchNormalization" ||
        norm.inputs.empty() || norm.inputs[0] == kNoValue ||
        !HasOnlyOutput(norm, uses)) {
      continue;
    }
    ValueId middle = norm.inputs[0];
    size_t producer = uses.producer(middle);
    if (producer == Uses::kNoNode || uses.count(middle) != 1 ||
        uses.is_output(middle)) {
      continue;
    }
    Node& conv = graph.nodes[producer];
    if (!conv.domain.empty() || conv.type != "Conv" ||
        conv.epilogue.add != kNoValue ||
        conv.epilogue.activation != Activation::kNone ||
        !Fold(graph, conv, norm)) {
      continue;
    }
    conv.outputs[0] = norm.outputs[0];
    removed[n] = true;
  }
  RemoveNodes(graph, removed);
  return absl::OkStatus();
}

}  // namespace rknnd::soft
