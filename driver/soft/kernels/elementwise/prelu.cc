// PRelu: Relu whose slope below zero is given, most often for each channel.

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/elementwise/broadcast.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

// One slope for each channel (a vector, before opset 7) or a tensor that
// broadcasts to the input.
absl::StatusOr<Shape> SlopeShape(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  const Shape& input = node.shape(0);
  Shape slope = node.shape(1);
  if (node.node().opset < 7 && slope.size() == 1 && slope[0] != 1 &&
      input.size() >= 2 && slope[0] == input[1]) {
    slope.resize(input.size() - 1, 1);
  }
  RKNND_ASSIGN_OR_RETURN(const Shape output,
                         BroadcastShape(node, input, slope));
  if (output != input) {
    return node.Error(absl::StrCat("slope ", ShapeText(node.shape(1)),
                                   " does not fit input ", ShapeText(input)));
  }
  return slope;
}

Inference InferPRelu(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(SlopeShape(node).status());
  return InferOne(node, node.type(0), node.shape(0));
}

// The slope of each channel, or one for all, where they are known now.
const float* ChannelSlopes(const NodeView& node, int64_t* count) {
  const float* slopes = ConstantFloats(node, 1);
  const auto shape = SlopeShape(node);
  if (slopes == nullptr || !shape.ok()) return nullptr;
  const size_t rank = node.shape(0).size();
  *count = ProductOf(*shape, 0, shape->size());
  if (*count == 1) return slopes;
  if (rank < 2 || shape->size() + 1 < rank) return nullptr;
  const int64_t channels = (*shape)[shape->size() + 1 - rank];
  return *count == channels && channels == node.shape(0)[1] ? slopes : nullptr;
}

bool MayBlockPRelu(const NodeView& node, size_t i, int) {
  int64_t count = 0;
  return i != 1 && IsBlockable(node, 0) &&
         ChannelSlopes(node, &count) != nullptr;
}

MadeKernel MakeBlockedPRelu(const KernelRequest& request) {
  const TensorSpec& spec = request.outputs[0];
  const int64_t lanes = spec.placement.block;
  const int64_t channels = spec.shape[1];
  const int64_t blocks = (channels + lanes - 1) / lanes;
  const int64_t pixels = ProductOf(spec.shape, 2, spec.shape.size());
  int64_t count = 0;
  const float* slopes = ChannelSlopes(request.node, &count);
  if (slopes == nullptr || request.inputs[0].placement != spec.placement) {
    return request.node.Error("its output is placed unlike its input");
  }
  RKNND_ASSIGN_OR_RETURN(
      const std::byte* const kept,
      request.weights.Store(static_cast<size_t>(blocks * lanes) * sizeof(float),
                            [&](std::byte* room) {
                              for (int64_t c = 0; c < channels; ++c) {
                                As<float>(room)[c] = slopes[count == 1 ? 0 : c];
                              }
                            }));
  const int64_t planes = spec.shape[0] * blocks;
  return MakeSharedKernel(
      WorkOf(request), planes, [=](Inputs inputs, Outputs outputs, Part part) {
        const Range share = ShareOf(part, planes);
        const int64_t run = pixels * lanes;
        for (int64_t plane = share.begin; plane < share.end; ++plane) {
          const float* slope = As<float>(kept) + plane % blocks * lanes;
          const float* in = As<float>(inputs[0]) + plane * run;
          float* out = As<float>(outputs[0]) + plane * run;
          for (int64_t p = 0; p < run; p += lanes) {
            for (int64_t l = 0; l < lanes; ++l) {
              const float x = in[p + l];
              out[p + l] = x < 0.0F ? x * slope[l] : x;
            }
          }
        }
      });
}

MadeKernel MakePRelu(const KernelRequest& request) {
  if (request.outputs[0].placement.block > 1) return MakeBlockedPRelu(request);
  RKNND_ASSIGN_OR_RETURN(const Shape slope, SlopeShape(request.node));
  const Shape& to = request.outputs[0].shape;
  const Shape strides = DenseStrides(to);
  const StridedLoop<3> loop(to,
                            {strides, BroadcastStrides(slope, to), strides});
  return MakeSharedKernel(request, [loop](Inputs inputs, Outputs outputs,
                                          Part part) {
    RunBinary(loop, ShareOf(part, loop.elements(), kElementUnit),
              As<float>(inputs[0]), As<float>(inputs[1]), As<float>(outputs[0]),
              [](float x, float a) { return x < 0.0F ? x * a : x; });
  });
}

}  // namespace

void RegisterPRelu(OperatorTable& table) {
  table.Add({.type = "PRelu",
             .placement = PlacementRule::kElementwise,
             .infer = InferPRelu,
             .make = MakePRelu,
             .may_block = MayBlockPRelu,
             .overwrites = Overwrite::kFirst});
}

}  // namespace rknnd::soft
