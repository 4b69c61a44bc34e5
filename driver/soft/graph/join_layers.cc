// The NPU writes a convolution's or product's result once: what the guide's
// table of fusions lists behind it (an activation, an addition, an activation
// and an addition) happens on the way out. Here the nodes stay what they are,
// run one after the other over the same bytes, and are one layer to the plan
// and to every report: Conv, LeakyRelu, Add are a ConvLeakyReluAdd. So 8-bit
// networks give the same bits as their nodes one by one.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

struct Head {
  std::string_view domain, type;
};
constexpr std::array<Head, 7> kHeads = {{{"", "Conv"},
                                         {"", "ConvTranspose"},
                                         {"", "Gemm"},
                                         {"", "MatMul"},
                                         {"", "QLinearConv"},
                                         {"", "QLinearMatMul"},
                                         {"com.microsoft", "QGemm"}}};

constexpr std::array<std::string_view, 16> kActivations = {
    "Relu", "LeakyRelu",   "PRelu",     "Clip",           "Sigmoid",  "Tanh",
    "Elu",  "HardSigmoid", "HardSwish", "Gelu",           "Softplus", "Mish",
    "Selu", "Celu",        "Softsign",  "ThresholdedRelu"};

bool IsHead(const Node& node) {
  return node.outputs.size() == 1 &&
         std::any_of(kHeads.begin(), kHeads.end(), [&](const Head& head) {
           return head.domain == node.domain && head.type == node.type;
         });
}

bool IsAdd(const Node& node) {
  return (node.domain.empty() && node.type == "Add") ||
         (node.domain == "com.microsoft" && node.type == "QLinearAdd");
}

// A function of each number by itself.
bool IsActivation(const Node& node) {
  if (node.epilogue.activation != Activation::kNone ||
      node.epilogue.add != kNoValue) {
    return false;
  }
  if (node.domain == "rknnd") return node.type == "Lookup";
  if (node.domain == "com.microsoft") {
    return node.type == "QLinearSigmoid" || node.type == "QLinearLeakyRelu";
  }
  return node.domain.empty() &&
         std::find(kActivations.begin(), kActivations.end(), node.type) !=
             kActivations.end();
}

// A table that only changes the scale: the NPU's own last step.
bool IsRequantize(const Node& node) {
  return node.type == "Lookup" && node.layer_type == "Requantize";
}

class Join {
 public:
  explicit Join(Graph& graph)
      : graph_(graph), uses_(graph), unit_(graph.nodes.size()) {}

  void Run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      unit_[n] = units_.size();
      units_.push_back(UnitOf(n));
      Visit(n);
    }
    std::vector<Node> nodes;
    nodes.reserve(graph_.nodes.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Unit& unit = units_[unit_[n]];
      // All of a layer where its last node was: by then all it reads is there.
      if (unit.nodes.back() != n) continue;
      Node& head = graph_.nodes[unit.nodes.front()];
      head.layer_type += unit.behind;
      for (size_t i = 0; i < unit.nodes.size(); ++i) {
        nodes.push_back(std::move(graph_.nodes[unit.nodes[i]]));
        nodes.back().joins_layer = i > 0;
      }
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  struct Unit {
    std::vector<size_t> nodes;
    std::string behind;  // names of what follows the head
    bool takes = false;  // whether anything may follow
    bool activates = false, adds = false;
  };

  [[nodiscard]] Unit UnitOf(size_t n) const {
    const Node& node = graph_.nodes[n];
    Unit unit;
    unit.nodes = {n};
    unit.takes = IsHead(node);
    unit.activates = node.epilogue.activation != Activation::kNone;
    unit.adds = node.epilogue.add != kNoValue;
    return unit;
  }

  // The unit whose last value is `value`, if only node `n` reads that and the
  // node's output can lie over it; kNoNode.
  [[nodiscard]] size_t Before(ValueId value, const Node& node) const {
    if (value == kNoValue || uses_.count(value) != 1 ||
        uses_.is_output(value)) {
      return Uses::kNoNode;
    }
    const size_t producer = uses_.producer(value);
    if (producer == Uses::kNoNode) return Uses::kNoNode;
    const size_t u = unit_[producer];
    if (!units_[u].takes || units_[u].nodes.back() != producer) {
      return Uses::kNoNode;
    }
    const Value& from = graph_.value(value);
    const Value& to = graph_.value(node.outputs[0]);
    const bool fits = from.shape.has_value() && from.shape == to.shape &&
                      (from.type == to.type ||
                       (IsEightBit(from.type) && IsEightBit(to.type)));
    return fits ? u : Uses::kNoNode;
  }

  void Visit(size_t n) {
    const Node& node = graph_.nodes[n];
    if (node.outputs.size() != 1 || node.outputs[0] == kNoValue ||
        node.inputs.empty()) {
      return;
    }
    if (IsActivation(node)) {
      const size_t u = Before(node.inputs[0], node);
      if (u == Uses::kNoNode) return;
      if (IsRequantize(node)) return Append(u, n, "");
      if (units_[u].activates) return;
      units_[u].activates = true;
      return Append(u, n, node.layer_type);
    }
    if (!IsAdd(node) || node.epilogue.add != kNoValue) return;
    const size_t second = node.domain.empty() ? 1 : 3;
    const bool activates = node.epilogue.activation != Activation::kNone;
    const auto taker = [&](ValueId value) {
      const size_t u = Before(value, node);
      const bool full = u != Uses::kNoNode &&
                        (units_[u].adds || (activates && units_[u].activates));
      return full ? Uses::kNoNode : u;
    };
    const ValueId left = InputOf(node, 0);
    const ValueId right = InputOf(node, second);
    if (left == kNoValue || right == kNoValue ||
        (graph_.value(left).shape != graph_.value(right).shape &&
         graph_.value(left).constant == nullptr &&
         graph_.value(right).constant == nullptr)) {
      return;
    }
    const size_t a = taker(left);
    const size_t b = taker(right);
    if (a == Uses::kNoNode && b == Uses::kNoNode) return;
    // The later of the two: the other's result is there by then.
    const bool take_b = a == Uses::kNoNode || (b != Uses::kNoNode && b > a);
    Unit& unit = units_[take_b ? b : a];
    unit.adds = true;
    unit.activates = unit.activates || activates;
    Append(take_b ? b : a, n, node.layer_type);
  }

  void Append(size_t u, size_t n, const std::string& name) {
    units_[u].nodes.push_back(n);
    units_[u].behind += name;
    unit_[n] = u;
  }

  Graph& graph_;
  const Uses uses_;
  std::vector<size_t> unit_;  // of each node seen
  std::vector<Unit> units_;   // one for each node; left empty-handed if joined
};

}  // namespace

void JoinLayers(Graph& graph) { Join(graph).Run(); }

void NameLayers(Graph& graph) {
  for (Node& node : graph.nodes) {
    constexpr std::string_view kLinear = "QLinear";
    std::string& name = node.layer_type;
    if (name.starts_with(kLinear)) name.erase(0, kLinear.size());
    if (name.starts_with("QGemm")) name.erase(0, 1);
    for (const std::string_view type : {"ConvInteger", "MatMulInteger"}) {
      if (name == type) name.erase(type.size() - 7);
    }
  }
}

}  // namespace rknnd::soft
