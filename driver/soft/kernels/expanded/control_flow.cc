// If, Loop and Scan whose course is known when the model is loaded: the branch
// that is taken, or the body as often as it runs, in place of the node.
//
// A Loop may end by a condition that only its steps tell. So it is written one
// step at a time: the body, and the rest of the loop, a Loop of rknnd's own
// domain, which inference meets when it has computed the condition. The rest
// reads what the Loop reads, the states as they are by then, and what the steps
// so far have added to outputs.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/expansion.h"
#include "driver/soft/kernels/families.h"

namespace rknnd::soft {
namespace {

// Steps whose results one output may hold: a Concat's inputs.
constexpr int64_t kMaxKept = 4096;

absl::StatusOr<std::shared_ptr<const Graph>> BodyOf(const NodeView& node,
                                                    const char* name) {
  std::shared_ptr<const Graph> body = node.Body(name);
  if (body == nullptr) {
    return node.Error(absl::StrCat("has no graph '", name, "'"));
  }
  if (body->captured > body->inputs.size() ||
      body->captured > node.input_count()) {
    return node.Error(absl::StrCat("'", name, "' reads more than it is given"));
  }
  return body;
}

absl::Status TooLong(const NodeView& node, int64_t steps, size_t each,
                     size_t room) {
  return absl::ResourceExhaustedError(absl::StrCat(
      node.node().type, " '", node.node().name, "': ", steps, " steps of ",
      each, " nodes cannot be written out, there is room for ", room,
      " nodes"));
}

// One boolean or integer that is known.
absl::StatusOr<int64_t> KnownNumber(const NodeView& node, size_t i) {
  RKNND_RETURN_IF_ERROR(node.NeedsConstant(i));
  const Constant& constant = *node.constant(i);
  if (constant.elements() != 1 || IsFloat(constant.type)) {
    return node.Error(absl::StrCat("input ", i, " must be one number, it is ",
                                   ShapeText(constant.shape), " of ",
                                   DataTypeName(constant.type)));
  }
  if (constant.type == DataType::kBool) {
    return constant.data[0] != std::byte{0} ? 1 : 0;
  }
  RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                         node.ConstantInts(i));
  return numbers[0];
}

absl::Status ExpandIf(const NodeView& node, Expansion& to) {
  RKNND_ASSIGN_OR_RETURN(const auto other, BodyOf(node, "else_branch"));
  RKNND_ASSIGN_OR_RETURN(const auto then, BodyOf(node, "then_branch"));
  if (!node.has_input(0) ||
      node.input_count() != 1 + other->captured + then->captured) {
    return node.Error(absl::StrCat("has ", node.input_count(), " inputs"));
  }
  RKNND_ASSIGN_OR_RETURN(const int64_t condition, KnownNumber(node, 0));
  const Graph& taken = condition != 0 ? *then : *other;
  if (taken.inputs.size() != taken.captured ||
      taken.outputs.size() < node.output_count()) {
    return node.Error("its branch has other inputs or outputs than it");
  }
  // What both read from around them: first the other branch's.
  const auto first =
      node.node().inputs.begin() + 1 +
      static_cast<ptrdiff_t>(condition != 0 ? other->captured : 0);
  const std::vector<ValueId> outputs =
      to.Inline(taken, {first, first + static_cast<ptrdiff_t>(taken.captured)},
                node.node().name + "/");
  for (size_t i = 0; i < node.output_count(); ++i) to.Finish(i, outputs[i]);
  return absl::OkStatus();
}

// ---- Loop -------------------------------------------------------------------

// Where things are among the inputs of a loop's rest; of a whole one, whose
// last part is empty.
struct LoopParts {
  std::shared_ptr<const Graph> body;
  size_t states = 0;  // behind the number of steps and the condition
  size_t kept = 0;    // outputs of which each step adds something
  int64_t step = 0;
};

absl::StatusOr<LoopParts> ParseLoop(const NodeView& node) {
  LoopParts parts;
  RKNND_ASSIGN_OR_RETURN(parts.body, BodyOf(node, "body"));
  const Graph& body = *parts.body;
  const size_t formals = body.inputs.size() - body.captured;
  parts.step = node.Int("step", 0);
  if (formals < 2 || body.outputs.size() + 1 < formals || parts.step < 0 ||
      parts.step > kMaxNodes) {
    return node.Error(absl::StrCat("its body has ", formals, " inputs and ",
                                   body.outputs.size(), " outputs"));
  }
  parts.states = formals - 2;
  parts.kept = body.outputs.size() - 1 - parts.states;
  if (node.input_count() !=
          body.inputs.size() + parts.kept * static_cast<size_t>(parts.step) ||
      node.output_count() > parts.states + parts.kept) {
    return node.Error(absl::StrCat("has ", node.input_count(), " inputs and ",
                                   node.output_count(), " outputs, its body ",
                                   formals, " and ", body.outputs.size()));
  }
  return parts;
}

// Whether the body hands its condition on, or says that it goes on: only the
// number of steps ends such a loop.
bool GoesOn(const Graph& body) {
  ValueId condition = body.outputs[0].value;
  const Constant* known = body.value(condition).constant.get();
  if (known != nullptr) {
    return known->elements() == 1 && known->data[0] != std::byte{0};
  }
  for (size_t n = body.nodes.size(); n-- > 0;) {
    const Node& node = body.nodes[n];
    if (node.domain.empty() && node.type == "Identity" &&
        node.inputs.size() == 1 &&
        node.outputs == std::vector<ValueId>{condition}) {
      condition = node.inputs[0];
    }
  }
  return condition == body.inputs[1].value;
}

absl::Status EndLoop(const NodeView& node, const LoopParts& parts,
                     Expansion& to) {
  const std::vector<ValueId>& inputs = node.node().inputs;
  for (size_t i = 0; i < parts.states; ++i) to.Finish(i, inputs[2 + i]);
  for (size_t k = 0; k < parts.kept; ++k) {
    const size_t output = parts.states + k;
    if (output >= node.output_count() ||
        node.node().outputs[output] == kNoValue) {
      continue;
    }
    if (parts.step == 0) {
      return node.Error(absl::StrCat("runs no step, so that its output ",
                                     output, " has no shape"));
    }
    std::vector<ValueId> rows;
    for (size_t at = parts.body->inputs.size() + k; at < inputs.size();
         at += parts.kept) {
      rows.push_back(to.Add("Unsqueeze", {inputs[at], to.Ints({0})}));
    }
    to.Finish(output,
              to.Add("Concat", std::move(rows), {{"axis", int64_t{0}}}));
  }
  return absl::OkStatus();
}

absl::Status ExpandLoop(const NodeView& node, Expansion& to) {
  RKNND_ASSIGN_OR_RETURN(const LoopParts parts, ParseLoop(node));
  const Graph& body = *parts.body;
  if (node.has_input(0)) {
    RKNND_ASSIGN_OR_RETURN(const int64_t steps, KnownNumber(node, 0));
    if (parts.step >= steps) return EndLoop(node, parts, to);
    const size_t each = CountOf(body.nodes) + 1;
    if (GoesOn(body) &&
        (static_cast<size_t>(steps - parts.step) > (to.room() + each) / each)) {
      return TooLong(node, steps, each, to.room());
    }
  }
  if (node.has_input(1)) {
    RKNND_ASSIGN_OR_RETURN(const int64_t goes_on, KnownNumber(node, 1));
    if (goes_on == 0) return EndLoop(node, parts, to);
  }
  if (to.room() <= CountOf(body.nodes) ||
      (parts.kept > 0 && parts.step >= kMaxKept)) {
    return TooLong(node, parts.step + 1, CountOf(body.nodes) + 1, to.room());
  }
  const std::vector<ValueId>& inputs = node.node().inputs;
  std::vector<ValueId> given(
      inputs.begin(),
      inputs.begin() + static_cast<ptrdiff_t>(body.inputs.size()));
  given[0] = to.Int(parts.step);
  given[1] = to.Known({DataType::kBool, {}, {std::byte{1}}});
  // The steps of a rest are named after the Loop.
  const std::string name = node.String("loop", node.node().name);
  const std::vector<ValueId> made =
      to.Inline(body, given, absl::StrCat(name, "/", parts.step, "/"));
  std::vector<ValueId> next = inputs;
  next[1] = made[0];
  std::copy(made.begin() + 1,
            made.begin() + 1 + static_cast<ptrdiff_t>(parts.states),
            next.begin() + 2);
  next.insert(next.end(),
              made.begin() + 1 + static_cast<ptrdiff_t>(parts.states),
              made.end());
  Node& rest =
      to.Be("Loop", std::move(next),
            {{"body", parts.body}, {"step", parts.step + 1}, {"loop", name}});
  rest.domain = "rknnd";
  return absl::OkStatus();
}

// ---- Scan -------------------------------------------------------------------

// `name`'s number for each of `count` tensors; zeros where the node has none.
absl::StatusOr<std::vector<int64_t>> OneForEach(const NodeView& node,
                                                const char* name,
                                                size_t count) {
  std::vector<int64_t> numbers = node.Ints(name);
  if (numbers.empty()) numbers.assign(count, 0);
  if (numbers.size() != count) {
    return node.Error(absl::StrCat(name, " has ", numbers.size(),
                                   " numbers for ", count, " tensors"));
  }
  return numbers;
}

absl::Status ExpandScan(const NodeView& node, Expansion& to) {
  if (node.node().opset < 9) {
    return absl::UnimplementedError(absl::StrCat(
        "Scan '", node.node().name, "' is of opset ", node.node().opset,
        ", supported are 9 and later: export the model with a later opset"));
  }
  RKNND_ASSIGN_OR_RETURN(const auto body, BodyOf(node, "body"));
  const size_t formals = body->inputs.size() - body->captured;
  const int64_t scanned = node.Int("num_scan_inputs", 0);
  if (scanned < 1 || static_cast<size_t>(scanned) > formals ||
      node.input_count() != body->inputs.size()) {
    return node.Error(absl::StrCat("has ", node.input_count(), " inputs, ",
                                   scanned, " of them to be scanned, its body ",
                                   formals));
  }
  const auto scans = static_cast<size_t>(scanned);
  const size_t states = formals - scans;
  if (body->outputs.size() < states ||
      node.output_count() > body->outputs.size()) {
    return node.Error(absl::StrCat("has ", node.output_count(),
                                   " outputs, its body ",
                                   body->outputs.size()));
  }
  const size_t kept = body->outputs.size() - states;
  RKNND_ASSIGN_OR_RETURN(const auto axes,
                         OneForEach(node, "scan_input_axes", scans));
  RKNND_ASSIGN_OR_RETURN(const auto directions,
                         OneForEach(node, "scan_input_directions", scans));
  RKNND_ASSIGN_OR_RETURN(const auto output_axes,
                         OneForEach(node, "scan_output_axes", kept));
  RKNND_ASSIGN_OR_RETURN(const auto output_directions,
                         OneForEach(node, "scan_output_directions", kept));
  int64_t steps = -1;
  for (size_t s = 0; s < scans; ++s) {
    if (!node.has_input(states + s)) return node.Error("an input is missing");
    const Shape& shape = node.shape(states + s);
    RKNND_ASSIGN_OR_RETURN(const size_t axis,
                           CheckAxis(node, axes[s], shape.size()));
    if (steps >= 0 && steps != shape[axis]) {
      return node.Error(
          absl::StrCat("scans ", steps, " steps and ", shape[axis]));
    }
    steps = shape[axis];
  }
  const size_t each = CountOf(body->nodes) + scans + kept;
  if (steps < 1) return node.Error("scans no step");
  if (steps > kMaxKept ||
      static_cast<size_t>(steps) > to.room() / std::max<size_t>(each, 1)) {
    return TooLong(node, steps, each, to.room());
  }
  const std::vector<ValueId>& inputs = node.node().inputs;
  std::vector<ValueId> given = inputs;
  std::vector<std::vector<ValueId>> rows(kept);
  for (int64_t step = 0; step < steps; ++step) {
    for (size_t s = 0; s < scans; ++s) {
      const int64_t at = directions[s] == 0 ? step : steps - 1 - step;
      given[states + s] = to.Add("Gather", {inputs[states + s], to.Int(at)},
                                 {{"axis", axes[s]}});
    }
    const std::vector<ValueId> made =
        to.Inline(*body, given, absl::StrCat(node.node().name, "/", step, "/"));
    std::copy(made.begin(), made.begin() + static_cast<ptrdiff_t>(states),
              given.begin());
    for (size_t k = 0; k < kept; ++k) {
      rows[k].push_back(
          to.Add("Unsqueeze", {made[states + k], to.Ints({output_axes[k]})}));
    }
  }
  for (size_t i = 0; i < states; ++i) to.Finish(i, given[i]);
  for (size_t k = 0; k < kept && states + k < node.output_count(); ++k) {
    if (output_directions[k] != 0) std::reverse(rows[k].begin(), rows[k].end());
    to.Finish(states + k,
              to.Add("Concat", std::move(rows[k]), {{"axis", output_axes[k]}}));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterControlFlow(OperatorTable& table) {
  table.Add({.type = "If", .expand = ExpandIf});
  table.Add({.type = "Loop", .expand = ExpandLoop});
  table.Add({.domain = "rknnd", .type = "Loop", .expand = ExpandLoop});
  table.Add({.type = "Scan", .expand = ExpandScan});
}

}  // namespace rknnd::soft
