// Pad with zeros + Conv -> Conv with wider pads.

#include <cstdint>
#include <optional>
#include <vector>

#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

// Begin and end of each axis behind the channels; nothing where it pads others,
// cuts, or writes anything but zeros.
std::optional<std::vector<int64_t>> SpatialPads(const Graph& graph,
                                                const Node& pad) {
  const NodeView view(graph, pad);
  if (view.String("mode", "constant") != "constant") return std::nullopt;
  std::vector<int64_t> pads =
      view.Ints(view.Has("paddings") ? "paddings" : "pads");
  if (view.has_input(1)) {
    const auto given = view.ConstantInts(1);
    if (!given.ok()) return std::nullopt;
    pads = *given;
  }
  float value = view.Float("value", 0.0F);
  if (view.has_input(2)) {
    const Constant* known = view.constant(2);
    if (known == nullptr || known->type != DataType::kFloat32 ||
        known->elements() != 1) {
      return std::nullopt;
    }
    value = *known->as<float>();
  }
  const size_t rank = view.shape(0).size();
  if (value != 0.0F || view.has_input(3) || rank < 3 ||
      pads.size() != 2 * rank) {
    return std::nullopt;
  }
  std::vector<int64_t> spatial;
  for (size_t side = 0; side < 2; ++side) {
    for (size_t d = 0; d < rank; ++d) {
      const int64_t amount = pads[side * rank + d];
      if (amount < 0 || (d < 2 && amount != 0)) return std::nullopt;
      if (d >= 2) spatial.push_back(amount);
    }
  }
  return spatial;
}

}  // namespace

void FoldPad(Graph& graph) {
  const Uses uses(graph);
  for (Node& conv : graph.nodes) {
    if (!IsStandard(conv, "Conv") || InputOf(conv, 0) == kNoValue) continue;
    const ValueId padded = conv.inputs[0];
    const size_t n = uses.producer(padded);
    if (n == Uses::kNoNode || uses.count(padded) != 1 ||
        uses.is_output(padded) || !IsStandard(graph.nodes[n], "Pad") ||
        InputOf(graph.nodes[n], 0) == kNoValue) {
      continue;
    }
    const NodeView view(graph, conv);
    if (view.String("auto_pad", "NOTSET") != "NOTSET") continue;
    std::optional<std::vector<int64_t>> pads =
        SpatialPads(graph, graph.nodes[n]);
    const std::vector<int64_t> own = view.Ints("pads");
    if (!pads.has_value() || (!own.empty() && own.size() != pads->size())) {
      continue;
    }
    bool fits = true;
    for (size_t i = 0; i < own.size(); ++i) {
      fits = fits && !__builtin_add_overflow((*pads)[i], own[i], &(*pads)[i]);
    }
    if (!fits) continue;
    conv.attributes["pads"] = *pads;
    conv.inputs[0] = graph.nodes[n].inputs[0];
  }
  RemoveDeadNodes(graph);
}

}  // namespace rknnd::soft
