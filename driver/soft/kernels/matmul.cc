// MatMul (batched, broadcasting as numpy does) and Gemm. Floats on oneDNN, with
// constant right-hand sides packed once; integers and empty products by a plain
// loop.

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/broadcast.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/epilogue.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/float_convolution.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/onednn.h"

namespace rknnd::soft {
namespace {

using Dims = dnnl::memory::dims;

// A product of matrices over common batch axes, each operand given by strides.
struct Product {
  Shape batch;  // of the result
  int64_t m = 0, n = 0, k = 0;
  Shape a_batch, b_batch;           // strides, 0 where broadcast
  int64_t a_row = 0, a_column = 1;  // of the left matrix
  int64_t b_row = 0, b_column = 1;
  float alpha = 1.0F, beta = 1.0F;  // Gemm
  Shape output;
};

absl::StatusOr<Product> ParseMatMul(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  Shape a = node.shape(0), b = node.shape(1);
  const absl::Status misfit = node.Error(
      absl::StrCat("a product of ", ShapeText(a), " and ", ShapeText(b)));
  if (a.empty() || b.empty()) return misfit;
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  // One matrix on the right: all rows on the left are rows of one matrix.
  if (b.size() == 2 && a.size() > 2) {
    Product product;
    product.output = node.shape(0);
    product.output.pop_back();
    if (!column) product.output.push_back(b[1]);
    product.m = ProductOf(a, 0, a.size() - 1);
    product.k = a.back();
    product.n = b[1];
    product.a_row = product.k;
    product.b_row = product.n;
    if (b[0] != product.k) return misfit;
    return product;
  }
  Product product;
  product.m = a[a.size() - 2];
  product.k = a.back();
  product.n = b.back();
  if (b[b.size() - 2] != product.k) return misfit;
  product.a_row = product.k;
  product.b_row = product.n;
  const Shape a_batch(a.begin(), a.end() - 2), b_batch(b.begin(), b.end() - 2);
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

absl::StatusOr<Product> ParseGemm(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 3}));
  RKNND_RETURN_IF_ERROR(CheckSameTypes(node));
  const Shape& a = node.shape(0);
  const Shape& b = node.shape(1);
  if (a.size() != 2 || b.size() != 2) {
    return node.Error(
        absl::StrCat("a product of ", ShapeText(a), " and ", ShapeText(b)));
  }
  const bool turn_a = node.Int("transA", 0) != 0;
  const bool turn_b = node.Int("transB", 0) != 0;
  Product product;
  product.alpha = node.Float("alpha", 1.0F);
  product.beta = node.Float("beta", 1.0F);
  product.m = turn_a ? a[1] : a[0];
  product.k = turn_a ? a[0] : a[1];
  product.n = turn_b ? b[0] : b[1];
  if ((turn_b ? b[1] : b[0]) != product.k) {
    return node.Error(
        absl::StrCat("a product of ", ShapeText(a), " and ", ShapeText(b)));
  }
  product.a_row = turn_a ? 1 : a[1];
  product.a_column = turn_a ? a[1] : 1;
  product.b_row = turn_b ? 1 : b[1];
  product.b_column = turn_b ? b[1] : 1;
  product.output = {product.m, product.n};
  if (node.has_input(2)) {
    RKNND_ASSIGN_OR_RETURN(const Shape with,
                           BroadcastShape(node, product.output, node.shape(2)));
    if (with != product.output) {
      return node.Error(absl::StrCat("C is ", ShapeText(node.shape(2)),
                                     ", the product ",
                                     ShapeText(product.output)));
    }
  }
  return product;
}

absl::StatusOr<Product> Parse(const NodeView& node) {
  return node.node().type == "Gemm" ? ParseGemm(node) : ParseMatMul(node);
}

Inference InferProduct(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Product product, Parse(node));
  if (node.type(0) == DataType::kBool) return CheckFloat(node, 0);
  return InferOne(node, node.type(0), product.output);
}

// What Gemm adds, and what fusion put behind the product.
class Finish {
 public:
  Finish(const KernelRequest& request, const Product& product)
      : step_(request), alpha_(product.alpha), beta_(product.beta) {
    has_c_ = request.node.node().type == "Gemm" && request.node.has_input(2);
    count_ = request.outputs[0].elements();
    if (!has_c_) return;
    const Shape& to = product.output;
    const Shape strides = DenseStrides(to);
    c_ = StridedLoop<3>(
        to, {strides, BroadcastStrides(request.node.shape(2), to), strides});
  }

  // What oneDNN has done already.
  void DropAlpha() { alpha_ = 1.0F; }
  void DropC() { has_c_ = false; }

  void Run(Inputs inputs, float* output) const {
    if (alpha_ != 1.0F) {
      for (int64_t i = 0; i < count_; ++i) output[i] *= alpha_;
    }
    if (has_c_) {
      RunBinary(c_, output, As<float>(inputs[2]), output,
                [beta = beta_](float x, float c) { return x + beta * c; });
    }
    if (step_.adds()) {
      step_.Add(As<float>(inputs[step_.add_index()]), output);
    }
    step_.Activate(output);
  }

 private:
  EpilogueStep step_;
  StridedLoop<3> c_;
  bool has_c_ = false;
  float alpha_, beta_;
  int64_t count_ = 0;
};

// Whether our own tiles can compute it: rows that lie as they come, times one
// matrix that is known, plus a row that is known.
bool HasOwn(const NodeView& node, const Product& p) {
  if (node.constant(1) == nullptr || !p.batch.empty() || p.a_row != p.k ||
      p.a_column != 1) {
    return false;
  }
  if (node.node().type != "Gemm" || !node.has_input(2)) return true;
  const Constant* c = node.constant(2);
  return c != nullptr &&
         (c->elements() == 1 ||
          (!c->shape.empty() && c->shape.back() == c->elements()));
}

class DnnlProduct final : public Kernel {
 public:
  DnnlProduct(const KernelRequest& request, Product product)
      : product_(std::move(product)), finish_(request, product_) {}

  absl::Status Make(const KernelRequest& request);

  [[nodiscard]] size_t scratch_size() const override { return scratch_; }
  [[nodiscard]] bool reads_constant(size_t i) const override {
    return !(i == 1 && weights_ != nullptr) && !(i == 2 && bias_ != nullptr);
  }
  [[nodiscard]] std::string implementation() const override {
    return implementation_;
  }
  [[nodiscard]] bool is_reference() const override {
    return !IsGenerated(implementation_);
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    void* data[4] = {const_cast<std::byte*>(inputs[0]), outputs[0], scratch,
                     const_cast<std::byte*>(inputs[1])};
    RKNND_RETURN_IF_ERROR(
        call_->Run(std::span(data, weights_ == nullptr ? 4 : 3)));
    finish_.Run(inputs, As<float>(outputs[0]));
    return absl::OkStatus();
  }

 private:
  // One value per column, known now: oneDNN adds it for nothing.
  absl::Status TakeBias(const KernelRequest& request);

  Product product_;
  Finish finish_;
  const std::byte* weights_ = nullptr;
  const std::byte* bias_ = nullptr;
  std::string implementation_;
  std::optional<DnnlCall> call_;
  size_t scratch_ = 0;
};

absl::Status DnnlProduct::TakeBias(const KernelRequest& request) {
  const NodeView& node = request.node;
  const float* c = ConstantFloats(node, 2);
  if (node.node().type != "Gemm" || c == nullptr || product_.n == 0 ||
      (product_.alpha != 1.0F && node.constant(1) == nullptr)) {
    return absl::OkStatus();
  }
  const Shape& shape = node.shape(2);
  const int64_t count = ProductOf(shape, 0, shape.size());
  const bool columns = !shape.empty() && shape.back() == count;
  if (count != 1 && !columns) return absl::OkStatus();
  RKNND_ASSIGN_OR_RETURN(
      bias_, request.weights.Store(
                 static_cast<size_t>(product_.n) * sizeof(float),
                 [&](std::byte* room) {
                   for (int64_t i = 0; i < product_.n; ++i) {
                     As<float>(room)[i] = product_.beta * c[count == 1 ? 0 : i];
                   }
                 }));
  finish_.DropC();
  return absl::OkStatus();
}

// oneDNN packs columns by up to 64: of a narrow matrix most is zeros then, and
// its kernels are no slower on the matrix as it came.
bool PaddedOut(const dnnl::memory::desc& packed,
               const dnnl::memory::desc& given) {
  return packed.get_size() > given.get_size() + given.get_size() / 4;
}

absl::Status DnnlProduct::Make(const KernelRequest& request) {
  using Primitive = dnnl::matmul;
  constexpr auto kFloat = dnnl::memory::data_type::f32;
  const Product& p = product_;
  const auto matrix = [&](const Shape& batch_strides, int64_t rows,
                          int64_t columns, int64_t row, int64_t column) {
    Dims dims, strides;
    for (size_t d = 0; d < p.batch.size(); ++d) {
      const bool once = batch_strides[d] == 0;
      dims.push_back(once ? 1 : p.batch[d]);
      strides.push_back(once ? rows * columns : batch_strides[d]);
    }
    dims.insert(dims.end(), {rows, columns});
    strides.insert(strides.end(), {row, column});
    return dnnl::memory::desc(dims, kFloat, strides);
  };
  const auto a = matrix(p.a_batch, p.m, p.k, p.a_row, p.a_column);
  const auto b = matrix(p.b_batch, p.k, p.n, p.b_row, p.b_column);
  Dims to(p.batch.begin(), p.batch.end());
  to.insert(to.end(), {p.m, p.n});
  const auto output = DescribeDense(to);
  RKNND_RETURN_IF_ERROR(TakeBias(request));
  dnnl::memory::desc bias;
  if (bias_ != nullptr) {
    Dims dims(to.size(), 1);
    dims.back() = p.n;
    bias = DescribeDense(dims);
  }
  const Constant* weights = request.node.constant(1);
  const auto wanted =
      weights == nullptr
          ? b
          : dnnl::memory::desc(b.dims(), kFloat, dnnl::memory::format_tag::any);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto choose = [&](const dnnl::memory::desc& right) {
    return Primitive::primitive_desc(
        bias_ == nullptr ? Primitive::desc(a, right, output)
                         : Primitive::desc(a, right, bias, output),
        attributes, CpuEngine(), /*allow_empty=*/true);
  };
  auto chosen = choose(wanted);
  if ((!chosen || !IsGenerated(chosen.impl_info_str())) &&
      HasOwn(request.node, p)) {
    return absl::UnimplementedError("our own kernel is quicker");
  }
  if (!chosen) return request.node.Error("oneDNN has no kernel for it");
  if (weights != nullptr && PaddedOut(chosen.weights_desc(), b)) {
    auto as_given = choose(b);
    const std::string_view kernel = chosen.impl_info_str();
    if (as_given && as_given.impl_info_str() == kernel) {
      chosen = std::move(as_given);
    }
  }
  if (weights != nullptr) {
    if (p.alpha != 1.0F) finish_.DropAlpha();
    const dnnl::memory::desc packed = chosen.weights_desc();
    // A compiled model brings what is stored here, and not what it is made of.
    RKNND_ASSIGN_OR_RETURN(
        weights_,
        request.weights.Store(packed.get_size(), [&](std::byte* room) {
          std::vector<float> scaled;
          const auto* from = weights->as<float>();
          if (p.alpha != 1.0F) {
            scaled.assign(from, from + weights->elements());
            for (float& weight : scaled) weight *= p.alpha;
            from = scaled.data();
          }
          ReorderNow(b, from, packed, room);
        }));
  }
  implementation_ = ImplementationOf(chosen);
  scratch_ = chosen.scratchpad_desc().get_size();
  std::vector<DnnlArgument> arguments = {
      {DNNL_ARG_SRC, a},
      {DNNL_ARG_DST, output},
      {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()},
      {DNNL_ARG_WEIGHTS, chosen.weights_desc(), weights_}};
  if (bias_ != nullptr) arguments.push_back({DNNL_ARG_BIAS, bias, bias_});
  call_.emplace(Primitive(chosen), arguments);
  return absl::OkStatus();
}

// out = a x b, element by element.
template <class T>
void Multiply(const Product& p, const StridedLoop<3>& batches, const T* a,
              const T* b, T* out) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
  const auto& step = batches.inner_strides();
  batches.Run([&](const auto& at, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const T* left = a + at[0] + i * step[0];
      const T* right = b + at[1] + i * step[1];
      T* to = out + at[2] + i * step[2];
      for (int64_t m = 0; m < p.m; ++m) {
        for (int64_t n = 0; n < p.n; ++n) {
          Sum sum{};
          for (int64_t k = 0; k < p.k; ++k) {
            sum += static_cast<Sum>(left[m * p.a_row + k * p.a_column]) *
                   static_cast<Sum>(right[k * p.b_row + n * p.b_column]);
          }
          to[m * p.n + n] = static_cast<T>(sum);
        }
      }
    }
  });
}

MadeKernel MakePlain(const KernelRequest& request, Product product) {
  Shape to_batch = DenseStrides(product.batch);
  for (int64_t& stride : to_batch) stride *= product.m * product.n;
  const StridedLoop<3> batches(product.batch,
                               {product.a_batch, product.b_batch, to_batch});
  if (request.outputs[0].type == DataType::kFloat32) {
    const Finish finish(request, product);
    return MakeKernel([=](Inputs inputs, Outputs outputs, std::byte*) {
      Multiply(product, batches, As<float>(inputs[0]), As<float>(inputs[1]),
               As<float>(outputs[0]));
      finish.Run(inputs, As<float>(outputs[0]));
    });
  }
  if (product.alpha != 1.0F || product.beta != 1.0F) {
    return request.node.Error("scales a product of integers");
  }
  const bool has_c =
      request.node.node().type == "Gemm" && request.node.has_input(2);
  const Shape strides = DenseStrides(product.output);
  StridedLoop<3> c;
  if (has_c) {
    c = StridedLoop<3>(
        product.output,
        {strides, BroadcastStrides(request.node.shape(2), product.output),
         strides});
  }
  return VisitType(
      request.outputs[0].type,
      [&]<class T>(std::type_identity<T>) -> MadeKernel {
        return MakeKernel([=](Inputs inputs, Outputs outputs, std::byte*) {
          T* out = As<T>(outputs[0]);
          Multiply(product, batches, As<T>(inputs[0]), As<T>(inputs[1]), out);
          if (!has_c) return;
          RunBinary(c, out, As<T>(inputs[2]), out, [](T x, T y) {
            if constexpr (std::is_floating_point_v<T>) {
              return x + y;
            } else {
              return static_cast<T>(static_cast<uint64_t>(x) +
                                    static_cast<uint64_t>(y));
            }
          });
        });
      });
}

// The rows are pixels, their numbers channels.
MadeKernel MakeOwn(const KernelRequest& request, const Product& p) {
  const NodeView& node = request.node;
  const auto rows = [&](int64_t numbers) {
    return TensorSpec{
        DataType::kFloat32, {1, numbers, p.m, 1}, {static_cast<int>(numbers)}};
  };
  FloatConvolutionSpec spec;
  spec.input = rows(p.k);
  spec.output = rows(p.n);
  if (node.node().type == "Gemm" && node.has_input(2)) {
    const Constant& c = *node.constant(2);
    for (int64_t n = 0; n < p.n; ++n) {
      spec.bias.push_back(p.beta * c.as<float>()[c.elements() == 1 ? 0 : n]);
    }
  }
  ConvolutionPhase phase;
  phase.kernel = phase.strides = phase.dilations = phase.output_steps = {1, 1};
  phase.pads = {0, 0};
  phase.outputs = {p.m, 1};
  phase.output_first = {Shape{0, 0}};
  // None in a compiled model, which brings what was stored of them.
  const Constant& b = *node.constant(1);
  for (int64_t n = 0; !b.data.empty() && n < p.n; ++n) {
    for (int64_t k = 0; k < p.k; ++k) {
      phase.weights.push_back(p.alpha *
                              b.as<float>()[k * p.b_row + n * p.b_column]);
    }
  }
  spec.phases.push_back(std::move(phase));
  return MakeFloatConvolution(request, spec);
}

MadeKernel MakeProduct(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(Product product, Parse(request.node));
  RKNND_RETURN_IF_ERROR(EpilogueStep::Check(request));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  if (request.outputs[0].type != DataType::kFloat32 || product.k == 0) {
    return MakePlain(request, std::move(product));
  }
  auto kernel = std::make_unique<DnnlProduct>(request, product);
  const absl::Status made =
      GuardDnnl(request.node, [&] { return kernel->Make(request); });
  if (absl::IsUnimplemented(made)) return MakeOwn(request, product);
  RKNND_RETURN_IF_ERROR(made);
  return kernel;
}

}  // namespace

void RegisterMatMul(OperatorTable& table) {
  for (const char* type : {"MatMul", "Gemm"}) {
    table.Add({.type = type,
               .infer = InferProduct,
               .make = MakeProduct,
               .takes_activation = true,
               .takes_add = true});
  }
}

}  // namespace rknnd::soft
