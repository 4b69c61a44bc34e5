// Quantize goes up and Dequantize down through whatever only moves numbers
// about: that moves bytes then, and convolutions meet their Quantize.

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

ValueId AddBytes(Graph& graph, ValueId like, DataType type) {
  Value value;
  value.name = absl::StrCat(graph.value(like).name, ".quantized");
  value.type = type;
  value.shape = graph.value(like).shape;
  graph.values.push_back(std::move(value));
  return static_cast<ValueId>(graph.values.size() - 1);
}

// Quantize nodes up, from the end of the graph to its start.
class Up {
 public:
  explicit Up(Graph& graph)
      : graph_(graph),
        uses_(graph),
        before_(graph.nodes.size()),
        removed_(graph.nodes.size(), false) {}

  void Run() {
    for (size_t n = graph_.nodes.size(); n > 0; --n) {
      const Node& node = graph_.nodes[n - 1];
      if (!IsQuantize(node) || !WholeTensor(graph_, node).has_value()) {
        continue;
      }
      if (CanPass(node.inputs[0])) {
        removed_[n - 1] = true;
        pending_.push_back(node);
        while (!pending_.empty()) {
          Node next = std::move(pending_.back());
          pending_.pop_back();
          Pass(next);
        }
      }
    }
    std::vector<Node> nodes;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (Node& quantize : before_[n]) nodes.push_back(std::move(quantize));
      if (!removed_[n]) nodes.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  // Whether what makes `value` moves numbers, for this one reader.
  [[nodiscard]] bool CanPass(ValueId value) const {
    const size_t n = uses_.producer(value);
    if (n == Uses::kNoNode || uses_.count(value) != 1 ||
        uses_.is_output(value)) {
      return false;
    }
    const Node& mover = graph_.nodes[n];
    const size_t count = MovedInputs(graph_, mover);
    for (size_t i = 0; i < count; ++i) {
      if (graph_.value(mover.inputs[i]).type != DataType::kFloat32 ||
          !graph_.value(mover.inputs[i]).shape.has_value()) {
        return false;
      }
    }
    return count > 0;
  }

  void Pass(const Node& quantize) {
    const size_t n = uses_.producer(quantize.inputs[0]);
    Node& mover = graph_.nodes[n];
    const DataType type = graph_.value(quantize.outputs[0]).type;
    mover.outputs[0] = quantize.outputs[0];
    const size_t count = MovedInputs(graph_, mover);
    for (size_t i = 0; i < count; ++i) {
      Node above = quantize;
      above.name = absl::StrCat(quantize.name, ".", i);
      above.inputs[0] = mover.inputs[i];
      above.outputs[0] = AddBytes(graph_, mover.inputs[i], type);
      mover.inputs[i] = above.outputs[0];
      if (CanPass(above.inputs[0])) {
        pending_.push_back(std::move(above));
      } else {
        before_[n].push_back(std::move(above));
      }
    }
  }

  Graph& graph_;
  // Counts of the numbers stay right: one reader takes another's place.
  Uses uses_;
  std::vector<std::vector<Node>> before_;
  std::vector<bool> removed_;
  std::vector<Node> pending_;
};

// Dequantize nodes down, from the start to the end; a Quantize that undoes one
// goes.
void Down(Graph& graph) {
  // The Dequantize node that makes a value, as of the nodes seen so far.
  std::vector<Node> found;
  std::vector<size_t> made_by(graph.values.size(), SIZE_MAX);
  std::vector<ValueId> same(graph.values.size(), kNoValue);
  std::vector<Node> nodes;
  const auto dequantize_of = [&](ValueId value) -> const Node* {
    const auto at = static_cast<size_t>(value);
    return at < made_by.size() && made_by[at] != SIZE_MAX ? &found[made_by[at]]
                                                          : nullptr;
  };
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) {
      if (input == kNoValue || static_cast<size_t>(input) >= same.size()) {
        continue;
      }
      if (same[static_cast<size_t>(input)] != kNoValue) {
        input = same[static_cast<size_t>(input)];
      }
    }
    if (IsDequantize(node) && WholeTensor(graph, node).has_value()) {
      made_by[static_cast<size_t>(node.outputs[0])] = found.size();
      found.push_back(node);
      nodes.push_back(std::move(node));
      continue;
    }
    if (IsQuantize(node)) {
      const Node* before = dequantize_of(node.inputs[0]);
      if (before != nullptr && SameScale(graph, *before, node)) {
        same[static_cast<size_t>(node.outputs[0])] = before->inputs[0];
        continue;
      }
      nodes.push_back(std::move(node));
      continue;
    }
    const size_t count = MovedInputs(graph, node);
    const Node* first = count == 0 ? nullptr : dequantize_of(node.inputs[0]);
    bool moves = first != nullptr;
    for (size_t i = 1; i < count && moves; ++i) {
      const Node* other = dequantize_of(node.inputs[i]);
      moves = other != nullptr && SameScale(graph, *first, *other);
    }
    if (!moves) {
      nodes.push_back(std::move(node));
      continue;
    }
    Node below = *first;
    below.name = absl::StrCat(node.name, ".dequantize");
    below.outputs[0] = node.outputs[0];
    for (size_t i = 0; i < count; ++i) {
      node.inputs[i] = dequantize_of(node.inputs[i])->inputs[0];
    }
    const DataType type = graph.value(below.inputs[0]).type;
    node.outputs[0] = AddBytes(graph, node.outputs[0], type);
    below.inputs[0] = node.outputs[0];
    nodes.push_back(std::move(node));
    made_by[static_cast<size_t>(below.outputs[0])] = found.size();
    found.push_back(below);
    nodes.push_back(std::move(below));
  }
  graph.nodes = std::move(nodes);
  for (GraphPort& port : graph.outputs) {
    const auto at = static_cast<size_t>(port.value);
    if (at < same.size() && same[at] != kNoValue) port.value = same[at];
  }
}

}  // namespace

void MoveQuantization(Graph& graph) {
  Up(graph).Run();
  Down(graph);
}

}  // namespace rknnd::soft
