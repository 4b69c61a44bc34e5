// ShuffleChannels, which graph/ finds in networks as Reshape, Transpose,
// Reshape: channels in `groups` stacks are dealt out one from each in turn.

#include <cstring>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

Inference InferShuffle(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  const Shape& shape = node.shape(0);
  const int64_t groups = node.Int("groups", 0);
  if (shape.size() < 3 || groups < 1 || shape[1] % groups != 0 ||
      shape[1] < 1) {
    return node.Error(
        absl::StrCat("groups ", groups, " of a tensor ", ShapeText(shape)));
  }
  return InferOne(node, node.type(0), shape);
}

bool MayLieLast(const NodeView& node, size_t) {
  return SizeOf(node.type(0)) == 1;
}

MadeKernel MakeShuffle(const KernelRequest& request) {
  const TensorSpec& spec = request.inputs[0];
  if (spec.placement != request.outputs[0].placement) {
    return request.node.Error("its output is placed unlike its input");
  }
  const int64_t groups = request.node.Int("groups", 1);
  const int64_t each = spec.shape[1] / groups;
  const int64_t pixels = ProductOf(spec.shape, 2, spec.shape.size());
  const int64_t batch = spec.shape[0];
  if (spec.channels_last()) {
    return MakeSharedKernel(
        WorkOf(request), batch * pixels,
        [=](Inputs inputs, Outputs outputs, Part part) {
          const Range share = ShareOf(part, batch * pixels);
          const std::byte* from = inputs[0] + share.begin * groups * each;
          std::byte* to = outputs[0] + share.begin * groups * each;
          for (int64_t p = share.begin; p < share.end; ++p) {
            if (groups == 2) {
              for (int64_t c = 0; c < each; ++c) {
                to[2 * c] = from[c];
                to[2 * c + 1] = from[each + c];
              }
            } else {
              for (int64_t c = 0; c < each; ++c) {
                for (int64_t g = 0; g < groups; ++g) {
                  to[c * groups + g] = from[g * each + c];
                }
              }
            }
            from += groups * each;
            to += groups * each;
          }
        });
  }
  const auto plane = static_cast<size_t>(pixels) * SizeOf(spec.type);
  const int64_t planes = batch * each * groups;
  return MakeSharedKernel(
      WorkOf(request), planes, [=](Inputs inputs, Outputs outputs, Part part) {
        const Range share = ShareOf(part, planes);
        for (int64_t at = share.begin; at < share.end; ++at) {
          const int64_t g = at % groups, c = at / groups % each;
          const int64_t n = at / groups / each;
          std::memcpy(
              outputs[0] + static_cast<size_t>(at) * plane,
              inputs[0] +
                  static_cast<size_t>((n * groups + g) * each + c) * plane,
              plane);
        }
      });
}

}  // namespace

void RegisterShuffle(OperatorTable& table) {
  table.Add({.domain = "rknnd",
             .type = "ShuffleChannels",
             .placement = PlacementRule::kElementwise,
             .infer = InferShuffle,
             .make = MakeShuffle,
             .may_channels_last = MayLieLast});
}

}  // namespace rknnd::soft
