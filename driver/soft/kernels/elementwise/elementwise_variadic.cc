// Operators of any number of inputs that broadcast: Max, Min, Sum, Mean; and
// Where, which has three.

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/elementwise/broadcast.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

Inference InferVariadic(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, kAnyNumber}));
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  if (node.type(0) == DataType::kBool) return CheckFloat(node, 0);
  Shape shape = node.shape(0);
  for (size_t i = 1; i < node.input_count(); ++i) {
    RKNND_ASSIGN_OR_RETURN(shape, BroadcastShape(node, shape, node.shape(i)));
  }
  return InferOne(node, node.type(0), shape);
}

struct Largest {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Smallest {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Total {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a + b;
    } else {
      return static_cast<T>(static_cast<uint64_t>(a) +
                            static_cast<uint64_t>(b));
    }
  }
};

struct VariadicLoops {
  std::vector<StridedLoop<3>> inputs;
  TensorSpec output;
};

// The first input is spread over the output, the others are taken in one after
// the other.
template <class T, class F, bool kAverage>
void TakeAll(const VariadicLoops& loops, Inputs inputs, Outputs outputs,
             Part part) {
  const StridedLoop<3>& first = loops.inputs[0];
  T* out = As<T>(outputs[0]);
  const Range range = ShareOf(part, first.elements(), kElementUnit);
  RunBinary(first, range, out, As<T>(inputs[0]), out, [](T, T b) { return b; });
  for (size_t i = 1; i < loops.inputs.size(); ++i) {
    RunBinary(loops.inputs[i], range, out, As<T>(inputs[i]), out, F());
  }
  const auto count = static_cast<T>(loops.inputs.size());
  for (int64_t i = range.begin; kAverage && i < range.end; ++i) {
    out[i] = static_cast<T>(out[i] / count);
  }
  // Only floats are ever blocked.
  ClearPadding(loops.output, As<float>(outputs[0]), range);
}

template <class F, bool kAverage = false>
MadeKernel MakeVariadic(const KernelRequest& request) {
  const TensorSpec& spec = request.outputs[0];
  const Shape to = PhysicalShape(spec);
  const Shape to_strides = DenseStrides(to);
  VariadicLoops loops = {{}, spec};
  for (const TensorSpec& input : request.inputs) {
    const Shape from = PhysicalShape(input);
    if (from.size() > to.size()) {
      return request.node.Error("its inputs are placed unlike its output");
    }
    loops.inputs.emplace_back(
        to, std::array<Shape, 3>{to_strides, BroadcastStrides(from, to),
                                 to_strides});
  }
  using Take = void (*)(const VariadicLoops&, Inputs, Outputs, Part);
  const Take take =
      VisitType(spec.type, []<class T>(std::type_identity<T>) -> Take {
        return TakeAll<T, F, kAverage>;
      });
  return MakeSharedKernel(
      request, [loops = std::move(loops), take](Inputs inputs, Outputs outputs,
                                                Part part) {
        take(loops, inputs, outputs, part);
      });
}

Inference InferMean(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, kAnyNumber}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  return InferVariadic(node);
}

Inference InferWhere(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {3, 3}));
  RKNND_RETURN_IF_ERROR(CheckType(node, 0, {DataType::kBool}));
  if (node.type(1) != node.type(2)) {
    return node.Error("chooses between values of two types");
  }
  RKNND_ASSIGN_OR_RETURN(const Shape values,
                         BroadcastShape(node, node.shape(1), node.shape(2)));
  RKNND_ASSIGN_OR_RETURN(const Shape shape,
                         BroadcastShape(node, node.shape(0), values));
  return InferOne(node, node.type(1), shape);
}

template <class T>
void Choose(const StridedLoop<4>& loop, Inputs inputs, Outputs outputs,
            Part part) {
  const auto* condition = As<uint8_t>(inputs[0]);
  const T* yes = As<T>(inputs[1]);
  const T* no = As<T>(inputs[2]);
  T* out = As<T>(outputs[0]);
  const auto& step = loop.inner_strides();
  const Range range = ShareOf(part, loop.elements(), kElementUnit);
  loop.Run(range, [&](const auto& at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      out[at[3] + i * step[3]] = condition[at[0] + i * step[0]] != 0
                                     ? yes[at[1] + i * step[1]]
                                     : no[at[2] + i * step[2]];
    }
  });
}

MadeKernel MakeWhere(const KernelRequest& request) {
  const Shape& to = request.outputs[0].shape;
  const StridedLoop<4> loop(
      to, {BroadcastStrides(request.inputs[0].shape, to),
           BroadcastStrides(request.inputs[1].shape, to),
           BroadcastStrides(request.inputs[2].shape, to), DenseStrides(to)});
  using Chosen = void (*)(const StridedLoop<4>&, Inputs, Outputs, Part);
  const Chosen choose = VisitType(
      request.outputs[0].type,
      []<class T>(std::type_identity<T>) -> Chosen { return Choose<T>; });
  return MakeSharedKernel(
      request, [loop, choose](Inputs inputs, Outputs outputs, Part part) {
        choose(loop, inputs, outputs, part);
      });
}

}  // namespace

void RegisterVariadic(OperatorTable& table) {
  Operator op = {.placement = PlacementRule::kElementwise,
                 .infer = InferVariadic,
                 .may_block = MayBlockBroadcast,
                 .overwrites = Overwrite::kFirst};
  op.type = "Max";
  op.make = MakeVariadic<Largest>;
  table.Add(op);
  op.type = "Min";
  op.make = MakeVariadic<Smallest>;
  table.Add(op);
  op.type = "Sum";
  op.make = MakeVariadic<Total>;
  table.Add(op);
  op.type = "Mean";
  op.infer = InferMean;
  op.make = MakeVariadic<Total, /*kAverage=*/true>;
  table.Add(op);
  table.Add({.type = "Where", .infer = InferWhere, .make = MakeWhere});
}

}  // namespace rknnd::soft
