// LayerNormalization, RMSNormalization, InstanceNormalization,
// MeanVarianceNormalization, LRN.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

// Of an element: two sums in double precision, and what is made of them.
constexpr int64_t kSums = 8;

struct Moments {
  double mean = 0.0, variance = 0.0;
};

// The sum of f(x) in eight parts, which a vector register adds at once.
template <class F>
double SumOf(const float* in, int64_t n, F f) {
  constexpr int64_t kParts = 8;
  std::array<double, kParts> sums{};
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
    for (int64_t k = 0; k < kParts; ++k) {
      sums[static_cast<size_t>(k)] += f(double{in[i + k]});
    }
  }
  double sum = 0.0;
  for (; i < n; ++i) sum += f(double{in[i]});
  for (const double part : sums) sum += part;
  return sum;
}

// Two passes: the square of the mean may be far larger than the variance.
// Not `centred`: of the numbers as they are, as if their mean were 0.
Moments MomentsOf(const float* in, int64_t n, bool centred = true) {
  Moments moments;
  const auto count = static_cast<double>(n);
  if (centred) moments.mean = SumOf(in, n, [](double x) { return x; }) / count;
  moments.variance = SumOf(in, n,
                           [mean = moments.mean](double x) {
                             return (x - mean) * (x - mean);
                           }) /
                     count;
  return moments;
}

bool IsCentred(const NodeView& node) {
  return node.node().type == "LayerNormalization";
}

absl::StatusOr<size_t> LayerAxis(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(
      CheckArity(node, IsCentred(node) ? Arity{2, 3, 3} : Arity{2, 2, 1}));
  for (size_t i = 0; i < node.input_count(); ++i) {
    RKNND_RETURN_IF_ERROR(CheckFloat(node, i));
  }
  const Shape& shape = node.shape(0);
  RKNND_ASSIGN_OR_RETURN(const size_t axis,
                         CheckAxis(node, node.Int("axis", -1), shape.size()));
  const Shape normalized(shape.begin() + static_cast<ptrdiff_t>(axis),
                         shape.end());
  for (size_t i = 1; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    RKNND_ASSIGN_OR_RETURN(const Shape with,
                           BroadcastShape(node, normalized, node.shape(i)));
    if (with != normalized) {
      return node.Error(
          absl::StrCat("input ", i, " is ", ShapeText(node.shape(i)),
                       ", normalised are ", ShapeText(normalized)));
    }
  }
  return axis;
}

Inference InferLayer(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, LayerAxis(node));
  Shape statistics = node.shape(0);
  std::fill(statistics.begin() + static_cast<ptrdiff_t>(axis), statistics.end(),
            1);
  return Infer(node, {{DataType::kFloat32, node.shape(0)},
                      {DataType::kFloat32, statistics},
                      {DataType::kFloat32, statistics}});
}

MadeKernel MakeLayer(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, LayerAxis(request.node));
  const NodeView& node = request.node;
  const Shape& shape = request.inputs[0].shape;
  const int64_t rows = ProductOf(shape, 0, axis);
  const int64_t size = ProductOf(shape, axis, shape.size());
  const float epsilon = node.Float("epsilon", 1e-5F);
  const bool has_shift = node.has_input(2), centred = IsCentred(node);
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  // Scale and shift broadcast over what is normalised.
  const Shape normalized(shape.begin() + static_cast<ptrdiff_t>(axis),
                         shape.end());
  const Shape& scale_shape = node.shape(1);
  const Shape shift_shape = has_shift ? node.shape(2) : Shape();
  const StridedLoop<3> loop(
      normalized,
      {DenseStrides(normalized), BroadcastStrides(scale_shape, normalized),
       BroadcastStrides(shift_shape, normalized)});
  return MakeSharedKernel(
      WorkOf(request, kSums), rows,
      [=](Inputs inputs, Outputs outputs, Part part) {
        const auto* scale = As<float>(inputs[1]);
        const auto* shift = has_shift ? As<float>(inputs[2]) : nullptr;
        const auto& step = loop.inner_strides();
        const Range share = ShareOf(part, rows);
        for (int64_t r = share.begin; r < share.end; ++r) {
          const float* in = As<float>(inputs[0]) + r * size;
          float* out = As<float>(outputs[0]) + r * size;
          const Moments moments = MomentsOf(in, size, centred);
          const auto mean = static_cast<float>(moments.mean);
          const auto inverse =
              static_cast<float>(1.0 / std::sqrt(moments.variance + epsilon));
          loop.Run([&](const auto& at, int64_t n) {
            if (shift != nullptr && step[1] == 1 && step[2] == 1) {
              // As nearly all networks have it; over what was read, maybe.
              const float* x = in + at[0];
              const float* a = scale + at[1];
              const float* b = shift + at[2];
              float* to = out + at[0];
              for (int64_t i = 0; i < n; ++i) {
                to[i] = (x[i] - mean) * inverse * a[i] + b[i];
              }
              return;
            }
            for (int64_t i = 0; i < n; ++i) {
              const int64_t e = at[0] + i * step[0];
              float x = (in[e] - mean) * inverse * scale[at[1] + i * step[1]];
              if (shift != nullptr) x += shift[at[2] + i * step[2]];
              out[e] = x;
            }
          });
          if (outputs.size() > 1 && outputs[1] != nullptr) {
            As<float>(outputs[1])[r] = mean;
          }
          if (outputs.size() > 2 && outputs[2] != nullptr) {
            As<float>(outputs[2])[r] = inverse;
          }
        }
      });
}

Inference InferInstance(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {3, 3}));
  const Shape& shape = node.shape(0);
  if (shape.size() < 2) {
    return node.Error(absl::StrCat("its input is ", ShapeText(shape)));
  }
  for (size_t i = 0; i < 3; ++i) {
    RKNND_RETURN_IF_ERROR(CheckFloat(node, i));
    if (i > 0 && node.shape(i) != Shape{shape[1]}) {
      return node.Error(absl::StrCat("input ", i, " is ",
                                     ShapeText(node.shape(i)), ", input 0 has ",
                                     shape[1], " channels"));
    }
  }
  return InferOne(node, DataType::kFloat32, shape);
}

MadeKernel MakeInstance(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const int64_t planes = shape[0] * shape[1], channels = shape[1];
  const int64_t pixels = ProductOf(shape, 2, shape.size());
  const float epsilon = request.node.Float("epsilon", 1e-5F);
  return MakeSharedKernel(
      WorkOf(request, kSums), planes,
      [=](Inputs inputs, Outputs outputs, Part part) {
        const Range share = ShareOf(part, pixels > 0 ? planes : 0);
        for (int64_t p = share.begin; p < share.end; ++p) {
          const float* in = As<float>(inputs[0]) + p * pixels;
          float* out = As<float>(outputs[0]) + p * pixels;
          const Moments moments = MomentsOf(in, pixels);
          const double a = As<float>(inputs[1])[p % channels] /
                           std::sqrt(moments.variance + epsilon);
          const auto scale = static_cast<float>(a);
          const auto shift = static_cast<float>(
              As<float>(inputs[2])[p % channels] - moments.mean * a);
          for (int64_t i = 0; i < pixels; ++i) out[i] = in[i] * scale + shift;
        }
      });
}

// Axes that are reduced together; the default is all but the channels'.
absl::StatusOr<std::vector<size_t>> MeanVarianceAxes(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  std::vector<int64_t> axes = node.Ints("axes");
  if (!node.Has("axes")) axes = {0, 2, 3};
  return CheckAxes(node, axes, node.shape(0).size());
}

Inference InferMeanVariance(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(MeanVarianceAxes(node).status());
  return InferOne(node, DataType::kFloat32, node.shape(0));
}

MadeKernel MakeMeanVariance(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const std::vector<size_t> axes,
                         MeanVarianceAxes(request.node));
  const Shape& shape = request.inputs[0].shape;
  const Shape strides = DenseStrides(shape);
  Shape kept, kept_strides, gone, gone_strides;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
    (reduced ? gone : kept).push_back(shape[d]);
    (reduced ? gone_strides : kept_strides).push_back(strides[d]);
  }
  const StridedLoop<1> outer(kept, {kept_strides});
  const StridedLoop<1> inner(gone, {gone_strides});
  const auto count = static_cast<double>(ProductOf(gone, 0, gone.size()));
  return MakeSharedKernel(
      WorkOf(request, kSums), outer.elements(),
      [=](Inputs inputs, Outputs outputs, Part part) {
        const int64_t step = outer.inner_strides()[0];
        const int64_t run = inner.inner_strides()[0];
        outer.Run(
            ShareOf(part, outer.elements()), [&](const auto& at, int64_t n) {
              for (int64_t i = 0; i < n; ++i) {
                const float* in = As<float>(inputs[0]) + at[0] + i * step;
                float* out = As<float>(outputs[0]) + at[0] + i * step;
                double mean = 0.0, variance = 0.0;
                inner.Run([&](const auto& to, int64_t m) {
                  for (int64_t k = 0; k < m; ++k) mean += in[to[0] + k * run];
                });
                mean /= count;
                inner.Run([&](const auto& to, int64_t m) {
                  for (int64_t k = 0; k < m; ++k) {
                    const double d = in[to[0] + k * run] - mean;
                    variance += d * d;
                  }
                });
                // As the operator's definition has it: added to the deviation.
                const double scale = 1.0 / (std::sqrt(variance / count) + 1e-9);
                inner.Run([&](const auto& to, int64_t m) {
                  for (int64_t k = 0; k < m; ++k) {
                    const int64_t e = to[0] + k * run;
                    out[e] = static_cast<float>((in[e] - mean) * scale);
                  }
                });
              }
            });
      });
}

Inference InferLrn(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  const Shape& shape = node.shape(0);
  if (shape.size() < 2 || node.Int("size", 0) < 1) {
    return node.Error(absl::StrCat("size ", node.Int("size", 0),
                                   " of a tensor ", ShapeText(shape)));
  }
  return InferOne(node, DataType::kFloat32, shape);
}

MadeKernel MakeLrn(const KernelRequest& request) {
  const NodeView& node = request.node;
  const Shape& shape = request.inputs[0].shape;
  const int64_t batch = shape[0], channels = shape[1];
  const int64_t pixels = ProductOf(shape, 2, shape.size());
  // More than all channels is all channels.
  const int64_t size = std::min(node.Int("size", 1), 2 * channels + 1);
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  const float scale =
      node.Float("alpha", 1e-4F) / static_cast<float>(node.Int("size", 1));
  const float beta = node.Float("beta", 0.75F), bias = node.Float("bias", 1.0F);
  return MakeSharedKernel(
      WorkOf(request, kFunction), batch * channels,
      [=](Inputs inputs, Outputs outputs, Part part) {
        const Range share = ShareOf(part, batch * channels);
        for (int64_t plane = share.begin; plane < share.end; ++plane) {
          const int64_t n = plane / channels, c = plane % channels;
          const float* in = As<float>(inputs[0]) + n * channels * pixels;
          float* out = As<float>(outputs[0]) + n * channels * pixels;
          const int64_t first = std::max<int64_t>(c - before, 0);
          const int64_t last = std::min(c + after, channels - 1);
          float* to = out + c * pixels;
          std::fill_n(to, pixels, 0.0F);
          for (int64_t k = first; k <= last; ++k) {
            StopPoint();
            const float* from = in + k * pixels;
            for (int64_t p = 0; p < pixels; ++p) to[p] += from[p] * from[p];
          }
          const float* x = in + c * pixels;
          for (int64_t p = 0; p < pixels; ++p) {
            to[p] = x[p] * std::pow(bias + scale * to[p], -beta);
          }
        }
      });
}

}  // namespace

void RegisterNormalization(OperatorTable& table) {
  for (const char* type : {"LayerNormalization", "RMSNormalization"}) {
    table.Add({.type = type,
               .infer = InferLayer,
               .make = MakeLayer,
               .overwrites = Overwrite::kFirst});
  }
  table.Add({.type = "InstanceNormalization",
             .infer = InferInstance,
             .make = MakeInstance});
  table.Add({.type = "MeanVarianceNormalization",
             .infer = InferMeanVariance,
             .make = MakeMeanVariance});
  table.Add({.type = "LRN", .infer = InferLrn, .make = MakeLrn});
}

}  // namespace rknnd::soft
