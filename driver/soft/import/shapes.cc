#include "driver/soft/import/shapes.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/import/onnx_import.h"

namespace rknnd::soft {
namespace {

// Of all rows together: what the largest network of one shape may cost, so that
// a list of shapes is no way to keep the loader busy for longer.
constexpr size_t kMaxRowNodes = kMaxNodes;
// Inputs and outputs of these, which are tensors to plan: a node may have
// thousands.
constexpr size_t kMaxRowOperands = 8 * kMaxRowNodes;
// Each row packs the weights again to find that they are there already; some
// GiB take a second.
constexpr uint64_t kMaxRowWeights = uint64_t{16} << 30;

// "input 1 'mask'"
std::string InputName(const Graph& graph, size_t i) {
  return absl::StrCat("input ", i, " '", graph.inputs[i].name, "'");
}

absl::Status Wrong(size_t row, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("row ", row, ": ", what));
}

std::string DeclaredText(const Shape& declared) {
  std::string text;
  for (int64_t dim : declared) {
    absl::StrAppend(&text, text.empty() ? "" : "x",
                    dim < 0 ? "?" : absl::StrCat(dim));
  }
  return text.empty() ? "scalar" : text;
}

absl::Status CheckRow(size_t r, const InputShapes& row, const Graph& graph) {
  if (row.size() != graph.inputs.size()) {
    // The one that is missing, or the first that is too much.
    const std::string missing =
        row.size() < graph.inputs.size()
            ? absl::StrCat(InputName(graph, row.size()), " has none")
            : absl::StrCat("there is no input ", graph.inputs.size());
    return Wrong(r, absl::StrCat("has ", row.size(), " shapes, the model ",
                                 graph.inputs.size(), " inputs: ", missing));
  }
  for (size_t i = 0; i < row.size(); ++i) {
    const Shape& shape = row[i];
    const std::string name = InputName(graph, i);
    const std::optional<Shape>& declared = graph.inputs[i].declared;
    if (declared.has_value() && declared->size() != shape.size()) {
      return Wrong(r, absl::StrCat(name, " has ", shape.size(), " dimensions (",
                                   ShapeText(shape), "), the model's has ",
                                   declared->size(), " (",
                                   DeclaredText(*declared), ")"));
    }
    for (int64_t dim : shape) {
      if (dim <= 0) {
        return Wrong(
            r, absl::StrCat(name, " of shape ", ShapeText(shape),
                            " has a dimension of ", dim, ", the least is 1"));
      }
    }
    if (absl::Status size = ElementCount(shape).status(); !size.ok()) {
      return base::Annotate(size, absl::StrCat("row ", r, ": ", name));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCost(const std::vector<InputShapes>& rows,
                       const Graph& graph) {
  if (rows.size() > kMaxShapeRows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", rows.size(), " rows, at most ", kMaxShapeRows, " can be"));
  }
  uint64_t weights = 0;
  for (const Value& value : graph.values) {
    if (value.constant != nullptr) weights += value.constant->data.size();
  }
  const size_t nodes = std::max<size_t>(graph.nodes.size(), 1);
  size_t operands = graph.inputs.size() + graph.outputs.size();
  for (const Node& node : graph.nodes) {
    operands += node.inputs.size() + node.outputs.size();
  }
  if (rows.size() > 1 && (rows.size() > kMaxRowNodes / nodes ||
                          operands > kMaxRowOperands / rows.size() ||
                          weights > kMaxRowWeights / rows.size())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("has ", rows.size(), " rows, too many for a network of ",
                     graph.nodes.size(), " nodes with ", operands,
                     " inputs and outputs and ", weights >> 20,
                     " MiB of weights: rows times nodes may be ", kMaxRowNodes,
                     ", rows times inputs and outputs ", kMaxRowOperands,
                     ", rows times weights ", kMaxRowWeights >> 30, " GiB"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRows(const ModelOptions& options, const Graph& graph,
                       const std::string& model) {
  const std::vector<InputShapes>& rows = options.dynamic_input;
  const std::string what =
      absl::StrCat("model '", model, "': option 'dynamic_input'");
  if (absl::Status cost = CheckCost(rows, graph); !cost.ok()) {
    return base::Annotate(cost, what);
  }
  std::map<InputShapes, size_t> known;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (absl::Status status = CheckRow(r, rows[r], graph); !status.ok()) {
      return base::Annotate(status, what);
    }
    const auto [at, is_new] = known.emplace(rows[r], r);
    if (!is_new) {
      const std::string shape =
          rows[r].empty() ? ""
                          : absl::StrCat(" (", InputName(graph, 0), " ",
                                         ShapeText(rows[r][0]), ")");
      return base::Annotate(
          Wrong(r, absl::StrCat("is the same as row ", at->second, shape)),
          what);
    }
  }
  if (rows.size() * graph.inputs.size() > kMaxListedShapes) {
    return base::Annotate(absl::ResourceExhaustedError(absl::StrCat(
                              "lists ", rows.size() * graph.inputs.size(),
                              " shapes in all, at most ", kMaxListedShapes)),
                          what);
  }
  return absl::OkStatus();
}

absl::Status FixInputs(const InputShapes* row, Graph& graph) {
  bool changed = false;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const GraphPort& port = graph.inputs[i];
    std::optional<Shape>& shape = graph.value(port.value).shape;
    if (row == nullptr) {
      if (shape.has_value()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", port.name, "'", port.open,
          ", or list the shapes it may have with option 'dynamic_input' "
          "(docs/model-options.md)"));
    }
    changed = changed || shape != (*row)[i];
    shape = (*row)[i];
  }
  if (!changed) return absl::OkStatus();
  // The file's notes on other values were made for its own shapes.
  std::vector<bool> given(graph.values.size(), false);
  for (const GraphPort& port : graph.inputs) {
    given[static_cast<size_t>(port.value)] = true;
  }
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (!given[v] && graph.values[v].constant == nullptr) {
      graph.values[v].shape.reset();
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBatch(uint32_t batch, const Graph& graph) {
  if (batch <= 1) return absl::OkStatus();
  for (const auto* ports : {&graph.inputs, &graph.outputs}) {
    const char* word = ports == &graph.inputs ? "input" : "output";
    for (const GraphPort& port : *ports) {
      const Value& value = graph.value(port.value);
      if (!value.shape.has_value()) continue;  // the planner's error
      if (value.shape->empty() || value.shape->front() != 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "option 'rknn_batch_size' ", batch, ": ", word, " '", port.name,
            "' of shape ", ShapeText(*value.shape),
            " has no first dimension of 1 to repeat: leave the option out for "
            "a network that has its batch already"));
      }
      RKNND_ASSIGN_OR_RETURN(const int64_t elements,
                             ElementCount(*value.shape));
      // The widest type that memory may be bound in has 8 bytes.
      if (elements > kMaxTensorBytes / 8 / int64_t{batch}) {
        return absl::ResourceExhaustedError(
            absl::StrCat("option 'rknn_batch_size' ", batch, ": ", word, " '",
                         port.name, "' of shape ", ShapeText(*value.shape),
                         " would be larger than the ", kMaxTensorBytes >> 20,
                         " MiB that one tensor may have"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
