// Element by element on 8-bit tensors: com.microsoft's QLinearAdd, QLinearMul,
// QLinearSigmoid and QLinearLeakyRelu, and Lookup, into which the pass over
// quantised graphs turns whatever maps each of the 256 values to another.

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/quantization.h"

namespace rknnd::soft {
namespace {

// a, its scale and zero point, b, its scale and zero point, the output's.
Inference InferBinary(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {7, 8}));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 0));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 3));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 7));
  if (node.type(0) != node.type(3) || TypeOfZero(node, 7) != node.type(0)) {
    return node.Error("inputs and output are not of one type");
  }
  RKNND_ASSIGN_OR_RETURN(const Shape shape,
                         BroadcastShape(node, node.shape(0), node.shape(3)));
  return InferOne(node, node.type(0), shape);
}

bool MayLieLast(const NodeView& node, size_t i) {
  if (i != 0 && i != 3 && i < node.input_count()) return false;
  return node.shape(0) == node.shape(3);
}

// As many as the two inputs need; the loop is one or the other.
template <class T, bool kProduct>
MadeKernel MakeBinaryOf(const KernelRequest& request, const Quantized& a,
                        const Quantized& b, const Quantized& y) {
  const TensorSpec& output = request.outputs[0];
  StridedLoop<3> loop;
  if (request.inputs[0].shape == request.inputs[3].shape) {
    if (request.inputs[0].placement != output.placement ||
        request.inputs[3].placement != output.placement) {
      return request.node.Error("its output is placed unlike its inputs");
    }
    const Shape shape = {PhysicalElements(output)};
    loop = StridedLoop<3>(shape, {Shape{1}, Shape{1}, Shape{1}});
  } else {
    loop = StridedLoop<3>(
        output.shape, {BroadcastStrides(request.inputs[0].shape, output.shape),
                       BroadcastStrides(request.inputs[3].shape, output.shape),
                       DenseStrides(output.shape)});
  }
  const int32_t a_zero = a.zero[0];
  const int32_t b_zero = b.zero[0];
  const int32_t y_zero = y.zero[0];
  const float a_scale = a.scale[0] / y.scale[0];
  const float b_scale = b.scale[0] / y.scale[0];
  const float product = a.scale[0] * b.scale[0] / y.scale[0];
  const Epilogue& epilogue = request.node.node().epilogue;
  float low = std::numeric_limits<float>::lowest();
  float high = std::numeric_limits<float>::max();
  if (epilogue.activation == Activation::kRelu) low = 0.0F;
  if (epilogue.activation == Activation::kClip) {
    low = epilogue.alpha / y.scale[0];
    high = epilogue.beta / y.scale[0];
  }
  return MakeSharedKernel(
      request, [=](Inputs inputs, Outputs outputs, Part part) {
        const auto& step = loop.inner_strides();
        const auto combine = [=](T x, T z) {
          const auto left = static_cast<float>(int32_t{x} - a_zero);
          const auto right = static_cast<float>(int32_t{z} - b_zero);
          float v = kProduct ? left * right * product
                             : left * a_scale + right * b_scale;
          v = v > low ? v : low;
          v = v < high ? v : high;
          return Quantize<T>(v, y_zero);
        };
        const Range range = ShareOf(part, loop.elements(), kElementUnit);
        loop.Run(range, [&](const auto& at, int64_t n) {
          const T* x = As<T>(inputs[0]) + at[0];
          const T* z = As<T>(inputs[3]) + at[1];
          T* out = As<T>(outputs[0]) + at[2];
          if (step[0] == 1 && step[1] == 1 && step[2] == 1) {
            for (int64_t i = 0; i < n; ++i) out[i] = combine(x[i], z[i]);
          } else {
            for (int64_t i = 0; i < n; ++i) {
              out[i * step[2]] = combine(x[i * step[0]], z[i * step[1]]);
            }
          }
        });
      });
}

MadeKernel MakeBinary(const KernelRequest& request) {
  const NodeView& node = request.node;
  RKNND_ASSIGN_OR_RETURN(const Quantized a,
                         ReadQuantizedTensor(node, 1, node.type(0)));
  RKNND_ASSIGN_OR_RETURN(const Quantized b,
                         ReadQuantizedTensor(node, 4, node.type(3)));
  RKNND_ASSIGN_OR_RETURN(const Quantized y,
                         ReadQuantizedTensor(node, 6, request.outputs[0].type));
  const bool product = node.node().type == "QLinearMul";
  if (y.type == DataType::kInt8) {
    return product ? MakeBinaryOf<int8_t, true>(request, a, b, y)
                   : MakeBinaryOf<int8_t, false>(request, a, b, y);
  }
  return product ? MakeBinaryOf<uint8_t, true>(request, a, b, y)
                 : MakeBinaryOf<uint8_t, false>(request, a, b, y);
}

Inference InferUnary(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {4, 5}));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 0));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 4));
  return InferOne(node, TypeOfZero(node, 4), node.shape(0));
}

bool OnlyTensorLast(const NodeView& node, size_t i) {
  return i == 0 || i >= node.input_count();
}

MadeKernel MakeUnary(const KernelRequest& request) {
  const NodeView& node = request.node;
  RKNND_ASSIGN_OR_RETURN(const Quantized x,
                         ReadQuantizedTensor(node, 1, node.type(0)));
  RKNND_ASSIGN_OR_RETURN(const Quantized y,
                         ReadQuantizedTensor(node, 3, request.outputs[0].type));
  if (node.node().type == "QLinearSigmoid") {
    return MakeLookup(request, MakeTable(x, y, [](float v) {
                        return 1.0F / (1.0F + std::exp(-v));
                      }));
  }
  const float alpha = node.Float("alpha", 0.01F);
  return MakeLookup(request, MakeTable(x, y, [alpha](float v) {
                      return v < 0.0F ? v * alpha : v;
                    }));
}

// Attribute "table": the answer for each byte, of the output's type.
Inference InferLookup(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 0));
  const Constant* table = node.Tensor("table");
  if (table == nullptr || SizeOf(table->type) != 1 ||
      table->elements() != 256) {
    return node.Error("has no table of 256 bytes");
  }
  return InferOne(node, table->type, node.shape(0));
}

MadeKernel MakeLookupNode(const KernelRequest& request) {
  const auto* table = request.node.Tensor("table")->as<uint8_t>();
  return MakeLookup(request, std::vector<uint8_t>(table, table + 256));
}

}  // namespace

void RegisterQuantizedElementwise(OperatorTable& table) {
  for (const char* type : {"QLinearAdd", "QLinearMul"}) {
    table.Add({.domain = "com.microsoft",
               .type = type,
               .placement = PlacementRule::kElementwise,
               .infer = InferBinary,
               .make = MakeBinary,
               .may_channels_last = MayLieLast,
               .overwrites = Overwrite::kAny});
  }
  for (const char* type : {"QLinearSigmoid", "QLinearLeakyRelu"}) {
    table.Add({.domain = "com.microsoft",
               .type = type,
               .placement = PlacementRule::kElementwise,
               .infer = InferUnary,
               .make = MakeUnary,
               .may_channels_last = OnlyTensorLast,
               .overwrites = Overwrite::kFirst});
  }
  table.Add({.domain = "rknnd",
             .type = "Lookup",
             .placement = PlacementRule::kElementwise,
             .infer = InferLookup,
             .make = MakeLookupNode,
             .may_channels_last = OnlyTensorLast,
             .overwrites = Overwrite::kFirst});
}

}  // namespace rknnd::soft
