// Types and shapes, node by node, and constant folding on the way: the shape of
// one node is often the contents of another.

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/graph/fold.h"
#include "driver/soft/graph/onnx_operators.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/uses.h"
#include "driver/soft/kernels/expansion.h"

namespace rknnd::soft {
namespace {

// Files know nothing of the domain that the software NPU has for itself.
std::string Named(const Node& node) {
  const bool is_plain = node.domain.empty() || node.domain == "rknnd";
  return absl::StrCat("operator '",
                      is_plain ? "" : absl::StrCat(node.domain, "::"),
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

// Values whose readers may become integer layers, or move the bytes, if these
// keep their scale. Other readers want the numbers.
std::vector<bool> ReadAsBytes(const Graph& graph) {
  std::vector<bool> read(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    size_t count = MovedInputs(graph, node);
    for (const char* type : {"Conv", "Gemm", "MatMul", "Add", "Mul"}) {
      if (IsStandard(node, type)) count = node.inputs.size();
    }
    for (size_t i = 0; i < count; ++i) {
      if (node.inputs[i] != kNoValue) {
        read[static_cast<size_t>(node.inputs[i])] = true;
      }
    }
  }
  for (const GraphPort& port : graph.outputs) {
    read[static_cast<size_t>(port.value)] = true;
  }
  return read;
}

// What the node is written as, its first node last, on top of what is still to
// be looked at. `room`: for how many more nodes there is.
absl::Status Expand(Graph& graph, const Operator& op, const Node& node,
                    size_t& room, std::vector<Node>& rest) {
  Expansion expansion(graph, node, room);
  RKNND_RETURN_IF_ERROR(op.expand(NodeView(graph, node), expansion));
  std::vector<Node>& nodes = expansion.nodes();
  const size_t count = CountOf(nodes);
  if (count > room) {
    return absl::ResourceExhaustedError(
        absl::StrCat(Named(node), " makes ", count,
                     " nodes, all that are written out may make ", kMaxNodes));
  }
  room -= count;
  std::move(nodes.rbegin(), nodes.rend(), std::back_inserter(rest));
  return absl::OkStatus();
}

void AssumeShapes(Graph& graph, const Node& node) {
  for (size_t i = 0; i < node.outputs.size() && !node.inputs.empty(); ++i) {
    const ValueId like =
        node.inputs[i < node.inputs.size() && node.inputs[i] != kNoValue ? i
                                                                         : 0];
    if (node.outputs[i] == kNoValue || like == kNoValue) continue;
    Value& value = graph.value(node.outputs[i]);
    if (value.shape.has_value()) continue;
    value.shape = graph.value(like).shape;
    value.type = graph.value(like).type;
  }
}

bool HasBody(const Node& node) {
  return std::any_of(
      node.attributes.begin(), node.attributes.end(), [](const auto& named) {
        return std::holds_alternative<std::shared_ptr<const Graph>>(
            named.second);
      });
}

}  // namespace

absl::Status InferAndFold(Graph& graph, const OperatorTable& operators,
                          Folder& folder, bool keep_dequantize,
                          bool assume_shapes) {
  std::vector<bool> as_bytes =
      keep_dequantize ? ReadAsBytes(graph) : std::vector<bool>();
  size_t room = kMaxNodes;  // for what is written out
  // What is still to be looked at, the next one last.
  std::vector<Node> rest(std::make_move_iterator(graph.nodes.rbegin()),
                         std::make_move_iterator(graph.nodes.rend()));
  graph.nodes.clear();
  while (!rest.empty()) {
    graph.nodes.push_back(std::move(rest.back()));
    rest.pop_back();
    const Node& node = graph.nodes.back();
    const Operator* op = operators.Find(node.domain, node.type);
    bool is_shape =
        node.domain.empty() && (node.type == "Shape" || node.type == "Size");
    if (op == nullptr && !is_shape) {
      // An operator of somebody's own: the program ends before it, at run.
      if (!node.domain.empty() || !IsOnnxOperator(node.type)) {
        if (assume_shapes) AssumeShapes(graph, node);
        continue;
      }
      return absl::UnimplementedError(
          absl::StrCat(Named(node), " is not supported by the software NPU"));
    }
    if (!HaveShapes(graph, node.inputs)) {
      if (!HasBody(node)) continue;
      return absl::UnimplementedError(
          absl::StrCat(Named(node),
                       " holds a graph and reads what has no "
                       "known shape, which is not supported"));
    }
    RKNND_ASSIGN_OR_RETURN(bool folded, FoldShape(graph, node));
    if (!folded && op->expand != nullptr) {
      const Node written = node;
      graph.nodes.pop_back();
      RKNND_RETURN_IF_ERROR(Expand(graph, *op, written, room, rest));
      as_bytes.resize(keep_dequantize ? graph.values.size() : 0, true);
      continue;
    }
    if (!folded) {
      absl::StatusOr<std::vector<InferredOutput>> inferred =
          op->infer(NodeView(graph, node));
      if (!inferred.ok()) {
        // Kernels name node and operator themselves.
        return inferred.status();
      }
      RKNND_RETURN_IF_ERROR(TakeShapes(graph, node, *std::move(inferred)));
      // What else is read may be a parameter: the scales of a Resize.
      if (keep_dequantize && IsDequantize(node) &&
          (as_bytes[static_cast<size_t>(node.outputs[0])] ||
           graph.value(node.outputs[0]).shape->size() > 1)) {
        continue;
      }
      RKNND_ASSIGN_OR_RETURN(folded, folder.Fold(graph, node, *op));
    }
    if (folded) graph.nodes.pop_back();
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
