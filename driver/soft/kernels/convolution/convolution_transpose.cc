// ConvTranspose: oneDNN's deconvolution where padding allows it, else a plain
// loop over what each output element gathers.

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/convolution/float_convolution.h"
#include "driver/soft/kernels/epilogue.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/onednn.h"

namespace rknnd::soft {
namespace {

constexpr int64_t kMaxExtent = 1 << 20;

struct Params {
  int64_t groups = 1;
  Shape kernel, strides, dilations, begin, end, output;

  [[nodiscard]] size_t rank() const { return kernel.size(); }
  [[nodiscard]] int64_t Extent(size_t d) const {
    return (kernel[d] - 1) * dilations[d] + 1;
  }
};

absl::StatusOr<Shape> Read(const NodeView& node, const char* name, size_t count,
                           int64_t otherwise, int64_t least) {
  if (!node.Has(name)) return Shape(count, otherwise);
  const std::vector<int64_t> values = node.Ints(name);
  if (values.size() != count) {
    return node.Error(absl::StrCat(name, " has ", values.size(),
                                   " entries, needed are ", count));
  }
  for (const int64_t value : values) {
    if (value < least || value > kMaxExtent) {
      return node.Error(absl::StrCat(name, " cannot be ", value));
    }
  }
  return Shape(values.begin(), values.end());
}

// Padding and size of one axis; they follow from each other.
absl::Status Fit(const NodeView& node, Params& params, size_t d, int64_t input,
                 int64_t output_padding, const Shape& pads,
                 std::optional<int64_t> wanted, const std::string& auto_pad) {
  const int64_t full =
      params.strides[d] * (input - 1) + output_padding + params.Extent(d);
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  int64_t begin = auto_pad == "NOTSET" ? pads[d] : 0;
  int64_t end = auto_pad == "NOTSET" ? pads[params.rank() + d] : 0;
  if (same && !wanted.has_value()) wanted = input * params.strides[d];
  if (wanted.has_value()) {
    const int64_t total = std::max<int64_t>(full - *wanted, 0);
    const bool more_at_begin = auto_pad != "SAME_UPPER";
    begin = more_at_begin ? total - total / 2 : total / 2;
    end = full - *wanted - begin;
  }
  // What is appended needs no padding; below zero, zeros follow the output.
  end -= output_padding;
  const int64_t size = full - output_padding - begin - end;
  if (size < 1 || size > kMaxExtent * kMaxExtent) {
    return node.Error(
        absl::StrCat("axis ", 2 + d, " of its output would be ", size));
  }
  params.begin.push_back(begin);
  params.end.push_back(end);
  params.output.push_back(size);
  return absl::OkStatus();
}

absl::StatusOr<Params> Parse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 3}));
  for (size_t i = 0; i < node.input_count(); ++i) {
    RKNND_RETURN_IF_ERROR(CheckFloat(node, i));
  }
  const Shape& input = node.shape(0);
  const Shape& weights = node.shape(1);
  if (input.size() < 3 || input.size() > 5 || weights.size() != input.size()) {
    return node.Error(absl::StrCat("input ", ShapeText(input), ", weights ",
                                   ShapeText(weights)));
  }
  Params params;
  const size_t rank = input.size() - 2;
  params.groups = node.Int("group", 1);
  int64_t channels = 0;
  if (params.groups < 1 || weights[0] != input[1] || weights[0] < 1 ||
      weights[1] < 1 || input[1] % params.groups != 0 ||
      __builtin_mul_overflow(weights[1], params.groups, &channels)) {
    return node.Error(absl::StrCat("group ", params.groups,
                                   " does not fit input ", ShapeText(input),
                                   " and weights ", ShapeText(weights)));
  }
  if (node.has_input(2) && node.shape(2) != Shape{channels}) {
    return node.Error(absl::StrCat("bias ", ShapeText(node.shape(2)), ", ",
                                   channels, " output channels"));
  }
  params.kernel = Shape(weights.begin() + 2, weights.end());
  for (const int64_t size : params.kernel) {
    if (size < 1 || size > kMaxExtent) {
      return node.Error(
          absl::StrCat("its kernel is ", ShapeText(params.kernel)));
    }
  }
  if (node.Has("kernel_shape")) {
    RKNND_ASSIGN_OR_RETURN(const Shape given,
                           Read(node, "kernel_shape", rank, 1, 1));
    if (given != params.kernel) {
      return node.Error(absl::StrCat("kernel_shape is ", ShapeText(given),
                                     ", its weights have ",
                                     ShapeText(params.kernel)));
    }
  }
  RKNND_ASSIGN_OR_RETURN(params.strides, Read(node, "strides", rank, 1, 1));
  RKNND_ASSIGN_OR_RETURN(params.dilations, Read(node, "dilations", rank, 1, 1));
  RKNND_ASSIGN_OR_RETURN(const Shape pads, Read(node, "pads", 2 * rank, 0, 0));
  RKNND_ASSIGN_OR_RETURN(const Shape appended,
                         Read(node, "output_padding", rank, 0, 0));
  const std::string auto_pad = node.String("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID" && auto_pad != "SAME_UPPER" &&
      auto_pad != "SAME_LOWER") {
    return node.Error(absl::StrCat("auto_pad is '", auto_pad, "'"));
  }
  std::vector<int64_t> wanted = node.Ints("output_shape");
  // Some exporters write batch and channels too.
  if (wanted.size() == rank + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != rank) {
    return node.Error(
        absl::StrCat("output_shape has ", wanted.size(), " entries"));
  }
  params.output = {input[0], channels};
  for (size_t d = 0; d < rank; ++d) {
    if (input[2 + d] < 1) return node.Error("its input has no pixels");
    std::optional<int64_t> size;
    if (!wanted.empty()) {
      size = wanted[d];
      if (*size < 1 || *size > kMaxExtent * kMaxExtent) {
        return node.Error(absl::StrCat("output_shape cannot be ", *size));
      }
    }
    RKNND_RETURN_IF_ERROR(
        Fit(node, params, d, input[2 + d], appended[d], pads, size, auto_pad));
  }
  return params;
}

Inference InferTransposed(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  return InferOne(node, DataType::kFloat32, params.output);
}

class DnnlTransposed final : public Kernel {
 public:
  explicit DnnlTransposed(const KernelRequest& request) : step_(request) {}

  absl::Status Make(const KernelRequest& request, const Params& params);

  [[nodiscard]] size_t scratch_size() const override { return scratch_; }
  [[nodiscard]] bool reads_constant(size_t i) const override {
    return !(i == 1 && weights_ != nullptr);
  }
  [[nodiscard]] std::string implementation() const override {
    return implementation_;
  }
  [[nodiscard]] bool is_reference() const override {
    return !IsGenerated(implementation_);
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    std::array<void*, 5> data = {const_cast<std::byte*>(inputs[0]), outputs[0],
                                 scratch};
    size_t count = 3;
    if (weights_ == nullptr) data[count++] = const_cast<std::byte*>(inputs[1]);
    if (has_bias_) data[count++] = const_cast<std::byte*>(inputs[2]);
    RKNND_RETURN_IF_ERROR(call_->Run(std::span(data.data(), count)));
    step_.Activate(As<float>(outputs[0]));
    return absl::OkStatus();
  }

 private:
  EpilogueStep step_;
  bool has_bias_ = false;
  const std::byte* weights_ = nullptr;
  std::string implementation_;
  std::optional<DnnlCall> call_;
  size_t scratch_ = 0;
};

absl::Status DnnlTransposed::Make(const KernelRequest& request,
                                  const Params& params) {
  using Primitive = dnnl::deconvolution_forward;
  using Dims = dnnl::memory::dims;
  constexpr auto kFloat = dnnl::memory::data_type::f32;
  const Shape& from = request.inputs[1].shape;
  const auto dims_of = [](const Shape& shape) {
    return Dims(shape.begin(), shape.end());
  };
  // ONNX: input channels first, those of a group side by side. oneDNN:
  // group, output channels, input channels.
  const Shape dense = DenseStrides(from);
  Dims dims = {from[1], from[0] / params.groups};
  Dims strides = {dense[1], dense[0]};
  dims.insert(dims.end(), from.begin() + 2, from.end());
  strides.insert(strides.end(), dense.begin() + 2, dense.end());
  if (params.groups > 1) {
    dims.insert(dims.begin(), params.groups);
    strides.insert(strides.begin(), from[0] / params.groups * dense[0]);
  }
  const dnnl::memory::desc given(dims, kFloat, strides);
  const Constant* weights = request.node.constant(1);
  const auto wanted =
      weights == nullptr
          ? given
          : dnnl::memory::desc(dims, kFloat, dnnl::memory::format_tag::any);
  has_bias_ = request.node.has_input(2);
  const auto bias =
      has_bias_ ? DescribeDense(std::array<int64_t, 1>{params.output[1]})
                : dnnl::memory::desc();
  Dims dilations = dims_of(params.dilations);
  for (auto& dilation : dilations) --dilation;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto input = Describe(request.inputs[0]);
  const auto output = Describe(request.outputs[0]);
  const Primitive::primitive_desc chosen(
      Primitive::desc(dnnl::prop_kind::forward_inference,
                      dnnl::algorithm::deconvolution_direct, input, wanted,
                      bias, output, dims_of(params.strides), dilations,
                      dims_of(params.begin), dims_of(params.end)),
      attributes, CpuEngine());
  implementation_ = ImplementationOf(chosen);
  if (weights != nullptr) {
    RKNND_ASSIGN_OR_RETURN(
        weights_, request.weights.Store(
                      chosen.weights_desc().get_size(), [&](std::byte* room) {
                        ReorderNow(given, weights->data.data(),
                                   chosen.weights_desc(), room);
                      }));
  }
  scratch_ = chosen.scratchpad_desc().get_size();
  std::vector<DnnlArgument> arguments = {
      {DNNL_ARG_SRC, input},
      {DNNL_ARG_DST, output},
      {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()},
      {DNNL_ARG_WEIGHTS, chosen.weights_desc(), weights_}};
  if (has_bias_) arguments.push_back({DNNL_ARG_BIAS, bias});
  call_.emplace(Primitive(chosen), arguments);
  return absl::OkStatus();
}

// Three spatial axes, of which the first may be 1.
MadeKernel MakePlain(const KernelRequest& request, const Params& params) {
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1},
      stride{1, 1, 1}, dilation{1, 1, 1}, begin{0, 0, 0};
  const size_t ahead = 3 - params.rank();
  const Shape& input = request.inputs[0].shape;
  for (size_t d = 0; d < params.rank(); ++d) {
    in[ahead + d] = input[2 + d];
    out[ahead + d] = params.output[2 + d];
    kernel[ahead + d] = params.kernel[d];
    stride[ahead + d] = params.strides[d];
    dilation[ahead + d] = params.dilations[d];
    begin[ahead + d] = params.begin[d];
  }
  const int64_t batch = input[0], channels = input[1], groups = params.groups;
  const int64_t outputs_of_group = params.output[1] / groups;
  const int64_t inputs_of_group = channels / groups;
  const bool has_bias = request.node.has_input(2);
  const EpilogueStep step(request);
  return MakeKernel([=](Inputs inputs, Outputs outputs, std::byte*) {
    const int64_t in_size = in[0] * in[1] * in[2];
    const int64_t out_size = out[0] * out[1] * out[2];
    const int64_t kernel_size = kernel[0] * kernel[1] * kernel[2];
    const auto* weights = As<float>(inputs[1]);
    auto* result = As<float>(outputs[0]);
    const int64_t planes = groups * outputs_of_group;
    for (int64_t p = 0; p < batch * planes; ++p) {
      std::fill_n(result + p * out_size, out_size,
                  has_bias ? As<float>(inputs[2])[p % planes] : 0.0F);
    }
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t c = 0; c < channels; ++c) {
        const float* from = As<float>(inputs[0]) + (n * channels + c) * in_size;
        for (int64_t m = 0; m < outputs_of_group; ++m) {
          const float* w = weights + (c * outputs_of_group + m) * kernel_size;
          const int64_t plane = c / inputs_of_group * outputs_of_group + m;
          float* to = result + (n * planes + plane) * out_size;
          for (int64_t k = 0; k < kernel_size; ++k) {
            StopPoint();
            const std::array<int64_t, 3> tap = {
                k / (kernel[1] * kernel[2]) * dilation[0] - begin[0],
                k / kernel[2] % kernel[1] * dilation[1] - begin[1],
                k % kernel[2] * dilation[2] - begin[2]};
            for (int64_t i = 0; i < in_size; ++i) {
              const int64_t z = i / (in[1] * in[2]) * stride[0] + tap[0];
              const int64_t y = i / in[2] % in[1] * stride[1] + tap[1];
              const int64_t x = i % in[2] * stride[2] + tap[2];
              if (z < 0 || z >= out[0] || y < 0 || y >= out[1] || x < 0 ||
                  x >= out[2]) {
                continue;
              }
              to[(z * out[1] + y) * out[2] + x] += from[i] * w[k];
            }
          }
        }
      }
    }
    step.Activate(result);
  });
}

// Along one axis, the pixels of the output whose number is `first` more than a
// multiple of the stride: a convolution with the taps that reach them, the last
// one first.
struct AxisPhase {
  int64_t first = 0, outputs = 0, pads = 0, dilation = 1;
  std::vector<int64_t> taps;
};

AxisPhase PhaseOf(const Params& params, size_t d, int64_t input,
                  int64_t first) {
  const int64_t stride = params.strides[d];
  const int64_t dilation = params.dilations[d];
  AxisPhase phase;
  phase.first = first;
  phase.outputs = (params.output[2 + d] - first + stride - 1) / stride;
  phase.dilation = dilation / std::gcd(stride, dilation);
  for (int64_t k = params.kernel[d] - 1; k >= 0; --k) {
    // Pixel j of the phase takes pixel j + shift of the input from tap k.
    const int64_t reach = first + params.begin[d] - k * dilation;
    if (reach % stride != 0) continue;
    const int64_t shift = reach / stride;
    if (phase.taps.empty()) phase.pads = -shift;
    phase.taps.push_back(k);
  }
  // Nothing reaches them: one tap that reads what is before the input.
  if (phase.taps.empty()) phase.pads = phase.outputs + input;
  return phase;
}

// The weights of the taps of each axis, as a convolution has them.
std::vector<float> WeightsOf(const Constant& weights, const Params& params,
                             const std::vector<AxisPhase>& axes) {
  const Shape& shape = weights.shape;
  const int64_t inputs = shape[0] / params.groups;
  const int64_t kernel = ProductOf(shape, 2, shape.size());
  std::vector<int64_t> taps = {0};
  for (size_t d = 0; d < axes.size(); ++d) {
    std::vector<int64_t> next;
    for (const int64_t before : taps) {
      for (const int64_t tap : axes[d].taps) {
        next.push_back(before * params.kernel[d] + tap);
      }
    }
    taps = std::move(next);
  }
  std::vector<float> result;
  if (taps.empty()) {
    result.resize(static_cast<size_t>(params.groups * shape[1] * inputs));
    return result;
  }
  for (int64_t o = 0; o < params.groups * shape[1]; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      const int64_t from =
          (o / shape[1] * inputs + i) * shape[1] + o % shape[1];
      for (const int64_t tap : taps) {
        result.push_back(weights.as<float>()[from * kernel + tap]);
      }
    }
  }
  return result;
}

// More of them than any network asks for are slow, and many.
constexpr int64_t kMostPhases = 64;

bool HasPhases(const NodeView& node) {
  return node.constant(1) != nullptr &&
         (!node.has_input(2) || node.constant(2) != nullptr);
}

// Adds a phase, or where its windows are those of the last one, its channels.
void Join(ConvolutionPhase phase, int64_t groups,
          std::vector<ConvolutionPhase>& phases) {
  if (groups == 1 && !phases.empty()) {
    ConvolutionPhase& last = phases.back();
    if (last.kernel == phase.kernel && last.pads == phase.pads &&
        last.dilations == phase.dilations && last.outputs == phase.outputs) {
      last.output_first.push_back(phase.output_first[0]);
      last.weights.insert(last.weights.end(), phase.weights.begin(),
                          phase.weights.end());
      return;
    }
  }
  phases.push_back(std::move(phase));
}

MadeKernel MakeOfPhases(const KernelRequest& request, const Params& params) {
  FloatConvolutionSpec spec;
  spec.input = request.inputs[0];
  spec.output = request.outputs[0];
  spec.groups = params.groups;
  if (request.node.has_input(2)) {
    const Constant& bias = *request.node.constant(2);
    spec.bias.assign(bias.as<float>(), bias.as<float>() + bias.elements());
  }
  const size_t rank = params.rank();
  const int64_t phases = ProductOf(params.strides, 0, rank);
  for (int64_t n = 0; n < phases; ++n) {
    std::vector<AxisPhase> axes(rank);
    bool exists = true;
    bool reached = true;
    int64_t rest = n;
    for (size_t d = rank; d > 0; --d) {
      const int64_t first = rest % params.strides[d - 1];
      rest /= params.strides[d - 1];
      exists = exists && first < params.output[1 + d];
      axes[d - 1] =
          PhaseOf(params, d - 1, request.inputs[0].shape[1 + d], first);
      reached = reached && !axes[d - 1].taps.empty();
    }
    if (!exists) continue;
    ConvolutionPhase phase;
    Shape first;
    phase.weights = WeightsOf(*request.node.constant(1), params, axes);
    for (const AxisPhase& axis : axes) {
      phase.kernel.push_back(reached ? static_cast<int64_t>(axis.taps.size())
                                     : 1);
      phase.strides.push_back(1);
      phase.dilations.push_back(axis.dilation);
      phase.pads.push_back(axis.pads);
      phase.outputs.push_back(axis.outputs);
      first.push_back(axis.first);
    }
    phase.output_steps = params.strides;
    phase.output_first = {first};
    Join(std::move(phase), params.groups, spec.phases);
  }
  return MakeFloatConvolution(request, spec);
}

// Of an output with a few channels most of a block would be padding.
bool MayBlock(const NodeView& node, size_t i, int block) {
  if (!HasPhases(node)) return false;
  const int64_t channels = node.shape(1)[1] * node.Int("group", 1);
  return i == 0 || (i >= node.input_count() && 2 * channels >= block);
}

// In one call of oneDNN's, in stretches of work (stop.h).
constexpr int64_t kMostAtOnce = 4;

int64_t Products(const KernelRequest& request, const Params& params) {
  return request.inputs[0].elements() * (params.output[1] / params.groups) *
         ProductOf(params.kernel, 0, params.rank());
}

MadeKernel MakeTransposed(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(request.node));
  RKNND_RETURN_IF_ERROR(EpilogueStep::Check(request));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  if (HasPhases(request.node) &&
      ProductOf(params.strides, 0, params.rank()) <= kMostPhases) {
    return MakeOfPhases(request, params);
  }
  bool suits = true;
  for (size_t d = 0; d < params.rank(); ++d) {
    suits = suits && params.begin[d] >= 0 && params.end[d] >= 0 &&
            params.begin[d] < params.Extent(d) &&
            params.end[d] < params.Extent(d);
  }
  // oneDNN's cannot be stopped.
  if (suits) {
    auto kernel = std::make_unique<DnnlTransposed>(request);
    const absl::Status made =
        GuardDnnl(request.node, [&] { return kernel->Make(request, params); });
    const int64_t most =
        kernel->is_reference() ? kMostOfPlainLoops : MostOperations();
    if (made.ok() && Products(request, params) <= kMostAtOnce * most) {
      return kernel;
    }
  }
  return MakePlain(request, params);
}

}  // namespace

void RegisterConvolutionTranspose(OperatorTable& table) {
  table.Add({.type = "ConvTranspose",
             .placement = PlacementRule::kChannelwise,
             .infer = InferTransposed,
             .make = MakeTransposed,
             .may_block = MayBlock,
             .takes_activation = true});
}

}  // namespace rknnd::soft
