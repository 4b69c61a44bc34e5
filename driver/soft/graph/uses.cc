#include "driver/soft/graph/uses.h"

#include <memory>
#include <utility>

namespace rknnd::soft {

Uses::Uses(const Graph& graph)
    : producer_(graph.values.size(), kNoNode),
      count_(graph.values.size(), 0),
      is_output_(graph.values.size(), false) {
  auto read = [this](ValueId value) {
    if (value != kNoValue) ++count_[static_cast<size_t>(value)];
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (ValueId input : node.inputs) read(input);
    read(node.epilogue.add);
    for (ValueId output : node.outputs) {
      if (output != kNoValue) producer_[static_cast<size_t>(output)] = n;
    }
  }
  for (const GraphPort& port : graph.outputs) {
    read(port.value);
    is_output_[static_cast<size_t>(port.value)] = true;
  }
}

void RemoveNodes(Graph& graph, const std::vector<bool>& removed) {
  std::vector<Node> kept;
  kept.reserve(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!removed[n]) kept.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(kept);
}

ValueId AddConstant(Graph& graph, std::string name, Constant constant) {
  Value value;
  value.name = std::move(name);
  value.type = constant.type;
  value.shape = constant.shape;
  value.constant = std::make_shared<const Constant>(std::move(constant));
  graph.values.push_back(std::move(value));
  return static_cast<ValueId>(graph.values.size() - 1);
}

}  // namespace rknnd::soft
