// BatchNormalization at inference, where fusion could not fold it into a
// convolution: a scale and a shift for each channel.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/epilogue.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

Inference InferBatchNormalization(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {5, 5, 5}));
  if (node.Int("training_mode", 0) != 0 ||
      (node.node().opset < 7 && node.Int("is_test", 1) == 0 &&
       node.output_count() > 1)) {
    return node.Error("training mode is not supported");
  }
  const Shape& shape = node.shape(0);
  if (shape.size() < 2) {
    return node.Error(absl::StrCat("its input is ", ShapeText(shape)));
  }
  for (size_t i = 0; i < 5; ++i) {
    RKNND_RETURN_IF_ERROR(CheckFloat(node, i));
    if (i > 0 && node.shape(i) != Shape{shape[1]}) {
      return node.Error(absl::StrCat("input ", i, " is ",
                                     ShapeText(node.shape(i)), ", input 0 has ",
                                     shape[1], " channels"));
    }
  }
  for (size_t i = 1; i < node.output_count(); ++i) {
    if (node.node().outputs[i] != kNoValue) {
      return node.Error("training mode is not supported");
    }
  }
  const Shape channels = {shape[1]};
  return Infer(node, {{DataType::kFloat32, shape},
                      {DataType::kFloat32, channels},
                      {DataType::kFloat32, channels},
                      {DataType::kFloat32, channels},
                      {DataType::kFloat32, channels}});
}

bool MayBlock(const NodeView& node, size_t i, int) {
  return (i == 0 || i >= node.input_count()) && IsBlockable(node, 0);
}

MadeKernel MakeBatchNormalization(const KernelRequest& request) {
  RKNND_RETURN_IF_ERROR(EpilogueStep::Check(request));
  const TensorSpec& spec = request.outputs[0];
  if (request.inputs[0].placement != spec.placement) {
    return request.node.Error("its output is placed unlike its input");
  }
  const float epsilon = request.node.Float("epsilon", 1e-5F);
  const int64_t channels = spec.shape[1];
  const int64_t lanes = spec.placement.block;
  const int64_t blocks = (channels + lanes - 1) / lanes;
  const int64_t batch = spec.shape[0];
  const int64_t pixels = ProductOf(spec.shape, 2, spec.shape.size());
  const EpilogueStep step(request);
  constexpr size_t kMostLanes = 16;  // of floats in blocks
  return MakeSharedKernel(
      WorkOf(request), batch * blocks,
      [=](Inputs inputs, Outputs outputs, Part part) {
        const auto* gamma = As<float>(inputs[1]);
        const auto* beta = As<float>(inputs[2]);
        const auto* mean = As<float>(inputs[3]);
        const auto* variance = As<float>(inputs[4]);
        const Range planes = ShareOf(part, batch * blocks);
        const int64_t run = pixels * lanes;
        for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
          // Of a block's channels, 0 for those that only fill it up.
          std::array<float, kMostLanes> scale{}, shift{};
          const int64_t first = plane % blocks * lanes;
          for (int64_t l = 0; l < std::min(lanes, channels - first); ++l) {
            const int64_t c = first + l;
            const auto at = static_cast<size_t>(l);
            scale[at] = gamma[c] / std::sqrt(variance[c] + epsilon);
            shift[at] = beta[c] - mean[c] * scale[at];
          }
          const float* in = As<float>(inputs[0]) + plane * run;
          float* out = As<float>(outputs[0]) + plane * run;
          if (lanes == 1) {
            const float a = scale[0], b = shift[0];
            for (int64_t p = 0; p < pixels; ++p) out[p] = in[p] * a + b;
          } else {
            for (int64_t p = 0; p < run; p += lanes) {
              for (int64_t l = 0; l < lanes; ++l) {
                const auto at = static_cast<size_t>(l);
                out[p + l] = in[p + l] * scale[at] + shift[at];
              }
            }
          }
        }
        step.Activate(As<float>(outputs[0]),
                      {planes.begin * run, planes.end * run});
      });
}

}  // namespace

void RegisterBatchNormalization(OperatorTable& table) {
  table.Add({.type = "BatchNormalization",
             .placement = PlacementRule::kElementwise,
             .infer = InferBatchNormalization,
             .make = MakeBatchNormalization,
             .may_block = MayBlock,
             .takes_activation = true,
             .overwrites = Overwrite::kFirst});
}

}  // namespace rknnd::soft
