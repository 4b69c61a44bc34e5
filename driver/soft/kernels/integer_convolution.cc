// See integer_convolution.h.

#include "driver/soft/kernels/integer_convolution.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/exact_convolution.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/quantization.h"

namespace rknnd::soft {
namespace {

using Primitive = dnnl::convolution_forward;
using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;
constexpr size_t kAlignment = 64;

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Dims From(const Shape& shape) { return Dims(shape.begin(), shape.end()); }

bool HasByteProducts() {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [isa](dnnl::cpu_isa wanted) {
    const auto bits = static_cast<unsigned>(wanted);
    return (isa & bits) == bits;
  };
  return has(dnnl::cpu_isa::avx512_core_vnni) || has(dnnl::cpu_isa::avx2_vnni);
}

Dims GroupedDims(const IntegerConvolutionSpec& spec) {
  Dims dims = From(spec.weights_shape);
  if (spec.groups > 1) {
    dims[0] /= spec.groups;
    dims.insert(dims.begin(), spec.groups);
  }
  return dims;
}

dnnl::memory::desc BiasDesc(const IntegerConvolutionSpec& spec) {
  if (spec.bias.empty()) return {};
  return {{spec.weights_shape[0]}, Type::f32, dnnl::memory::format_tag::a};
}

Primitive::primitive_desc Choose(const IntegerConvolutionSpec& spec,
                                 const dnnl::memory::desc& source,
                                 const dnnl::memory::desc& weights,
                                 const dnnl::memory::desc& target,
                                 const dnnl::primitive_attr& attributes) {
  Dims dilations = From(spec.dilations);
  for (auto& dilation : dilations) --dilation;
  return {Primitive::desc(dnnl::prop_kind::forward_inference,
                          dnnl::algorithm::convolution_direct, source, weights,
                          BiasDesc(spec), target, From(spec.strides), dilations,
                          From(spec.pads_begin), From(spec.pads_end)),
          attributes, CpuEngine(), /*allow_empty=*/true};
}

// oneDNN adds the output's zero point first and rounds then; the reference
// rounds first. A value that falls to the other side moves a whole step, and
// deep networks make much of one step. So oneDNN never sees that zero point:
// where it is the middle of the range, the other signedness does the same;
// else the steps come out as floats and are rounded here.
bool IsMiddle(const IntegerConvolutionSpec& spec) {
  return (spec.output.type == DataType::kInt8 && spec.output_zero == -128) ||
         (spec.output.type == DataType::kUint8 && spec.output_zero == 128);
}

bool IsSlow(const Primitive::primitive_desc& primitive) {
  return std::string_view(primitive.impl_info_str()).substr(0, 3) == "ref";
}

// Whether no sum, nor any part of one, leaves the integers floats hold.
bool FloatsAreExact(const IntegerConvolutionSpec& spec) {
  constexpr int64_t kExact = int64_t{1} << 24;
  const int64_t low = spec.input.type == DataType::kInt8 ? -128 : 0;
  const int64_t largest =
      spec.input_zero_at.has_value()
          ? 255
          : std::max(spec.input_zero - low, low + 255 - spec.input_zero);
  const auto each = static_cast<std::ptrdiff_t>(
      ProductOf(spec.weights_shape, 1, spec.weights_shape.size()));
  for (auto w = spec.weights.begin(); w < spec.weights.end(); w += each) {
    const int64_t sum = std::accumulate(
        w, w + each, int64_t{0},
        [](int64_t total, int16_t weight) { return total + std::abs(weight); });
    if (sum * largest >= kExact) return false;
  }
  return true;
}

}  // namespace

IntegerConvolution::IntegerConvolution(IntegerConvolutionSpec spec)
    : spec_(std::move(spec)) {}

MadeKernel IntegerConvolution::Make(const KernelRequest& request,
                                    IntegerConvolutionSpec spec) {
  if (spec.output.type == DataType::kInt32 && !FloatsAreExact(spec)) {
    return MakeExactConvolution(request, std::move(spec));
  }
  return MakeWhole(request, std::move(spec));
}

MadeKernel IntegerConvolution::MakeShared(const KernelRequest& request,
                                          IntegerConvolutionSpec spec) {
  if (spec.output.type == DataType::kInt32 && !FloatsAreExact(spec)) {
    return MakeExactConvolution(request, std::move(spec));
  }
  RKNND_ASSIGN_OR_RETURN(std::unique_ptr<IntegerConvolution> kernel,
                         MakeWhole(request, std::move(spec)));
  const IntegerConvolution& whole = *kernel;
  const IntegerConvolutionSpec& from = whole.spec_;
  const ConvolutionForm form{
      from.input,
      from.output,
      {from.weights_shape.begin() + 2, from.weights_shape.end()},
      from.strides,
      from.dilations,
      from.pads_begin,
      from.pads_end,
      from.groups};
  return ConvolutionInPieces::Make(std::move(kernel), form, request.cores,
                                   SIZE_MAX,
                                   [&](const ConvolutionPiece& piece) {
                                     return MakePiece(request, whole, piece);
                                   });
}

MadeKernel IntegerConvolution::MakePiece(const KernelRequest& request,
                                         const IntegerConvolution& whole,
                                         const ConvolutionPiece& piece) {
  IntegerConvolutionSpec spec = whole.spec_;
  spec.input = piece.input;
  spec.output = piece.output;
  spec.strides = piece.strides;
  spec.pads_begin = piece.pads_begin;
  spec.pads_end = piece.pads_end;
  std::unique_ptr<IntegerConvolution> kernel(
      new IntegerConvolution(std::move(spec)));
  RKNND_RETURN_IF_ERROR(GuardDnnl(request.node, [&]() -> absl::Status {
    if (whole.in_floats_) return kernel->MakeFloat(request, &whole);
    return kernel->MakeInteger(request, &whole).status();
  }));
  if (kernel->implementation_ != whole.implementation_) {
    return absl::UnimplementedError("a piece is computed otherwise");
  }
  kernel->spec_.bias = {};
  return kernel;
}

absl::StatusOr<std::unique_ptr<IntegerConvolution>>
IntegerConvolution::MakeWhole(const KernelRequest& request,
                              IntegerConvolutionSpec spec) {
  std::unique_ptr<IntegerConvolution> kernel(
      new IntegerConvolution(std::move(spec)));
  bool integer = false;
  const absl::Status made = GuardDnnl(request.node, [&]() -> absl::Status {
    RKNND_ASSIGN_OR_RETURN(integer, kernel->MakeInteger(request));
    return absl::OkStatus();
  });
  if (absl::IsResourceExhausted(made)) return made;
  if (!made.ok() || !integer) {
    RKNND_RETURN_IF_ERROR(
        GuardDnnl(request.node, [&] { return kernel->MakeFloat(request); }));
  }
  kernel->spec_.weights = {};
  return kernel;
}

bool IntegerConvolution::reads_constant(size_t i) const {
  return i == 0 || spec_.input_zero_at == i;
}

bool IntegerConvolution::FitsInt8() const {
  return std::all_of(spec_.weights.begin(), spec_.weights.end(),
                     [](int16_t w) { return w >= -128 && w <= 127; });
}

absl::Status IntegerConvolution::PackWeights(const KernelRequest& request,
                                             const dnnl::memory::desc& wanted,
                                             bool as_integers) {
  const Dims dims = GroupedDims(spec_);
  TensorSpec plain{DataType::kFloat32, Shape(dims.begin(), dims.end()), {}};
  const auto pack =
      [&]<class T>(const std::vector<T>& numbers) -> absl::Status {
    RKNND_ASSIGN_OR_RETURN(
        weights_,
        request.weights.Store(wanted.get_size(), [&](std::byte* room) {
          ReorderNow(Describe(plain), numbers.data(), wanted, room);
        }));
    return absl::OkStatus();
  };
  if (!as_integers) {
    return pack(std::vector<float>(spec_.weights.begin(), spec_.weights.end()));
  }
  plain.type = DataType::kInt8;
  return pack(std::vector<int8_t>(spec_.weights.begin(), spec_.weights.end()));
}

absl::Status IntegerConvolution::Pack(const KernelRequest& request,
                                      const IntegerConvolution* whole,
                                      bool as_integers) {
  if (whole != nullptr) {
    weights_ = whole->weights_;
    bias_ = whole->bias_;
    scale_ = whole->scale_;
    return absl::OkStatus();
  }
  RKNND_RETURN_IF_ERROR(PackWeights(request, packed_desc_, as_integers));
  if (!spec_.bias.empty()) {
    RKNND_ASSIGN_OR_RETURN(
        bias_, request.weights.StoreCopy(std::as_bytes(std::span(spec_.bias))));
  }
  if (!as_integers) {
    RKNND_ASSIGN_OR_RETURN(
        const std::byte* const scale,
        request.weights.StoreCopy(std::as_bytes(std::span(spec_.scale))));
    scale_ = As<float>(scale);
  }
  return absl::OkStatus();
}

void IntegerConvolution::SetPostOps(dnnl::primitive_attr& attributes) const {
  const Epilogue& epilogue = spec_.epilogue;
  dnnl::post_ops post_ops;
  using dnnl::algorithm;
  if (epilogue.activation == Activation::kRelu) {
    post_ops.append_eltwise(1.0F, algorithm::eltwise_relu, 0.0F, 0.0F);
  } else if (epilogue.activation == Activation::kLeakyRelu) {
    post_ops.append_eltwise(1.0F, algorithm::eltwise_relu, epilogue.alpha,
                            0.0F);
  } else if (epilogue.activation == Activation::kClip) {
    post_ops.append_eltwise(1.0F, algorithm::eltwise_clip, epilogue.alpha,
                            epilogue.beta);
  }
  attributes.set_post_ops(post_ops);
}

absl::StatusOr<bool> IntegerConvolution::MakeInteger(
    const KernelRequest& request, const IntegerConvolution* whole) {
  if (whole == nullptr &&
      (!HasByteProducts() || !FitsInt8() || spec_.input_zero_at.has_value())) {
    return false;
  }
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (spec_.output.type != DataType::kInt32) {
    attributes.set_output_scales(spec_.scale.size() > 1 ? 1 << 1 : 0,
                                 spec_.scale);
  }
  if (spec_.input_zero != 0) {
    attributes.set_zero_points(DNNL_ARG_SRC, 0, {spec_.input_zero});
  }
  TensorSpec result = spec_.output;
  if (SizeOf(result.type) == 1 && spec_.output_zero != 0) {
    flips_ = IsMiddle(spec_);
    rounds_ = !flips_;
    result.type = rounds_                          ? DataType::kFloat32
                  : result.type == DataType::kInt8 ? DataType::kUint8
                                                   : DataType::kInt8;
  }
  SetPostOps(attributes);
  const auto source = Describe(spec_.input);
  const auto target = Describe(result);
  const Primitive::primitive_desc chosen = Choose(
      spec_, source,
      whole != nullptr ? whole->packed_desc_
                       : dnnl::memory::desc(GroupedDims(spec_), Type::s8,
                                            dnnl::memory::format_tag::any),
      target, attributes);
  if (!chosen || IsSlow(chosen)) return false;
  // May throw: before anything is stored.
  const Primitive primitive(chosen);
  implementation_ = chosen.impl_info_str();
  packed_desc_ = chosen.weights_desc();
  RKNND_RETURN_IF_ERROR(Pack(request, whole, /*as_integers=*/true));
  scratch_ = chosen.scratchpad_desc().get_size();
  if (rounds_) {
    output_at_ = Aligned(scratch_);
    scratch_ = output_at_ + Aligned(result.bytes());
  }
  std::vector<DnnlArgument> arguments = {
      {DNNL_ARG_SRC, source},
      {DNNL_ARG_DST, target},
      {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()},
      {DNNL_ARG_WEIGHTS, chosen.weights_desc(), weights_}};
  if (bias_ != nullptr) {
    arguments.push_back({DNNL_ARG_BIAS, chosen.bias_desc(), bias_});
  }
  call_.emplace(primitive, arguments);
  return true;
}

absl::Status IntegerConvolution::MakeFloat(const KernelRequest& request,
                                           const IntegerConvolution* whole) {
  in_floats_ = true;
  rounds_ = flips_ = false;
  scratch_ = 0;
  call_.reset();
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  TensorSpec source = spec_.input;
  TensorSpec target = spec_.output;
  source.type = target.type = DataType::kFloat32;
  const Primitive::primitive_desc chosen = Choose(
      spec_, Describe(source),
      whole != nullptr ? whole->packed_desc_
                       : dnnl::memory::desc(GroupedDims(spec_), Type::f32,
                                            dnnl::memory::format_tag::any),
      Describe(target), attributes);
  if (!chosen) return request.node.Error("oneDNN has no kernel for it");
  implementation_ = chosen.impl_info_str();
  packed_desc_ = chosen.weights_desc();
  RKNND_RETURN_IF_ERROR(Pack(request, whole, /*as_integers=*/false));
  input_at_ = Aligned(chosen.scratchpad_desc().get_size());
  output_at_ = input_at_ + Aligned(source.bytes());
  scratch_ = output_at_ + Aligned(target.bytes());
  std::vector<DnnlArgument> arguments = {
      {DNNL_ARG_SRC, chosen.src_desc()},
      {DNNL_ARG_DST, chosen.dst_desc()},
      {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()},
      {DNNL_ARG_WEIGHTS, chosen.weights_desc(), weights_}};
  if (bias_ != nullptr) {
    arguments.push_back({DNNL_ARG_BIAS, chosen.bias_desc(), bias_});
  }
  call_.emplace(Primitive(chosen), arguments);
  return absl::OkStatus();
}

void IntegerConvolution::Widen(const std::byte* input, int32_t zero,
                               float* out) const {
  const int64_t count = spec_.input.elements();
  const auto widen = [&](const auto* in) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<float>(int32_t{in[i]} - zero);
    }
  };
  spec_.input.type == DataType::kInt8 ? widen(As<int8_t>(input))
                                      : widen(As<uint8_t>(input));
}

// `scale` moves by `step` with the elements.
template <class T>
void IntegerConvolution::FinishRun(const float* sums, const float* scale,
                                   size_t step, int64_t count, T* out) const {
  const Epilogue& epilogue = spec_.epilogue;
  // Relu and leaky Relu are one thing, and none is one with slope 1.
  const float slope = epilogue.activation == Activation::kRelu ? 0.0F
                      : epilogue.activation == Activation::kLeakyRelu
                          ? epilogue.alpha
                          : 1.0F;
  const bool clips = epilogue.activation == Activation::kClip;
  const float low =
      clips ? epilogue.alpha : std::numeric_limits<float>::lowest();
  const float high = clips ? epilogue.beta : std::numeric_limits<float>::max();
  for (int64_t i = 0; i < count; ++i) {
    float v = sums[i] * scale[static_cast<size_t>(i) * step];
    v = v < 0.0F ? v * slope : v;
    v = v > low ? v : low;
    v = v < high ? v : high;
    if constexpr (std::is_same_v<T, float>) {
      out[i] = v;
    } else {
      out[i] = Quantize<T>(v, spec_.output_zero);
    }
  }
}

template <class T>
void IntegerConvolution::Finish(const float* sums, T* out) const {
  const Shape& shape = spec_.output.shape;
  const int64_t pixels = ProductOf(shape, 2, shape.size());
  const int64_t count = spec_.output.elements();
  if (spec_.scale.size() == 1) {
    FinishRun(sums, scale_, 0, count, out);
  } else if (spec_.output.channels_last()) {
    for (int64_t at = 0; at < count; at += shape[1]) {
      FinishRun(sums + at, scale_, 1, shape[1], out + at);
    }
  } else {
    for (int64_t at = 0, plane = 0; at < count; at += pixels, ++plane) {
      FinishRun(sums + at, scale_ + plane % shape[1], 0, pixels, out + at);
    }
  }
}

absl::Status IntegerConvolution::Run(Inputs inputs, Outputs outputs,
                                     std::byte* scratch) const {
  if (rounds_) {
    auto* steps = As<float>(scratch + output_at_);
    void* const data[] = {const_cast<std::byte*>(inputs[0]), steps, scratch};
    RKNND_RETURN_IF_ERROR(call_->Run(data));
    const int64_t count = spec_.output.elements();
    const auto round = [&](auto* out) {
      using T = std::remove_pointer_t<decltype(out)>;
      for (int64_t i = 0; i < count; ++i) {
        out[i] = Quantize<T>(steps[i], spec_.output_zero);
      }
    };
    spec_.output.type == DataType::kInt8 ? round(As<int8_t>(outputs[0]))
                                         : round(As<uint8_t>(outputs[0]));
    return absl::OkStatus();
  }
  if (!in_floats_) {
    void* const data[] = {const_cast<std::byte*>(inputs[0]), outputs[0],
                          scratch};
    RKNND_RETURN_IF_ERROR(call_->Run(data));
    if (!flips_) return absl::OkStatus();
    const int64_t count = spec_.output.elements();
    auto* out = As<uint8_t>(outputs[0]);
    for (int64_t i = 0; i < count; ++i) out[i] ^= 0x80;
    return absl::OkStatus();
  }
  int32_t zero = spec_.input_zero;
  if (spec_.input_zero_at.has_value()) {
    const std::byte* at = inputs[*spec_.input_zero_at];
    zero = spec_.input.type == DataType::kInt8 ? int32_t{*As<int8_t>(at)}
                                               : int32_t{*As<uint8_t>(at)};
  }
  auto* source = As<float>(scratch + input_at_);
  auto* sums = As<float>(scratch + output_at_);
  Widen(inputs[0], zero, source);
  void* const data[] = {source, sums, scratch};
  RKNND_RETURN_IF_ERROR(call_->Run(data));
  switch (spec_.output.type) {
    case DataType::kInt8:
      Finish(sums, As<int8_t>(outputs[0]));
      break;
    case DataType::kUint8:
      Finish(sums, As<uint8_t>(outputs[0]));
      break;
    case DataType::kInt32: {
      auto* out = As<int32_t>(outputs[0]);
      const int64_t count = spec_.output.elements();
      for (int64_t i = 0; i < count; ++i) {
        out[i] = static_cast<int32_t>(sums[i]);
      }
      break;
    }
    default:
      Finish(sums, As<float>(outputs[0]));
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
