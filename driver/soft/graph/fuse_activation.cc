// Conv + Relu -> ConvRelu and the like. Swish, which ONNX has no operator for,
// is found as x * Sigmoid(x).

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

struct Found {
  Activation activation = Activation::kNone;
  float alpha = 0.0F, beta = 0.0F;
  const char* name = "";  // as layer reports write it
};

// Clip's bounds were attributes up to opset 10. Nothing where they are known
// only at run time.
std::optional<Found> ClipOf(const NodeView& view) {
  // As the operator by itself has it (elementwise_unary.cc).
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  if (view.node().opset < 11) {
    return Found{Activation::kClip, view.Float("min", low),
                 view.Float("max", high), "Clip"};
  }
  for (size_t i = 1; i <= 2; ++i) {
    if (!view.has_input(i)) continue;
    const Constant* bound = view.constant(i);
    if (bound == nullptr || bound->type != DataType::kFloat32 ||
        bound->elements() != 1) {
      return std::nullopt;
    }
    (i == 1 ? low : high) = *bound->as<float>();
  }
  return Found{Activation::kClip, low, high, "Clip"};
}

std::optional<Found> ActivationOf(const Graph& graph, const Node& node) {
  if (!node.domain.empty() || node.epilogue.add != kNoValue ||
      node.epilogue.activation != Activation::kNone) {
    return std::nullopt;
  }
  NodeView view(graph, node);
  if (node.type == "Relu") return Found{Activation::kRelu, 0, 0, "Relu"};
  if (node.type == "LeakyRelu") {
    return Found{Activation::kLeakyRelu, view.Float("alpha", 0.01F), 0,
                 "LeakyRelu"};
  }
  if (node.type == "Clip") return ClipOf(view);
  if (node.type == "Sigmoid") {
    return Found{Activation::kSigmoid, 0, 0, "Sigmoid"};
  }
  if (node.type == "Tanh") return Found{Activation::kTanh, 0, 0, "Tanh"};
  if (node.type == "HardSigmoid") {
    return Found{Activation::kHardSigmoid, view.Float("alpha", 0.2F),
                 view.Float("beta", 0.5F), "HardSigmoid"};
  }
  if (node.type == "Gelu") {
    return Found{view.String("approximate", "none") == "tanh"
                     ? Activation::kGeluTanh
                     : Activation::kGelu,
                 0, 0, "Gelu"};
  }
  if (node.type == "HardSwish") {
    return Found{Activation::kHardSwish, 0, 0, "HardSwish"};
  }
  return std::nullopt;
}

// x * Sigmoid(x) and x * HardSigmoid(x) of slope 1/6.
std::optional<Found> GateOf(const Found& gate) {
  if (gate.activation == Activation::kSigmoid) {
    return Found{Activation::kSwish, 0, 0, "ExSwish"};
  }
  if (gate.activation == Activation::kHardSigmoid &&
      std::fabs(gate.alpha - 1.0F / 6.0F) < 1e-6F && gate.beta == 0.5F) {
    return Found{Activation::kHardSwish, 0, 0, "HardSwish"};
  }
  return std::nullopt;
}

class Fusion {
 public:
  Fusion(Graph& graph, const OperatorTable& operators)
      : graph_(graph),
        operators_(operators),
        uses_(graph),
        producer_(graph.values.size(), Uses::kNoNode),
        removed_(graph.nodes.size(), false) {}

  void Run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      Visit(n);
      if (removed_[n]) continue;
      for (ValueId output : graph_.nodes[n].outputs) {
        if (output != kNoValue) producer_[static_cast<size_t>(output)] = n;
      }
    }
    RemoveNodes(graph_, removed_);
  }

 private:
  void Visit(size_t n) {
    const Node& node = graph_.nodes[n];
    if (node.outputs.size() != 1 || node.inputs.empty() ||
        node.inputs[0] == kNoValue) {
      return;
    }
    if (node.domain.empty() && node.type == "Mul" && node.inputs.size() == 2 &&
        node.inputs[1] != kNoValue &&
        node.epilogue.activation == Activation::kNone) {
      if (!FuseGate(n, node.inputs[0], node.inputs[1])) {
        FuseGate(n, node.inputs[1], node.inputs[0]);
      }
      return;
    }
    std::optional<Found> found = ActivationOf(graph_, node);
    if (!found.has_value()) return;
    // A gate is better fused whole, with its product.
    ValueId x = node.inputs[0];
    size_t taker = TakerOf(x, /*readers=*/1);
    if (taker != Uses::kNoNode) Fuse(taker, *found, n);
  }

  // x * gate, where gate is an activation of x and both are read nowhere else.
  bool FuseGate(size_t product, ValueId x, ValueId gate) {
    size_t gate_node = Producer(gate);
    if (gate_node == Uses::kNoNode || uses_.count(gate) != 1) return false;
    const Node& node = graph_.nodes[gate_node];
    if (node.inputs.empty() || node.inputs[0] != x ||
        node.outputs.size() != 1) {
      return false;
    }
    std::optional<Found> inner = ActivationOf(graph_, node);
    if (!inner.has_value()) return false;
    std::optional<Found> found = GateOf(*inner);
    size_t taker = TakerOf(x, /*readers=*/2);
    if (!found.has_value() || taker == Uses::kNoNode) return false;
    removed_[gate_node] = true;
    Fuse(taker, *found, product);
    return true;
  }

  [[nodiscard]] size_t Producer(ValueId value) const {
    return producer_[static_cast<size_t>(value)];
  }

  // The node that makes `value` and can take an activation behind it.
  [[nodiscard]] size_t TakerOf(ValueId value, size_t readers) const {
    size_t n = Producer(value);
    if (n == Uses::kNoNode || uses_.count(value) != readers ||
        uses_.is_output(value) ||
        graph_.value(value).type != DataType::kFloat32) {
      return Uses::kNoNode;
    }
    const Node& node = graph_.nodes[n];
    const Operator* op = operators_.Find(node.domain, node.type);
    if (op == nullptr || !op->takes_activation || node.outputs.size() != 1 ||
        node.epilogue.activation != Activation::kNone) {
      return Uses::kNoNode;
    }
    return n;
  }

  void Fuse(size_t taker, const Found& found, size_t last) {
    Node& node = graph_.nodes[taker];
    node.epilogue.activation = found.activation;
    node.epilogue.alpha = found.alpha;
    node.epilogue.beta = found.beta;
    node.layer_type += found.name;
    node.outputs[0] = graph_.nodes[last].outputs[0];
    producer_[static_cast<size_t>(node.outputs[0])] = taker;
    removed_[last] = true;
  }

  Graph& graph_;
  const OperatorTable& operators_;
  // Counts stay right: a fusion takes away only values that it counted.
  Uses uses_;
  // As of the nodes seen so far, fusions included.
  std::vector<size_t> producer_;
  std::vector<bool> removed_;
};

}  // namespace

void FuseActivations(Graph& graph, const OperatorTable& operators) {
  Fusion(graph, operators).Run();
}

}  // namespace rknnd::soft
