// com.microsoft's QLinearAveragePool and QLinearGlobalAveragePool: means of
// 8-bit pixels, summed exactly and rounded once.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/convolution/window.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/quantization.h"

namespace rknnd::soft {
namespace {

struct Params {
  Window window;
  bool counts_padding = false;
  Shape output;
};

// x, its scale and zero point, the output's.
absl::StatusOr<Params> Parse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {4, 5}));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 0));
  RKNND_RETURN_IF_ERROR(CheckQuantized(node, 4));
  if (node.Int("channels_last", 0) != 0) {
    return node.Error("channels_last is not supported");
  }
  const Shape& input = node.shape(0);
  Params params;
  if (node.node().type == "QLinearGlobalAveragePool") {
    if (input.size() < 3 || input.size() > 5 ||
        ProductOf(input, 2, input.size()) == 0) {
      return node.Error(absl::StrCat("its input ", ShapeText(input),
                                     " must have 1 to 3 spatial axes"));
    }
    params.window.kernel.assign(input.begin() + 2, input.end());
    const Shape ones(input.size() - 2, 1);
    const Shape zeros(input.size() - 2, 0);
    params.window.strides = params.window.dilations = ones;
    params.window.pads_begin = params.window.pads_end = zeros;
    params.window.output = ones;
  } else {
    RKNND_ASSIGN_OR_RETURN(params.window, ParseWindow(node, input, {}));
    params.counts_padding = node.Int("count_include_pad", 0) != 0;
  }
  params.output = {input[0], input[1]};
  params.output.insert(params.output.end(), params.window.output.begin(),
                       params.window.output.end());
  return params;
}

Inference InferPool(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  return InferOne(node, TypeOfZero(node, 4), params.output);
}

bool MayLieLast(const NodeView& node, size_t i) {
  return i == 0 || i >= node.input_count();
}

// Three spatial axes, of which the first may be 1.
struct Pool {
  int64_t planes = 0, lanes = 1;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1},
      stride{1, 1, 1}, dilation{1, 1, 1}, begin{0, 0, 0}, end{0, 0, 0};
  bool counts_padding = false;
  int32_t x_zero = 0, y_zero = 0;
  float scale = 1.0F;

  // Positions of the kernel that see [low, high).
  [[nodiscard]] std::pair<int64_t, int64_t> Inside(size_t d, int64_t origin,
                                                   int64_t low,
                                                   int64_t high) const {
    const int64_t step = dilation[d];
    const int64_t first = origin >= low ? 0 : (low - origin + step - 1) / step;
    const int64_t last = origin >= high ? 0 : (high - origin + step - 1) / step;
    return {std::min(first, kernel[d]), std::min(last, kernel[d])};
  }

  template <class T>
  void Run(const T* input, T* output, int64_t* sums) const;
};

template <class T>
void Pool::Run(const T* input, T* output, int64_t* sums) const {
  const int64_t size = in[0] * in[1] * in[2];
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t z = 0; z < out[0]; ++z) {
      for (int64_t y = 0; y < out[1]; ++y) {
        for (int64_t x = 0; x < out[2]; ++x, output += lanes) {
          StopPoint();
          const std::array<int64_t, 3> origin = {z * stride[0] - begin[0],
                                                 y * stride[1] - begin[1],
                                                 x * stride[2] - begin[2]};
          std::array<std::pair<int64_t, int64_t>, 3> range;
          int64_t divisor = 1;
          int64_t seen = 1;
          for (size_t d = 0; d < 3; ++d) {
            range[d] = Inside(d, origin[d], 0, in[d]);
            const auto counted =
                counts_padding ? Inside(d, origin[d], -begin[d], in[d] + end[d])
                               : range[d];
            divisor *= counted.second - counted.first;
            seen *= range[d].second - range[d].first;
          }
          std::fill_n(sums, lanes, -seen * x_zero);
          for (int64_t a = range[0].first; a < range[0].second; ++a) {
            for (int64_t b = range[1].first; b < range[1].second; ++b) {
              for (int64_t c = range[2].first; c < range[2].second; ++c) {
                const int64_t at = ((origin[0] + a * dilation[0]) * in[1] +
                                    origin[1] + b * dilation[1]) *
                                       in[2] +
                                   origin[2] + c * dilation[2];
                const T* pixel = input + (plane * size + at) * lanes;
                for (int64_t i = 0; i < lanes; ++i) sums[i] += pixel[i];
              }
            }
          }
          for (int64_t i = 0; i < lanes; ++i) {
            const float mean = divisor > 0
                                   ? static_cast<float>(sums[i]) * scale /
                                         static_cast<float>(divisor)
                                   : 0.0F;
            output[i] = Quantize<T>(mean, y_zero);
          }
        }
      }
    }
  }
}

MadeKernel MakePool(const KernelRequest& request) {
  const NodeView& node = request.node;
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  RKNND_ASSIGN_OR_RETURN(const Quantized x,
                         ReadQuantizedTensor(node, 1, node.type(0)));
  RKNND_ASSIGN_OR_RETURN(const Quantized y,
                         ReadQuantizedTensor(node, 3, request.outputs[0].type));
  if (request.inputs[0].placement != request.outputs[0].placement ||
      x.type != y.type) {
    return node.Error("its output is placed or typed unlike its input");
  }
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  const Window& window = params.window;
  const TensorSpec& input = request.inputs[0];
  Pool pool;
  pool.lanes = input.placement.block;
  pool.planes =
      input.shape[0] * ((input.shape[1] + pool.lanes - 1) / pool.lanes);
  const size_t ahead = 3 - window.rank();
  for (size_t d = 0; d < window.rank(); ++d) {
    pool.in[ahead + d] = input.shape[2 + d];
    pool.out[ahead + d] = window.output[d];
    pool.kernel[ahead + d] = window.kernel[d];
    pool.stride[ahead + d] = window.strides[d];
    pool.dilation[ahead + d] = window.dilations[d];
    pool.begin[ahead + d] = window.pads_begin[d];
    pool.end[ahead + d] = window.pads_end[d];
  }
  pool.counts_padding = params.counts_padding;
  pool.x_zero = x.zero[0];
  pool.y_zero = y.zero[0];
  pool.scale = x.scale[0] / y.scale[0];
  const auto scratch = static_cast<size_t>(pool.lanes) * sizeof(int64_t);
  if (y.type == DataType::kInt8) {
    return MakeKernel(
        [pool](Inputs inputs, Outputs outputs, std::byte* sums) {
          pool.Run(As<int8_t>(inputs[0]), As<int8_t>(outputs[0]),
                   As<int64_t>(sums));
        },
        scratch);
  }
  return MakeKernel(
      [pool](Inputs inputs, Outputs outputs, std::byte* sums) {
        pool.Run(As<uint8_t>(inputs[0]), As<uint8_t>(outputs[0]),
                 As<int64_t>(sums));
      },
      scratch);
}

}  // namespace

void RegisterQuantizedPooling(OperatorTable& table) {
  for (const char* type : {"QLinearAveragePool", "QLinearGlobalAveragePool"}) {
    table.Add({.domain = "com.microsoft",
               .type = type,
               .placement = PlacementRule::kElementwise,
               .infer = InferPool,
               .make = MakePool,
               .may_channels_last = MayLieLast});
  }
}

}  // namespace rknnd::soft
