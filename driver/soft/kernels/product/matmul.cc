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
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/convolution/float_convolution.h"
#include "driver/soft/kernels/elementwise/broadcast.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/product/dnnl_product.h"
#include "driver/soft/kernels/product/product.h"

namespace rknnd::soft {
namespace {

Inference InferProduct(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Product product, ParseProduct(node));
  if (node.type(0) == DataType::kBool) return CheckFloat(node, 0);
  return InferOne(node, node.type(0), product.output);
}

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
          StopPoint();
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
    const ProductFinish finish(request, product);
    const int64_t count = request.outputs[0].elements();
    return MakeKernel([=](Inputs inputs, Outputs outputs, std::byte*) {
      Multiply(product, batches, As<float>(inputs[0]), As<float>(inputs[1]),
               As<float>(outputs[0]));
      finish.Run(inputs, As<float>(outputs[0]), {0, count});
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
  RKNND_ASSIGN_OR_RETURN(Product product, ParseProduct(request.node));
  RKNND_RETURN_IF_ERROR(EpilogueStep::Check(request));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  if (request.outputs[0].type != DataType::kFloat32 || product.k == 0) {
    return MakePlain(request, std::move(product));
  }
  MadeKernel kernel =
      MakeDnnlProduct(request, product, HasOwn(request.node, product));
  if (!absl::IsUnimplemented(kernel.status())) return kernel;
  return MakeOwn(request, product);
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
