// Image inputs of networks written for NHWC: such a network turns its input to
// NCHW itself, which here the input layer does anyway. Its Transpose goes, and
// the input is NCHW inside like that of every other network; to an application
// images are NHWC either way. The passes are in the order of passes.cc.

#include <algorithm>
#include <variant>
#include <vector>

#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

bool TurnsToNchw(const Node& node) {
  if (!node.domain.empty() || node.type != "Transpose") return false;
  const auto perm = node.attributes.find("perm");
  if (perm == node.attributes.end()) return false;
  const auto* axes = std::get_if<std::vector<int64_t>>(&perm->second);
  return axes != nullptr && *axes == std::vector<int64_t>{0, 3, 1, 2};
}

// Grey, RGB, or RGB with something beside it; more in every row and column.
bool IsImage(const Shape& shape) {
  return shape.size() == 4 &&
         (shape[3] == 1 || shape[3] == 3 || shape[3] == 4) && shape[1] > 4 &&
         shape[2] > 4;
}

}  // namespace

void TurnImages(Graph& graph) {
  const Uses uses(graph);
  std::vector<bool> removed(graph.nodes.size(), false);
  for (GraphPort& port : graph.inputs) {
    const Value& value = graph.value(port.value);
    if (!value.shape.has_value() || !IsImage(*value.shape) ||
        uses.count(port.value) != 1) {
      continue;
    }
    const auto reader = std::find_if(
        graph.nodes.begin(), graph.nodes.end(), [&port](const Node& node) {
          return std::find(node.inputs.begin(), node.inputs.end(),
                           port.value) != node.inputs.end();
        });
    if (reader == graph.nodes.end() || !TurnsToNchw(*reader) ||
        reader->inputs.size() != 1 || reader->outputs.size() != 1 ||
        uses.is_output(reader->outputs[0])) {
      continue;
    }
    const Shape& pixels = *value.shape;
    Value& turned = graph.value(reader->outputs[0]);
    turned.type = value.type;
    turned.shape = Shape{pixels[0], pixels[3], pixels[1], pixels[2]};
    port.value = reader->outputs[0];
    removed[static_cast<size_t>(reader - graph.nodes.begin())] = true;
  }
  RemoveNodes(graph, removed);
}

}  // namespace rknnd::soft
