// The same elements under another shape: Reshape, Flatten, Squeeze, Unsqueeze,
// Identity, Dropout at inference. Copies where the plan has not seen that input
// and output may be one memory.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

MadeKernel MakeCopy(const KernelRequest& request) {
  const size_t size = request.outputs[0].bytes();
  if (request.inputs[0].bytes() != size) {
    return request.node.Error("its output has another size than its input");
  }
  return MakeKernel([size](Inputs inputs, Outputs outputs, std::byte*) {
    if (size > 0 && inputs[0] != outputs[0]) {
      std::memmove(outputs[0], inputs[0], size);
    }
  });
}

// Attribute `axes` up to opset 12, input 1 from then on. Empty: not given.
absl::StatusOr<std::vector<int64_t>> AxesOf(const NodeView& node) {
  if (node.has_input(1)) return node.ConstantInts(1);
  return node.Ints("axes");
}

Inference InferReshape(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 2}));
  std::vector<int64_t> wanted = node.Ints("shape");  // up to opset 4
  if (node.has_input(1)) {
    RKNND_ASSIGN_OR_RETURN(wanted, node.ConstantInts(1));
  } else if (!node.Has("shape")) {
    return node.Error("the new shape is missing");
  }
  if (wanted.size() > kMaxRank) return node.Error("has too many axes");
  const Shape& from = node.shape(0);
  const bool zero_is_zero = node.Int("allowzero", 0) != 0;
  Shape to;
  size_t open = wanted.size();
  for (size_t d = 0; d < wanted.size(); ++d) {
    int64_t dim = wanted[d];
    if (dim == 0 && !zero_is_zero) {
      if (d >= from.size()) {
        return node.Error(absl::StrCat("axis ", d, " is to be copied, input ",
                                       ShapeText(from), " has none"));
      }
      dim = from[d];
    }
    if (dim == -1) {
      if (open != wanted.size()) return node.Error("-1 occurs twice");
      open = d;
      dim = 1;
    }
    if (dim < 0) return node.Error(absl::StrCat("a dimension is ", dim));
    to.push_back(dim);
  }
  const int64_t have = ProductOf(from, 0, from.size());
  const absl::StatusOr<int64_t> count = ElementCount(to);
  if (!count.ok()) return node.Error(std::string(count.status().message()));
  const int64_t rest = *count;
  if (open != wanted.size()) {
    if (rest == 0 || have % rest != 0) {
      return node.Error(absl::StrCat(ShapeText(from), " cannot become ",
                                     ShapeText(to), " times anything"));
    }
    to[open] = have / rest;
  } else if (rest != have) {
    return node.Error(
        absl::StrCat(ShapeText(from), " cannot become ", ShapeText(to)));
  }
  return InferOne(node, node.type(0), to);
}

Inference InferFlatten(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  const Shape& from = node.shape(0);
  int64_t axis = node.Int("axis", 1);
  const auto rank = static_cast<int64_t>(from.size());
  if (axis < -rank || axis > rank) {
    return node.Error(
        absl::StrCat("axis ", axis, " of a tensor of rank ", rank));
  }
  if (axis < 0) axis += rank;
  const auto cut = static_cast<size_t>(axis);
  return InferOne(node, node.type(0),
                  {ProductOf(from, 0, cut), ProductOf(from, cut, from.size())});
}

Inference InferSqueeze(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 2}));
  const Shape& from = node.shape(0);
  RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> given, AxesOf(node));
  RKNND_ASSIGN_OR_RETURN(const std::vector<size_t> axes,
                         CheckAxes(node, given, from.size()));
  Shape to;
  for (size_t d = 0; d < from.size(); ++d) {
    const bool named = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (named && from[d] != 1) {
      return node.Error(
          absl::StrCat("axis ", d, " of ", ShapeText(from), " is not 1"));
    }
    if (named || (axes.empty() && from[d] == 1)) continue;
    to.push_back(from[d]);
  }
  return InferOne(node, node.type(0), to);
}

Inference InferUnsqueeze(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 2}));
  const Shape& from = node.shape(0);
  RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> given, AxesOf(node));
  if (given.size() > kMaxRank) return node.Error("has too many axes");
  const size_t rank = from.size() + given.size();
  RKNND_ASSIGN_OR_RETURN(const std::vector<size_t> axes,
                         CheckAxes(node, given, rank));
  Shape to;
  size_t next = 0;
  for (size_t d = 0; d < rank; ++d) {
    const bool named = std::find(axes.begin(), axes.end(), d) != axes.end();
    to.push_back(named ? 1 : from[next++]);
  }
  return InferOne(node, node.type(0), to);
}

Inference InferIdentity(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  return InferOne(node, node.type(0), node.shape(0));
}

// The mask says which elements were kept: all of them.
Inference InferDropout(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 3, 2}));
  if (node.has_input(2)) {
    const Constant* training = node.constant(2);
    // Training that drops nothing is none.
    const Constant* ratio = node.constant(1);
    const bool drops_nothing =
        ratio != nullptr && ratio->elements() == 1 &&
        std::all_of(ratio->data.begin(), ratio->data.end(),
                    [](std::byte b) { return b == std::byte{0}; });
    if (ratio == nullptr && node.has_input(1) &&
        (training == nullptr || training->data.size() != 1 ||
         *training->as<uint8_t>() != 0)) {
      return node.NeedsConstant(1);
    }
    if (!drops_nothing && (training == nullptr || training->data.size() != 1 ||
                           *training->as<uint8_t>() != 0)) {
      return node.Error("training mode is not supported");
    }
  }
  // Before opset 10 the mask has the type of the data.
  const DataType mask = node.node().opset < 10 ? node.type(0) : DataType::kBool;
  return Infer(node, {{node.type(0), node.shape(0)}, {mask, node.shape(0)}});
}

MadeKernel MakeDropout(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(auto copy, MakeCopy(request));
  if (request.node.output_count() < 2) return copy;
  const DataType type = request.outputs[1].type;
  const int64_t count = request.outputs[1].elements();
  return MakeKernel(
      [copy = std::shared_ptr<Kernel>(std::move(copy)), type, count](
          Inputs inputs, Outputs outputs, std::byte* scratch) {
        (void)copy->Run(inputs, outputs, scratch);
        if (outputs[1] == nullptr) return;
        VisitType(type, [&]<class T>(std::type_identity<T>) {
          std::fill_n(As<T>(outputs[1]), count, T{1});
        });
      });
}

bool MayBlock(const NodeView& node, size_t, int) {
  return IsBlockable(node, 0);
}

}  // namespace

void RegisterReshape(OperatorTable& table) {
  table.Add({.type = "Reshape", .infer = InferReshape, .make = MakeCopy});
  table.Add({.type = "Flatten", .infer = InferFlatten, .make = MakeCopy});
  table.Add({.type = "Squeeze", .infer = InferSqueeze, .make = MakeCopy});
  table.Add({.type = "Unsqueeze", .infer = InferUnsqueeze, .make = MakeCopy});
  table.Add({.type = "Identity",
             .placement = PlacementRule::kElementwise,
             .infer = InferIdentity,
             .make = MakeCopy,
             .may_block = MayBlock});
  table.Add({.type = "Dropout", .infer = InferDropout, .make = MakeDropout});
}

}  // namespace rknnd::soft
