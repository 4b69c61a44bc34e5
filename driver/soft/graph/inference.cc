// Types and shapes, node by node, and constant folding on the way: the shape of
// one node is often the contents of another.

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/graph/fold.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/uses.h"

namespace rknnd::soft {
namespace {

std::string Named(const Node& node) {
  return absl::StrCat(
      "operator '", node.domain.empty() ? "" : absl::StrCat(node.domain, "::"),
      node.type, "' of node '", node.name, "'");
}

// Shape and Size read no contents: their answer is known when the shape is.
// False: not such a node.
absl::StatusOr<bool> FoldShape(Graph& graph, const Node& node) {
  if (!node.domain.empty() || (node.type != "Shape" && node.type != "Size")) {
    return false;
  }
  if (node.inputs.size() != 1 || node.inputs[0] == kNoValue ||
      node.outputs.size() != 1 || node.outputs[0] == kNoValue) {
    return absl::InvalidArgumentError(
        absl::StrCat(Named(node), " needs one input and one output"));
  }
  const Shape shape = *graph.value(node.inputs[0]).shape;
  std::vector<int64_t> numbers(shape.begin(), shape.end());
  Constant answer;
  answer.type = DataType::kInt64;
  if (node.type == "Size") {
    RKNND_ASSIGN_OR_RETURN(int64_t elements, ElementCount(shape));
    numbers = {elements};
  } else {
    NodeView view(graph, node);
    auto rank = static_cast<int64_t>(numbers.size());
    auto clamp = [rank](int64_t axis) {
      if (axis < 0) axis += rank;
      return std::min(std::max<int64_t>(axis, 0), rank);
    };
    int64_t start = clamp(view.Int("start", 0));
    int64_t end = std::max(clamp(view.Int("end", rank)), start);
    numbers = {numbers.begin() + start, numbers.begin() + end};
    answer.shape = {static_cast<int64_t>(numbers.size())};
  }
  answer.data.resize(numbers.size() * sizeof(int64_t));
  if (!numbers.empty()) {
    std::memcpy(answer.data.data(), numbers.data(), answer.data.size());
  }
  Value& value = graph.value(node.outputs[0]);
  value.type = answer.type;
  value.shape = answer.shape;
  value.constant = std::make_shared<const Constant>(std::move(answer));
  return true;
}

bool InputsHaveShapes(const Graph& graph, const Node& node) {
  for (ValueId id : node.inputs) {
    if (id != kNoValue && !graph.value(id).shape.has_value()) return false;
  }
  return true;
}

absl::Status TakeShapes(Graph& graph, const Node& node,
                        std::vector<InferredOutput> inferred) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    if (i >= inferred.size()) {
      return absl::UnimplementedError(
          absl::StrCat(Named(node), ": output ", i,
                       " is not supported by the software NPU"));
    }
    RKNND_ASSIGN_OR_RETURN(int64_t elements, ElementCount(inferred[i].shape));
    if (elements >
        kMaxTensorBytes / static_cast<int64_t>(SizeOf(inferred[i].type))) {
      return absl::ResourceExhaustedError(absl::StrCat(
          Named(node), " makes a tensor ", ShapeText(inferred[i].shape), " of ",
          DataTypeName(inferred[i].type), ", more than ", kMaxTensorBytes >> 20,
          " MiB"));
    }
    Value& value = graph.value(node.outputs[i]);
    value.type = inferred[i].type;
    value.shape = std::move(inferred[i].shape);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InferAndFold(Graph& graph, const OperatorTable& operators) {
  Folder folder;
  std::vector<bool> folded(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const Operator* op = operators.Find(node.domain, node.type);
    bool is_shape =
        node.domain.empty() && (node.type == "Shape" || node.type == "Size");
    if (op == nullptr && !is_shape) {
      // A foreign operator: the program ends before it, at run.
      if (!node.domain.empty()) continue;
      return absl::UnimplementedError(
          absl::StrCat(Named(node), " is not supported by the software NPU"));
    }
    if (!InputsHaveShapes(graph, node)) continue;
    RKNND_ASSIGN_OR_RETURN(folded[n], FoldShape(graph, node));
    if (folded[n]) continue;
    absl::StatusOr<std::vector<InferredOutput>> inferred =
        op->infer(NodeView(graph, node));
    if (!inferred.ok()) {
      // Kernels name node and operator themselves.
      return inferred.status();
    }
    RKNND_RETURN_IF_ERROR(TakeShapes(graph, node, *std::move(inferred)));
    RKNND_ASSIGN_OR_RETURN(folded[n], folder.Fold(graph, node, *op));
  }
  RemoveNodes(graph, folded);
  return absl::OkStatus();
}

}  // namespace rknnd::soft
