// QLinearConv and ConvInteger: convolutions of 8-bit tensors. What the pass
// over quantised graphs makes carries a float32 bias (in real units) and may
// have an activation behind it.

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/convolution/integer_convolution.h"
#include "driver/soft/kernels/convolution/window.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/quantization.h"

namespace rknnd::soft {
namespace {

// Positions of the inputs: QLinearConv's, then ConvInteger's.
struct Places {
  size_t weights, input_zero, weights_zero;
};
Places PlacesOf(const NodeView& node) {
  if (node.node().type == "QLinearConv") return {3, 2, 5};
  return {1, 2, 3};
}

struct Params {
  Window window;
  int64_t groups = 1;
  Shape output;
};

absl::StatusOr<Params> Parse(const NodeView& node) {
  const bool linear = node.node().type == "QLinearConv";
  RKNND_RETURN_IF_ERROR(CheckArity(node, linear ? Arity{8, 9} : Arity{2, 4}));
  const Places places = PlacesOf(node);
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 0));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, places.weights));
  const Shape& input = node.shape(0);
  const Shape& weights = node.shape(places.weights);
  if (input.size() < 3 || weights.size() != input.size()) {
    return node.Error(absl::StrCat("input ", ShapeText(input), ", weights ",
                                   ShapeText(weights)));
  }
  Params params;
  params.groups = node.Int("group", 1);
  if (params.groups < 1 || input[1] % params.groups != 0 ||
      weights[1] != input[1] / params.groups || weights[1] < 1 ||
      weights[0] < 1 || weights[0] % params.groups != 0) {
    return node.Error(absl::StrCat("group ", params.groups,
                                   " does not fit input ", ShapeText(input),
                                   " and weights ", ShapeText(weights)));
  }
  if (linear && node.has_input(8)) {
    RKNND_RETURN_IF_ERROR(
        CheckType(node, 8, {DataType::kInt32, DataType::kFloat32}));
    if (node.shape(8) != Shape{weights[0]}) {
      return node.Error(absl::StrCat("bias ", ShapeText(node.shape(8)), ", ",
                                     weights[0], " output channels"));
    }
  }
  RKNND_ASSIGN_OR_RETURN(
      params.window, ParseWindow(node, input, std::span(weights).subspan(2)));
  params.output = {input[0], weights[0]};
  params.output.insert(params.output.end(), params.window.output.begin(),
                       params.window.output.end());
  return params;
}

Inference InferLinear(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 7));
  return InferOne(node, TypeOfZero(node, 7), params.output);
}

Inference InferInteger(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  return InferOne(node, DataType::kInt32, params.output);
}

bool MayLieLast(const NodeView& node, size_t i) {
  return i == 0 || i >= node.input_count();
}

// The weights minus their zero points, of which there is one, or one for each
// output channel.
absl::Status TakeWeights(const NodeView& node, const Places& places,
                         IntegerConvolutionSpec& spec) {
  const Constant* weights = node.constant(places.weights);
  const Constant* zeros = node.constant(places.weights_zero);
  if (weights == nullptr ||
      (node.has_input(places.weights_zero) && zeros == nullptr)) {
    return absl::FailedPreconditionError(
        absl::StrCat(node.node().type, " '", node.node().name,
                     "': weights must be known when the model is loaded"));
  }
  const int64_t channels = weights->shape[0];
  if (zeros != nullptr &&
      (zeros->type != weights->type ||
       (zeros->elements() != 1 && zeros->elements() != channels))) {
    return node.Error(absl::StrCat("zero points ", ShapeText(zeros->shape),
                                   " of its weights"));
  }
  spec.weights_shape = weights->shape;
  const int64_t count = weights->elements();
  spec.weights.resize(static_cast<size_t>(count));
  const auto take = [&](const auto* from) {
    const int64_t each = count / channels;
    for (int64_t c = 0; c < channels; ++c) {
      int32_t zero = 0;
      if (zeros != nullptr) {
        const int64_t at = zeros->elements() == 1 ? 0 : c;
        zero = weights->type == DataType::kInt8
                   ? int32_t{zeros->as<int8_t>()[at]}
                   : int32_t{zeros->as<uint8_t>()[at]};
      }
      for (int64_t i = c * each; i < (c + 1) * each; ++i) {
        spec.weights[static_cast<size_t>(i)] =
            static_cast<int16_t>(int32_t{from[i]} - zero);
      }
    }
  };
  weights->type == DataType::kInt8 ? take(weights->as<int8_t>())
                                   : take(weights->as<uint8_t>());
  return absl::OkStatus();
}

IntegerConvolutionSpec SpecOf(const KernelRequest& request,
                              const Params& params) {
  IntegerConvolutionSpec spec;
  spec.input = request.inputs[0];
  spec.output = request.outputs[0];
  spec.groups = params.groups;
  spec.strides = params.window.strides;
  spec.dilations = params.window.dilations;
  spec.pads_begin = params.window.pads_begin;
  spec.pads_end = params.window.pads_end;
  return spec;
}

MadeKernel MakeLinear(const KernelRequest& request) {
  const NodeView& node = request.node;
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  IntegerConvolutionSpec spec = SpecOf(request, params);
  RKNND_RETURN_IF_ERROR(TakeWeights(node, PlacesOf(node), spec));
  RKNND_ASSIGN_OR_RETURN(const Quantized x,
                         ReadQuantizedTensor(node, 1, node.type(0)));
  RKNND_ASSIGN_OR_RETURN(const Quantized y,
                         ReadQuantizedTensor(node, 6, TypeOfZero(node, 7)));
  const float* weight_scale = ConstantFloats(node, 4);
  const auto channels = static_cast<size_t>(spec.weights_shape[0]);
  const size_t scales = weight_scale == nullptr
                            ? 0
                            : static_cast<size_t>(node.constant(4)->elements());
  if (scales != 1 && scales != channels) {
    return absl::FailedPreconditionError(
        absl::StrCat("QLinearConv '", node.node().name, "' has ", scales,
                     " known scales for ", channels, " output channels"));
  }
  spec.input_zero = x.zero[0];
  spec.output_zero = y.zero[0];
  spec.scale.clear();
  for (size_t c = 0; c < scales; ++c) {
    if (!(weight_scale[c] > 0.0F) || !std::isfinite(weight_scale[c])) {
      return node.Error("a scale of its weights is not a positive number");
    }
    spec.scale.push_back(x.scale[0] * weight_scale[c] / y.scale[0]);
  }
  RKNND_RETURN_IF_ERROR(CheckFinite(node, spec.scale));
  if (node.has_input(8)) {
    const Constant* bias = node.constant(8);
    if (bias == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("QLinearConv '", node.node().name,
                       "': its bias must be known when the model is loaded"));
    }
    for (size_t c = 0; c < channels; ++c) {
      if (bias->type == DataType::kInt32) {
        spec.bias.push_back(static_cast<float>(bias->as<int32_t>()[c]));
        continue;
      }
      const double unit =
          double{x.scale[0]} * double{weight_scale[scales == 1 ? 0 : c]};
      spec.bias.push_back(
          static_cast<float>(double{bias->as<float>()[c]} / unit));
    }
    RKNND_RETURN_IF_ERROR(CheckFinite(node, spec.bias));
  }
  spec.epilogue = node.node().epilogue;
  if (spec.epilogue.activation == Activation::kClip) {
    spec.epilogue.alpha /= y.scale[0];
    spec.epilogue.beta /= y.scale[0];
  }
  return MakeIntegerConvolution(request, spec);
}

MadeKernel MakeInteger(const KernelRequest& request) {
  const NodeView& node = request.node;
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  IntegerConvolutionSpec spec = SpecOf(request, params);
  RKNND_RETURN_IF_ERROR(TakeWeights(node, PlacesOf(node), spec));
  if (node.has_input(2)) {
    if (node.type(2) != node.type(0) ||
        ProductOf(node.shape(2), 0, node.shape(2).size()) != 1) {
      return node.Error(absl::StrCat("zero point ", ShapeText(node.shape(2)),
                                     " of ", DataTypeName(node.type(2))));
    }
    const Constant* zero = node.constant(2);
    if (zero == nullptr) {
      spec.input_zero_at = 2;
    } else {
      spec.input_zero = zero->type == DataType::kInt8
                            ? int32_t{*zero->as<int8_t>()}
                            : int32_t{*zero->as<uint8_t>()};
    }
  }
  return MakeIntegerConvolution(request, spec);
}

}  // namespace

void RegisterQuantizedConvolution(OperatorTable& table) {
  table.Add({.type = "QLinearConv",
             .placement = PlacementRule::kChannelwise,
             .infer = InferLinear,
             .make = MakeLinear,
             .may_channels_last = MayLieLast});
  table.Add({.type = "ConvInteger",
             .placement = PlacementRule::kChannelwise,
             .infer = InferInteger,
             .make = MakeInteger,
             .may_channels_last = MayLieLast});
}

}  // namespace rknnd::soft
