// Subgraphs that the NPU has one operator for (guide 8.5.3): LayerNorm written
// out as mean, difference, square, ..., and GLU as Split, Sigmoid, Mul.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

class Subgraphs {
 public:
  Subgraphs(Graph& graph, const OperatorTable& operators)
      : graph_(graph),
        operators_(operators),
        uses_(graph),
        reader_(graph.values.size(), Uses::kNoNode) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for (ValueId input : graph.nodes[n].inputs) {
        if (input != kNoValue) reader_[static_cast<size_t>(input)] = n;
      }
    }
  }

  void Run() {
    const size_t count = graph_.nodes.size();
    for (size_t n = 0; n < count; ++n) {
      if (IsStandard(graph_.nodes[n], "Div")) LayerNorm(n);
      if (IsStandard(graph_.nodes[n], "Mul")) Glu(n);
    }
  }

 private:
  // The node of that type that makes `value` for `readers` reads by nodes.
  [[nodiscard]] const Node* Maker(ValueId value, const char* type,
                                  size_t readers = 1) const {
    if (value == kNoValue || uses_.count(value) != readers ||
        uses_.is_output(value)) {
      return nullptr;
    }
    const size_t n = uses_.producer(value);
    if (n == Uses::kNoNode || !IsStandard(graph_.nodes[n], type)) {
      return nullptr;
    }
    return &graph_.nodes[n];
  }

  [[nodiscard]] std::optional<float> Number(const Node& node, size_t i) const {
    const Constant* constant = ConstantOf(graph_, node, i);
    if (constant == nullptr || constant->type != DataType::kFloat32 ||
        constant->elements() != 1) {
      return std::nullopt;
    }
    return *constant->as<float>();
  }

  // The first of the axes, all the last ones, that a ReduceMean takes.
  [[nodiscard]] std::optional<int64_t> LastAxes(const Node& mean) const {
    const NodeView view(graph_, mean);
    if (view.Int("keepdims", 1) != 1 || !view.has_input(0)) return std::nullopt;
    std::vector<int64_t> axes = view.Ints("axes");
    if (view.has_input(1)) {
      const auto given = view.ConstantInts(1);
      if (!given.ok()) return std::nullopt;
      axes = *given;
    }
    const auto rank = static_cast<int64_t>(view.shape(0).size());
    for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
    std::sort(axes.begin(), axes.end());
    const auto first = rank - static_cast<int64_t>(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != first + static_cast<int64_t>(i)) return std::nullopt;
    }
    if (axes.empty()) return std::nullopt;
    return first;
  }

  // The one reader of `value`, of that type, whose other input is a known
  // tensor of `shape`'s axes from `axis` on, or fewer of the last ones.
  struct Affine {
    size_t node = 0;
    ValueId constant = kNoValue;
  };
  [[nodiscard]] std::optional<Affine> Affinity(size_t after, ValueId value,
                                               const char* type,
                                               const Shape& shape,
                                               int64_t axis) const {
    if (uses_.count(value) != 1 || uses_.is_output(value)) return std::nullopt;
    const size_t n = reader_[static_cast<size_t>(value)];
    if (n == Uses::kNoNode || n <= after) return std::nullopt;
    const Node& node = graph_.nodes[n];
    if (!IsStandard(node, type) || node.inputs.size() != 2) return std::nullopt;
    const ValueId other = node.inputs[node.inputs[0] == value ? 1 : 0];
    const Constant* constant =
        other == kNoValue ? nullptr : graph_.value(other).constant.get();
    const Shape last(shape.begin() + axis, shape.end());
    if (constant == nullptr || constant->type != DataType::kFloat32 ||
        constant->shape != last) {
      return std::nullopt;
    }
    return Affine{n, other};
  }

  // d = x - mean(x), y = d / sqrt(mean(d * d) + epsilon) (* scale (+ shift)).
  void LayerNorm(size_t n) {
    const Node& quotient = graph_.nodes[n];
    const ValueId difference = InputOf(quotient, 0);
    const Node* root = Maker(InputOf(quotient, 1), "Sqrt");
    if (root == nullptr) return;
    const Node* sum = Maker(InputOf(*root, 0), "Add");
    if (sum == nullptr) return;
    const size_t known = Number(*sum, 0).has_value() ? 0 : 1;
    const std::optional<float> epsilon = Number(*sum, known);
    const Node* variance = Maker(InputOf(*sum, 1 - known), "ReduceMean");
    if (!epsilon.has_value() || variance == nullptr) return;
    const Node* square = Maker(InputOf(*variance, 0), "Pow");
    const bool by_power = square != nullptr;
    if (!by_power) square = Maker(InputOf(*variance, 0), "Mul");
    if (square == nullptr || InputOf(*square, 0) != difference ||
        (by_power ? Number(*square, 1) != 2.0F
                  : InputOf(*square, 1) != difference)) {
      return;
    }
    const Node* sub = Maker(difference, "Sub", by_power ? 2 : 3);
    if (sub == nullptr) return;
    const ValueId x = InputOf(*sub, 0);
    const Node* mean = Maker(InputOf(*sub, 1), "ReduceMean");
    if (mean == nullptr || x == kNoValue || InputOf(*mean, 0) != x) return;
    const std::optional<int64_t> axis = LastAxes(*mean);
    const std::optional<int64_t> other_axis = LastAxes(*variance);
    if (!axis.has_value() || axis != other_axis) return;
    const Value& input = graph_.value(x);
    if (input.type != DataType::kFloat32 || !input.shape.has_value() ||
        operators_.Find("", "LayerNormalization") == nullptr) {
      return;
    }
    const Shape shape = *input.shape;
    const std::optional<Affine> scale =
        Affinity(n, quotient.outputs[0], "Mul", shape, *axis);
    std::optional<Affine> shift;
    if (scale.has_value()) {
      shift = Affinity(scale->node, graph_.nodes[scale->node].outputs[0], "Add",
                       shape, *axis);
    }
    Node made;
    made.name = quotient.name;
    made.type = "LayerNormalization";
    made.layer_type = "LayerNorm";
    made.opset = 17;
    made.attributes["axis"] = *axis;
    made.attributes["epsilon"] = *epsilon;
    made.inputs = {x, scale.has_value() ? scale->constant : Ones()};
    if (shift.has_value()) made.inputs.push_back(shift->constant);
    const size_t last = shift.has_value()   ? shift->node
                        : scale.has_value() ? scale->node
                                            : n;
    made.outputs = graph_.nodes[last].outputs;
    graph_.nodes[last] = std::move(made);
    // What led to it is dead now. The quotient still looks like one.
  }

  ValueId Ones() {
    Constant one;
    one.shape = {1};
    one.data.resize(sizeof(float));
    *reinterpret_cast<float*>(one.data.data()) = 1.0F;
    return AddConstant(graph_, "one", std::move(one));
  }

  // a, b = Split(x) in halves; a * Sigmoid(b).
  void Glu(size_t n) {
    Node& product = graph_.nodes[n];
    for (size_t i = 0; i < 2; ++i) {
      const Node* gate = Maker(InputOf(product, i), "Sigmoid");
      if (gate == nullptr) continue;
      const ValueId open = InputOf(product, 1 - i);
      const ValueId gated = InputOf(*gate, 0);
      if (open == kNoValue || gated == kNoValue || uses_.count(open) != 1 ||
          uses_.is_output(open) || uses_.count(gated) != 1 ||
          uses_.is_output(gated)) {
        continue;
      }
      const size_t p = uses_.producer(open);
      if (p == Uses::kNoNode || p != uses_.producer(gated)) continue;
      const Node& split = graph_.nodes[p];
      if (!split.domain.empty() || split.type != "Split" ||
          split.outputs.size() != 2 || split.outputs[0] != open ||
          InputOf(split, 0) == kNoValue ||
          graph_.value(open).type != DataType::kFloat32 ||
          graph_.value(open).shape != graph_.value(split.outputs[1]).shape) {
        continue;
      }
      Node made;
      made.name = product.name;
      made.type = "Glu";
      made.domain = "rknnd";
      made.layer_type = "GLU";
      made.opset = 1;
      made.attributes["axis"] = NodeView(graph_, split).Int("axis", 0);
      made.inputs = {split.inputs[0]};
      made.outputs = product.outputs;
      product = std::move(made);
      return;
    }
  }

  Graph& graph_;
  const OperatorTable& operators_;
  // Of the graph as it was; what a node becomes makes the same value.
  Uses uses_;
  std::vector<size_t> reader_;  // of each value, the last
};

}  // namespace

void FindSubgraphs(Graph& graph, const OperatorTable& operators) {
  Subgraphs(graph, operators).Run();
  RemoveDeadNodes(graph);
}

}  // namespace rknnd::soft
