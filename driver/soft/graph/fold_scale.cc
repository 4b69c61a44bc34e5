// What multiplies or adds a constant to each channel of a Conv's answer becomes
// part of its weights and bias: BatchNormalization, and Mul, Div, Add and Sub
// with a constant of one number or one for each channel. Per output channel:
// w' = w * scale, b' = b * scale + shift.

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/uses.h"
#include "driver/soft/kernels/operator.h"

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

// By what each channel is multiplied, and what is added to it then.
struct ChannelScale {
  std::vector<double> scale, shift;
};

// With s = scale / sqrt(variance + epsilon): s, and shift - mean * s.
std::optional<ChannelScale> ReadNorm(const Graph& graph, const Node& norm,
                                     int64_t channels) {
  const float* scale = PerChannel(graph, norm, 1, channels);
  const float* shift = PerChannel(graph, norm, 2, channels);
  const float* mean = PerChannel(graph, norm, 3, channels);
  const float* variance = PerChannel(graph, norm, 4, channels);
  const NodeView view(graph, norm);
  if (scale == nullptr || shift == nullptr || mean == nullptr ||
      variance == nullptr || view.Int("training_mode", 0) != 0) {
    return std::nullopt;
  }
  const double epsilon = view.Float("epsilon", 1e-5F);
  ChannelScale result;
  for (int64_t c = 0; c < channels; ++c) {
    const double s = scale[c] / std::sqrt(variance[c] + epsilon);
    result.scale.push_back(s);
    result.shift.push_back(shift[c] - mean[c] * s);
  }
  return result;
}

// Whether `shape`, broadcast to a tensor of `rank` axes, differs along the
// second at most.
bool IsAlongChannels(const Shape& shape, size_t rank) {
  if (shape.size() > rank) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && rank - shape.size() + d != 1) return false;
  }
  return true;
}

// Of Mul, Div, Add and Sub; `data` is the input that the Conv makes.
std::optional<ChannelScale> ReadArithmetic(const Graph& graph, const Node& node,
                                           ValueId data, int64_t channels) {
  if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) {
    return std::nullopt;
  }
  const bool is_left = node.inputs[0] == data;
  const Constant* constant =
      graph.value(node.inputs[is_left ? 1 : 0]).constant.get();
  const std::optional<Shape>& shape = graph.value(data).shape;
  if (constant == nullptr || constant->type != DataType::kFloat32 ||
      !shape.has_value() || graph.value(node.outputs[0]).shape != shape ||
      !IsAlongChannels(constant->shape, shape->size()) ||
      (constant->elements() != 1 && constant->elements() != channels)) {
    return std::nullopt;
  }
  const bool multiplies = node.type == "Mul" || node.type == "Div";
  // A quotient or difference the other way round is another function.
  if (!is_left && (node.type == "Div" || node.type == "Sub")) {
    return std::nullopt;
  }
  ChannelScale result;
  for (int64_t c = 0; c < channels; ++c) {
    const double number =
        constant->as<float>()[constant->elements() == 1 ? 0 : c];
    result.scale.push_back(node.type == "Div" ? 1.0 / number
                           : multiplies       ? number
                                              : 1.0);
    result.shift.push_back(
        multiplies ? 0.0 : (node.type == "Sub" ? -number : number));
    if (!std::isfinite(result.scale.back()) ||
        !std::isfinite(result.shift.back())) {
      return std::nullopt;
    }
  }
  return result;
}

// The channels of a Conv that can take it, or 0.
int64_t ChannelsOf(const Graph& graph, const Node& conv) {
  if (!conv.domain.empty() || conv.type != "Conv" ||
      conv.epilogue.add != kNoValue ||
      conv.epilogue.activation != Activation::kNone || conv.inputs.size() < 2 ||
      conv.inputs[1] == kNoValue) {
    return 0;
  }
  const auto& weight = graph.value(conv.inputs[1]).constant;
  if (weight == nullptr || weight->type != DataType::kFloat32 ||
      weight->shape.empty() || weight->shape[0] <= 0) {
    return 0;
  }
  const int64_t channels = weight->shape[0];
  const bool has_bias = conv.inputs.size() > 2 && conv.inputs[2] != kNoValue;
  return has_bias && PerChannel(graph, conv, 2, channels) == nullptr ? 0
                                                                     : channels;
}

void Fold(Graph& graph, Node& conv, int64_t channels,
          const ChannelScale& change) {
  const std::shared_ptr<const Constant> weight =
      graph.value(conv.inputs[1]).constant;
  const float* bias = PerChannel(graph, conv, 2, channels);
  Constant new_weight = *weight;
  Constant new_bias;
  new_bias.shape = {channels};
  new_bias.data.resize(static_cast<size_t>(channels) * sizeof(float));
  auto* w = reinterpret_cast<float*>(new_weight.data.data());
  auto* b = reinterpret_cast<float*>(new_bias.data.data());
  const int64_t inner = weight->elements() / channels;
  for (int64_t m = 0; m < channels; ++m) {
    const auto at = static_cast<size_t>(m);
    for (int64_t i = 0; i < inner; ++i, ++w) {
      *w = static_cast<float>(*w * change.scale[at]);
    }
    const double old = bias != nullptr ? bias[m] : 0.0;
    b[m] = static_cast<float>(old * change.scale[at] + change.shift[at]);
  }
  conv.inputs.resize(2);
  conv.inputs[1] = AddConstant(graph, absl::StrCat(conv.name, ".weight"),
                               std::move(new_weight));
  conv.inputs.push_back(AddConstant(graph, absl::StrCat(conv.name, ".bias"),
                                    std::move(new_bias)));
}

// What `node` does to the answer of the Conv that makes its input `data`.
std::optional<ChannelScale> Read(const Graph& graph, const Node& node,
                                 ValueId data, int64_t channels) {
  if (node.type == "BatchNormalization") {
    if (node.inputs[0] != data) return std::nullopt;
    return ReadNorm(graph, node, channels);
  }
  return ReadArithmetic(graph, node, data, channels);
}

bool IsScale(const Node& node, const Uses& uses) {
  return node.domain.empty() && !node.inputs.empty() &&
         (node.type == "BatchNormalization" || node.type == "Mul" ||
          node.type == "Div" || node.type == "Add" || node.type == "Sub") &&
         node.epilogue.add == kNoValue &&
         node.epilogue.activation == Activation::kNone &&
         HasOnlyOutput(node, uses);
}

}  // namespace

void FoldScale(Graph& graph) {
  const Uses uses(graph);
  std::vector<bool> removed(graph.nodes.size(), false);
  // The node that makes a value, as far as nodes have been folded.
  std::map<ValueId, size_t> made;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!IsScale(node, uses)) continue;
    for (const ValueId data : node.inputs) {
      if (data == kNoValue || uses.count(data) != 1 || uses.is_output(data)) {
        continue;
      }
      const auto folded = made.find(data);
      const size_t producer =
          folded != made.end() ? folded->second : uses.producer(data);
      if (producer == Uses::kNoNode) continue;
      Node& conv = graph.nodes[producer];
      const int64_t channels = ChannelsOf(graph, conv);
      if (channels == 0) continue;
      const auto change = Read(graph, node, data, channels);
      if (!change.has_value()) continue;
      Fold(graph, conv, channels, *change);
      conv.outputs[0] = node.outputs[0];
      made[node.outputs[0]] = producer;
      removed[n] = true;
      break;
    }
  }
  RemoveNodes(graph, removed);
}

}  // namespace rknnd::soft
