// QLinearMatMul, MatMulInteger and com.microsoft.QGemm: products of 8-bit
// matrices. One matrix on the right that is known at load time makes the rows
// on the left the pixels of a 1x1 convolution; what else there is is packed
// while the model runs.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/convolution/integer_convolution.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/product/integer_product.h"
#include "driver/soft/kernels/quantization.h"

namespace rknnd::soft {
namespace {

struct Product {
  Shape batch;
  int64_t m = 0, n = 0, k = 0;
  Shape a_batch, b_batch;   // strides, 0 where broadcast
  bool one_matrix = false;  // on the right
  bool transposed = false;  // it
  Shape output;
};

// Positions of an operator's inputs; 0: it has none.
struct Places {
  size_t a_scale, a_zero, b, b_scale, b_zero, bias, y_scale;
};
Places PlacesOf(const NodeView& node) {
  if (node.node().type == "QLinearMatMul") return {1, 2, 3, 4, 5, 0, 6};
  if (node.node().type == "QGemm") return {1, 2, 3, 4, 5, 6, 7};
  return {0, 2, 1, 0, 3, 0, 0};
}

absl::StatusOr<Product> Parse(const NodeView& node) {
  const Places places = PlacesOf(node);
  RKNND_RETURN_IF_ERROR(CheckArity(node, places.a_scale == 0 ? Arity{2, 4}
                                         : places.bias == 0  ? Arity{8, 8}
                                                             : Arity{6, 9}));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 0));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, places.b));
  Shape a = node.shape(0);
  Shape b = node.shape(places.b);
  const absl::Status misfit = node.Error(
      absl::StrCat("a product of ", ShapeText(a), " and ", ShapeText(b)));
  if (a.empty() || b.empty()) return misfit;
  Product product;
  if (places.bias != 0) {
    if (a.size() != 2 || b.size() != 2) return misfit;
    if (node.Int("transA", 0) != 0) {
      return node.Error("transA is not supported");
    }
    product.transposed = node.Int("transB", 0) != 0;
    if (product.transposed) std::swap(b[0], b[1]);
  }
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  product.k = a.back();
  product.n = b.back();
  if (b[b.size() - 2] != product.k) return misfit;
  product.one_matrix = b.size() == 2;
  if (product.one_matrix) {
    product.output = node.shape(0);
    product.output.pop_back();
    if (!column) product.output.push_back(product.n);
    product.m = ProductOf(a, 0, a.size() - 1);
    return product;
  }
  product.m = a[a.size() - 2];
  const Shape a_batch(a.begin(), a.end() - 2);
  const Shape b_batch(b.begin(), b.end() - 2);
  RKNND_ASSIGN_OR_RETURN(product.batch, BroadcastShape(node, a_batch, b_batch));
  product.a_batch = BroadcastStrides(a_batch, product.batch);
  product.b_batch = BroadcastStrides(b_batch, product.batch);
  for (int64_t& stride : product.a_batch) stride *= product.m * product.k;
  for (int64_t& stride : product.b_batch) stride *= product.k * product.n;
  product.output = product.batch;
  if (!row) product.output.push_back(product.m);
  if (!column) product.output.push_back(product.n);
  return product;
}

DataType OutputType(const NodeView& node) {
  const Places places = PlacesOf(node);
  if (places.y_scale == 0) return DataType::kInt32;
  if (!node.has_input(places.y_scale)) return DataType::kFloat32;
  return TypeOfZero(node, places.y_scale + 1);
}

Inference InferProduct(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Product product, Parse(node));
  const size_t y_scale = PlacesOf(node).y_scale;
  if (y_scale != 0) RKNND_RETURN_IF_ERROR(CheckQuantized(node, y_scale + 1));
  return InferOne(node, OutputType(node), product.output);
}

int32_t ByteAt(DataType type, const std::byte* data, int64_t i) {
  return type == DataType::kInt8 ? int32_t{As<int8_t>(data)[i]}
                                 : int32_t{As<uint8_t>(data)[i]};
}

// Scales, bias and activation, the same for both ways of computing.
struct Steps {
  std::vector<float> scale = {1.0F};  // sums to steps: one or for each column
  std::vector<float> bias;            // in units of the sums
  int32_t zero = 0;
  Epilogue epilogue;
};

absl::StatusOr<Steps> ReadSteps(const KernelRequest& request,
                                const Product& product) {
  const NodeView& node = request.node;
  const Places places = PlacesOf(node);
  Steps steps;
  if (places.a_scale == 0) return steps;
  RKNND_ASSIGN_OR_RETURN(
      const Quantized a,
      ReadQuantizedTensor(node, places.a_scale, node.type(0)));
  RKNND_ASSIGN_OR_RETURN(const Quantized b, ReadQuantized(node, places.b_scale,
                                                          node.type(places.b)));
  if (!b.per_tensor() && static_cast<int64_t>(b.scale.size()) != product.n) {
    return node.Error(
        absl::StrCat(b.scale.size(), " scales for ", product.n, " columns"));
  }
  float y_scale = 1.0F;
  if (node.has_input(places.y_scale)) {
    RKNND_ASSIGN_OR_RETURN(
        const Quantized y,
        ReadQuantizedTensor(node, places.y_scale, OutputType(node)));
    y_scale = y.scale[0];
    steps.zero = y.zero[0];
  }
  const float alpha = places.bias == 0 ? 1.0F : node.Float("alpha", 1.0F);
  steps.scale.clear();
  for (const float scale : b.scale) {
    steps.scale.push_back(alpha * a.scale[0] * scale / y_scale);
  }
  RKNND_RETURN_IF_ERROR(CheckFinite(node, steps.scale));
  if (places.bias != 0 && node.has_input(places.bias)) {
    const Constant* bias = node.constant(places.bias);
    if (bias == nullptr ||
        (bias->elements() != product.n && bias->elements() != 1) ||
        (bias->type != DataType::kInt32 && bias->type != DataType::kFloat32)) {
      return node.Error("its bias must be a known row of int32");
    }
    for (int64_t n = 0; n < product.n; ++n) {
      const int64_t at = bias->elements() == 1 ? 0 : n;
      if (bias->type == DataType::kInt32) {
        steps.bias.push_back(static_cast<float>(bias->as<int32_t>()[at]));
        continue;
      }
      const double unit =
          double{a.scale[0]} *
          double{b.scale[b.per_tensor() ? 0 : static_cast<size_t>(n)]} *
          double{alpha};
      steps.bias.push_back(
          static_cast<float>(double{bias->as<float>()[at]} / unit));
    }
    RKNND_RETURN_IF_ERROR(CheckFinite(node, steps.bias));
  }
  steps.epilogue = node.node().epilogue;
  if (steps.epilogue.activation == Activation::kClip) {
    steps.epilogue.alpha /= y_scale;
    steps.epilogue.beta /= y_scale;
  }
  return steps;
}

MadeKernel MakeQuick(const KernelRequest& request, const Product& product,
                     Steps steps) {
  const NodeView& node = request.node;
  const Places places = PlacesOf(node);
  IntegerConvolutionSpec spec;
  const auto pixels = [&](DataType type, int64_t channels) {
    return TensorSpec{
        type, {1, channels, 1, product.m}, {static_cast<int>(channels)}};
  };
  spec.input = pixels(request.inputs[0].type, product.k);
  spec.output = pixels(request.outputs[0].type, product.n);
  spec.weights_shape = {product.n, product.k, 1, 1};
  spec.strides = spec.dilations = {1, 1};
  spec.pads_begin = spec.pads_end = {0, 0};
  const Constant& b = *node.constant(places.b);
  const Constant* zeros = node.constant(places.b_zero);
  spec.weights.resize(static_cast<size_t>(product.n * product.k));
  for (int64_t n = 0; n < product.n; ++n) {
    const int32_t zero = zeros == nullptr
                             ? 0
                             : ByteAt(zeros->type, zeros->data.data(),
                                      zeros->elements() == 1 ? 0 : n);
    for (int64_t k = 0; k < product.k; ++k) {
      const int64_t at =
          product.transposed ? n * product.k + k : k * product.n + n;
      spec.weights[static_cast<size_t>(n * product.k + k)] =
          static_cast<int16_t>(ByteAt(b.type, b.data.data(), at) - zero);
    }
  }
  if (node.has_input(places.a_zero)) {
    const Constant* zero = node.constant(places.a_zero);
    if (zero == nullptr) {
      spec.input_zero_at = places.a_zero;
    } else {
      spec.input_zero = ByteAt(zero->type, zero->data.data(), 0);
    }
  }
  spec.scale = std::move(steps.scale);
  spec.bias = std::move(steps.bias);
  spec.output_zero = steps.zero;
  spec.epilogue = steps.epilogue;
  return MakeIntegerConvolution(request, spec);
}

// Both matrices are computed while the model runs, or there are several.
class RuntimeProduct final : public Kernel {
 public:
  RuntimeProduct(const KernelRequest& request, const Product& product,
                 Steps steps)
      : places_(PlacesOf(request.node)),
        output_size_(static_cast<int64_t>(SizeOf(request.outputs[0].type))),
        product_({.m = product.m,
                  .n = product.n,
                  .k = product.k,
                  .transposed = product.transposed,
                  .a = request.inputs[0].type,
                  .b = request.inputs[places_.b].type,
                  .output = request.outputs[0].type,
                  .scale = std::move(steps.scale),
                  .bias = std::move(steps.bias),
                  .output_zero = steps.zero,
                  .epilogue = steps.epilogue}) {
    Shape to = DenseStrides(product.batch);
    for (int64_t& stride : to) stride *= product.m * product.n;
    if (product.one_matrix) {
      batches_ = StridedLoop<3>({}, {});
    } else {
      batches_ =
          StridedLoop<3>(product.batch, {product.a_batch, product.b_batch, to});
    }
    const auto many = [&](size_t i, int64_t per) {
      return request.node.has_input(i) && per != 1 &&
             request.inputs[i].elements() == per;
    };
    a_many_ = many(places_.a_zero, product.m);
    b_many_ = many(places_.b_zero, product.n);
  }

  [[nodiscard]] size_t scratch_size() const override {
    return product_.scratch_size();
  }
  [[nodiscard]] std::string implementation() const override {
    return absl::StrCat("bytes ", product_.name());
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    const auto& step = batches_.inner_strides();
    const auto zeros = [&](size_t i, bool many) {
      return ZeroPoints{i < inputs.size() ? inputs[i] : nullptr, many};
    };
    const std::byte* packed = nullptr;
    batches_.Run([&](const auto& at, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const std::byte* const b = inputs[places_.b] + at[1] + i * step[1];
        if (b != packed) product_.Pack(b, scratch);
        packed = b;
        product_.Multiply(
            inputs[0] + at[0] + i * step[0], zeros(places_.a_zero, a_many_),
            zeros(places_.b_zero, b_many_),
            outputs[0] + (at[2] + i * step[2]) * output_size_, scratch);
      }
    });
    return absl::OkStatus();
  }

 private:
  const Places places_;
  const int64_t output_size_;
  const IntegerProduct product_;
  StridedLoop<3> batches_;
  bool a_many_ = false, b_many_ = false;
};

MadeKernel MakeProduct(const KernelRequest& request) {
  const NodeView& node = request.node;
  const Places places = PlacesOf(node);
  RKNND_ASSIGN_OR_RETURN(const Product product, Parse(node));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  bool one_zero = true;
  for (const auto& [zero, of, per] :
       {std::tuple(places.a_zero, size_t{0}, product.m),
        std::tuple(places.b_zero, places.b, product.n)}) {
    if (!node.has_input(zero)) continue;
    const int64_t count = request.inputs[zero].elements();
    if (node.type(zero) != node.type(of) || (count != 1 && count != per)) {
      return node.Error(absl::StrCat("zero points ",
                                     ShapeText(node.shape(zero)), " of ",
                                     DataTypeName(node.type(zero))));
    }
    if (of == 0 && count != 1) one_zero = false;
  }
  RKNND_ASSIGN_OR_RETURN(Steps steps, ReadSteps(request, product));
  const bool b_known =
      node.constant(places.b) != nullptr &&
      (!node.has_input(places.b_zero) || node.constant(places.b_zero));
  if (product.one_matrix && b_known && one_zero && product.k > 0) {
    return MakeQuick(request, product, std::move(steps));
  }
  return std::make_unique<RuntimeProduct>(request, product, std::move(steps));
}

}  // namespace

void RegisterQuantizedMatMul(OperatorTable& table) {
  for (const char* type : {"QLinearMatMul", "MatMulInteger"}) {
    table.Add({.type = type, .infer = InferProduct, .make = MakeProduct});
  }
  table.Add({.domain = "com.microsoft",
             .type = "QGemm",
             .infer = InferProduct,
             .make = MakeProduct});
}

}  // namespace rknnd::soft
