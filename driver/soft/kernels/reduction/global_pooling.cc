// GlobalAveragePool and GlobalMaxPool.

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

Inference InferGlobal(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  Shape shape = node.shape(0);
  if (shape.size() < 3) {
    return node.Error(absl::StrCat("its input ", ShapeText(shape),
                                   " must have spatial axes"));
  }
  if (ProductOf(shape, 2, shape.size()) == 0) {
    return node.Error("its input has no pixels");
  }
  std::fill(shape.begin() + 2, shape.end(), 1);
  return InferOne(node, DataType::kFloat32, shape);
}

bool MayBlock(const NodeView& node, size_t, int) {
  return IsBlockable(node, 0);
}

// `kLanes` channels lie side by side.
template <int64_t kLanes, bool kMaximum>
void Reduce(const float* in, float* out, int64_t planes, int64_t pixels) {
  for (int64_t plane = 0; plane < planes; ++plane) {
    // Several sums at once, for speed and because they lose less.
    constexpr int64_t kSums = kLanes == 1 ? 16 : kLanes;
    std::array<float, kSums> sums;
    sums.fill(kMaximum ? -std::numeric_limits<float>::infinity() : 0.0F);
    const int64_t n = pixels * kLanes;
    int64_t i = 0;
    const auto add = [&](int64_t lane, float value) {
      float& sum = sums[static_cast<size_t>(lane)];
      if (kMaximum) {
        sum = value > sum ? value : sum;
      } else {
        sum += value;
      }
    };
    for (; i + kSums <= n; i += kSums) {
      for (int64_t lane = 0; lane < kSums; ++lane) add(lane, in[i + lane]);
    }
    for (; i < n; ++i) add(i % kSums, in[i]);
    in += n;
    if (kLanes == 1) {
      float all = sums[0];
      for (int64_t lane = 1; lane < kSums; ++lane) {
        const float sum = sums[static_cast<size_t>(lane)];
        all = kMaximum ? std::max(all, sum) : all + sum;
      }
      sums[0] = all;
    }
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const float sum = sums[static_cast<size_t>(lane)];
      *out++ = kMaximum ? sum : sum / static_cast<float>(pixels);
    }
  }
}

template <bool kMaximum>
MadeKernel MakeGlobal(const KernelRequest& request) {
  const TensorSpec& spec = request.inputs[0];
  const Shape shape = PhysicalShape(spec);
  const int64_t planes = shape[0] * shape[1];
  const int64_t pixels = ProductOf(spec.shape, 2, spec.shape.size());
  if (spec.placement != request.outputs[0].placement) {
    return request.node.Error("its output is placed unlike its input");
  }
  const auto reduce = spec.placement.block == 16  ? Reduce<16, kMaximum>
                      : spec.placement.block == 8 ? Reduce<8, kMaximum>
                                                  : Reduce<1, kMaximum>;
  const int64_t lanes = spec.placement.block;
  return MakeSharedKernel(
      WorkOf(request), planes, [=](Inputs inputs, Outputs outputs, Part part) {
        const Range share = ShareOf(part, planes);
        reduce(As<float>(inputs[0]) + share.begin * pixels * lanes,
               As<float>(outputs[0]) + share.begin * lanes, share.size(),
               pixels);
      });
}

}  // namespace

void RegisterGlobalPooling(OperatorTable& table) {
  table.Add({.type = "GlobalAveragePool",
             .placement = PlacementRule::kElementwise,
             .infer = InferGlobal,
             .make = MakeGlobal<false>,
             .may_block = MayBlock});
  table.Add({.type = "GlobalMaxPool",
             .placement = PlacementRule::kElementwise,
             .infer = InferGlobal,
             .make = MakeGlobal<true>,
             .may_block = MayBlock});
}

}  // namespace rknnd::soft
