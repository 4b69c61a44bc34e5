// The nodes of the graph: which tensors they read and write, how many tasks
// each has, and the attributes of the types that need some.

#include <utility>

#include "driver/rknn_file/slots.h"
#include "driver/rknpu/file/parts.h"

namespace rknnd::rknpu {
namespace {

using base::Expected;
using rknn_file::FlatTable;
using rknn_file::FlatVector;
namespace slot = rknn_file::node_slot;

// Which field of an attribute table is what; -1: that kind has none.
struct AttributeSlots {
  uint8_t kind;
  int dilations, group, kernel, pads, strides, axis, sizes, permutation;
};
constexpr int kNo = -1;
constexpr AttributeSlots kAttributeSlots[] = {
    {1, 1, 2, 3, 4, 5, kNo, kNo, kNo},            // Conv
    {2, 1, kNo, 3, 6, 7, kNo, kNo, kNo},          // ConvTranspose
    {3, 2, kNo, 3, 4, 6, kNo, kNo, kNo},          // MaxPool
    {5, kNo, kNo, 3, 4, 5, kNo, kNo, kNo},        // AveragePool
    {19, kNo, kNo, kNo, kNo, kNo, 0, kNo, kNo},   // Concat
    {20, kNo, kNo, kNo, kNo, kNo, 0, 1, kNo},     // Split
    {25, kNo, kNo, kNo, kNo, kNo, kNo, kNo, 0},   // Transpose
    {51, kNo, kNo, kNo, kNo, kNo, 0, kNo, kNo},   // ArgMax
    {61, kNo, kNo, kNo, kNo, kNo, 0, kNo, kNo}};  // Softmax

NodeAttributes ReadAttributes(Section& section, const FlatTable& node) {
  NodeAttributes attributes;
  attributes.kind = node.Number<uint8_t>(slot::kAttributeKind);
  if (attributes.kind == 0) return attributes;
  const FlatTable table = node.Table(slot::kAttributes);
  for (const AttributeSlots& slots : kAttributeSlots) {
    if (slots.kind != attributes.kind) continue;
    const auto list = [&](int place) {
      return place == kNo ? std::vector<int32_t>()
                          : section.Numbers<int32_t>(
                                table, static_cast<uint32_t>(place));
    };
    attributes.dilations = list(slots.dilations);
    attributes.kernel = list(slots.kernel);
    attributes.pads = list(slots.pads);
    attributes.strides = list(slots.strides);
    attributes.split_sizes = list(slots.sizes);
    attributes.permutation = list(slots.permutation);
    if (slots.group != kNo) {
      attributes.group =
          table.Number<uint32_t>(static_cast<uint32_t>(slots.group), 1);
    }
    if (slots.axis != kNo) {
      attributes.axis =
          table.Number<int32_t>(static_cast<uint32_t>(slots.axis));
    }
  }
  return attributes;
}

Expected<void> ReadTaskCounts(Section& section, const FlatTable& table,
                              Node& node) {
  node.task_counts = section.Numbers<uint32_t>(table, slot::kTasks);
  const std::vector<uint32_t> more =
      section.Numbers<uint32_t>(table, slot::kTableTasks);
  for (size_t l = 0; l < node.task_counts.size() && l < more.size(); ++l) {
    if (more[l] > kMaxTasks || node.task_counts[l] > kMaxTasks) {
      return Damaged("node '" + node.name + "' has " +
                     std::to_string(uint64_t{node.task_counts[l]} + more[l]) +
                     " tasks");
    }
    node.task_counts[l] += more[l];
  }
  return {};
}

Expected<Node> ReadNode(Section& section, const FlatTable& table,
                        const ProgramFile& file) {
  Node node;
  node.type = section.Text(table, slot::kType);
  node.name = section.Text(table, slot::kName);
  constexpr uint8_t kNpu = 2;
  node.on_npu = table.Number<uint8_t>(slot::kDevice) == kNpu;
  node.inputs = section.Numbers<uint32_t>(table, slot::kInputs);
  node.outputs = section.Numbers<uint32_t>(table, slot::kOutputs);
  for (const auto* tensors : {&node.inputs, &node.outputs}) {
    for (const uint32_t tensor : *tensors) {
      if (tensor < file.tensors.size()) continue;
      return Damaged("node '" + node.name + "' names tensor " +
                     std::to_string(tensor) + " of " +
                     std::to_string(file.tensors.size()));
    }
  }
  node.attributes = ReadAttributes(section, table);
  node.custom_attributes = section.Bytes(table, slot::kDocument);
  Expected<void> counted = ReadTaskCounts(section, table, node);
  if (!counted.ok()) return std::move(counted).error();
  return node;
}

}  // namespace

Expected<void> ReadNodes(Section& section, const FlatTable& graph,
                         ProgramFile& file) {
  const FlatVector tables =
      section.Tables(graph, rknn_file::graph_slot::kNodes);
  if (tables.size() > kMaxNodes) {
    return Damaged("it has " + std::to_string(tables.size()) + " nodes");
  }
  file.nodes.reserve(tables.size());
  for (uint32_t i = 0; i < tables.size(); ++i) {
    Expected<Node> node = ReadNode(section, graph.TableAt(tables, i), file);
    if (!node.ok()) return std::move(node).error();
    file.nodes.push_back(*std::move(node));
  }
  return {};
}

}  // namespace rknnd::rknpu
