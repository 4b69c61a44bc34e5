// Conv in one to three dimensions, with groups, dilations and whatever fusion
// put behind it, on oneDNN. Weights known while loading are packed once into
// the layout the primitive likes best.

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/convolution/convolution_cut.h"
#include "driver/soft/kernels/convolution/float_convolution.h"
#include "driver/soft/kernels/convolution/plain_convolution.h"
#include "driver/soft/kernels/convolution/window.h"
#include "driver/soft/kernels/epilogue.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/onednn.h"
#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::soft {
namespace {

using Primitive = dnnl::convolution_forward;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
constexpr auto kFloat = dnnl::memory::data_type::f32;

struct Params {
  Window window;
  int64_t groups = 1;
  bool grouped = false;  // also where a piece has one group of several
  Shape output;
};

absl::StatusOr<Params> Parse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 3}));
  for (size_t i = 0; i < node.input_count(); ++i) {
    RKNND_RETURN_IF_ERROR(CheckFloat(node, i));
  }
  const Shape& input = node.shape(0);
  const Shape& weights = node.shape(1);
  if (input.size() < 3 || weights.size() != input.size()) {
    return node.Error(absl::StrCat("input ", ShapeText(input), ", weights ",
                                   ShapeText(weights)));
  }
  Params params;
  params.groups = node.Int("group", 1);
  params.grouped = params.groups > 1;
  const int64_t channels = input[1];
  if (params.groups < 1 || channels % params.groups != 0 ||
      weights[1] != channels / params.groups || weights[1] < 1 ||
      weights[0] < 1 || weights[0] % params.groups != 0) {
    return node.Error(absl::StrCat("group ", params.groups,
                                   " does not fit input ", ShapeText(input),
                                   " and weights ", ShapeText(weights)));
  }
  if (node.has_input(2) && node.shape(2) != Shape{weights[0]}) {
    return node.Error(absl::StrCat("bias ", ShapeText(node.shape(2)), ", ",
                                   weights[0], " output channels"));
  }
  RKNND_ASSIGN_OR_RETURN(
      params.window, ParseWindow(node, input, std::span(weights).subspan(2)));
  params.output = {input[0], weights[0]};
  params.output.insert(params.output.end(), params.window.output.begin(),
                       params.window.output.end());
  return params;
}

Inference InferConv(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  return InferOne(node, DataType::kFloat32, params.output);
}

// oneDNN's kernels take blocked channels of one group, of depthwise
// convolutions, and of groups made of whole blocks. The first convolution of a
// network (up to three channels) reads dense pictures.
bool MayBlock(const NodeView& node, size_t i, int block) {
  const Shape& input = node.shape(0);
  const Shape& weights = node.shape(1);
  const int64_t groups = node.Int("group", 1);
  if (input.size() < 3 || input.size() > 5 || groups < 1 || input[1] < 1) {
    return false;
  }
  const bool is_output = i >= node.input_count();
  if (i != 0 && !is_output) return false;
  const int64_t inputs = input[1];
  const int64_t outputs = weights[0];
  if (groups == 1) return is_output || inputs > 3;
  if (groups == inputs && groups == outputs) return true;
  return (inputs / groups) % block == 0 && (outputs / groups) % block == 0;
}

bool IsSlow(const Primitive::primitive_desc& primitive) {
  return !IsGenerated(primitive.impl_info_str());
}

// Whether oneDNN computes it by a loop for any CPU, or writes each window out
// and multiplies matrices.
bool IsDetour(std::string_view implementation) {
  return !IsGenerated(implementation) ||
         implementation.find("gemm") != std::string_view::npos;
}

// Whether our own kernel can compute it.
bool HasOwn(const KernelRequest& request) {
  const NodeView& node = request.node;
  return node.constant(1) != nullptr &&
         (!node.has_input(2) || node.constant(2) != nullptr) &&
         request.inputs[0].shape.size() <= 5;
}

// Wide windows for few channels: oneDNN fills whole vectors with channels, and
// those it lacks it computes all the same.
bool IsNarrow(const Params& params, const KernelRequest& request) {
  constexpr int64_t kFewChannels = 8;
  constexpr int64_t kManyProducts = 128;
  const Shape& weights = request.inputs[1].shape;
  const int64_t positions = ProductOf(weights, 2, weights.size());
  return params.groups == 1 && weights[0] <= kFewChannels && positions > 1 &&
         positions * weights[1] >= kManyProducts;
}

// Many products for each number of the input and the output, so that moving
// these costs little beside them. A matter of the weights alone: all shapes of
// a model share them as they are packed.
bool IsMostlyWeights(const Params& params, const KernelRequest& request) {
  constexpr int64_t kMany = int64_t{1} << 19;
  const Shape& weights = request.inputs[1].shape;
  return params.groups == 1 && ProductOf(weights, 2, weights.size()) > 1 &&
         ProductOf(weights, 0, weights.size()) >= kMany;
}

class Convolution final : public Kernel {
 public:
  Convolution(const KernelRequest& request, Params params)
      : params_(std::move(params)), step_(request) {}

  // Throw dnnl::error and std::bad_alloc.
  absl::Status Make(const KernelRequest& request) {
    return Make(request, nullptr, {});
  }
  // One that reads the packed weights of `whole` from output channel
  // `channels.begin` on. UNIMPLEMENTED where oneDNN would compute it otherwise
  // than the whole, whose last bit it may then miss.
  absl::Status Make(const KernelRequest& request, const Convolution* whole,
                    Range channels);
  // Whether pieces give the same bits, as those of the kernels for blocks of
  // channels do. General matrix products sum in an order that depends on all
  // sizes; and weights given with each run are not packed.
  [[nodiscard]] bool CanBeCut() const {
    return weights_ != nullptr && (!has_bias_ || bias_ != nullptr) &&
           implementation_.find("gemm") == std::string::npos;
  }
  // Between which output channels the packed weights can be cut, or 0.
  [[nodiscard]] int64_t ChannelUnit() const;

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
                   std::byte* scratch) const override;

 private:
  // `packed`: how the weights lie already; empty: as it likes best.
  absl::StatusOr<Primitive::primitive_desc> Choose(
      const KernelRequest& request, const dnnl::memory::desc& packed) const;
  absl::Status Pack(const KernelRequest& request,
                    const dnnl::memory::desc& wanted);
  // The part of the whole's packed weights that has these output channels.
  dnnl::memory::desc BorrowWeights(const Convolution& whole, Range channels);
  size_t Take(size_t bytes);

  Params params_;
  EpilogueStep step_;
  bool has_bias_ = false;
  dnnl::primitive_attr attributes_;
  dnnl::memory::desc weights_desc_;     // as the model has them
  dnnl::memory::desc packed_desc_;      // as the primitive reads them
  std::string implementation_;          // oneDNN's name for it
  bool moves_pixels_ = false;           // to where that reads them
  const std::byte* weights_ = nullptr;  // packed; null: given with each run
  const std::byte* bias_ = nullptr;
  std::optional<DnnlCall> call_, reorder_input_, reorder_output_, reorder_add_;
  size_t scratch_ = 0, input_at_ = 0, output_at_ = 0, output_bytes_ = 0;
};

size_t Convolution::Take(size_t bytes) {
  constexpr size_t kAlignment = 64;
  const size_t at = scratch_;
  scratch_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return at;
}

// The placements the plan chose, where oneDNN has a quick kernel for them;
// otherwise others, with a reorder of our own on each side. With AVX-512 its
// products of small matrices read each weight once for many pixels, where its
// kernels for blocks of channels read all of them for each row of the output;
// but they want the channels last.
absl::StatusOr<Primitive::primitive_desc> Convolution::Choose(
    const KernelRequest& request, const dnnl::memory::desc& packed) const {
  const TensorSpec& input = request.inputs[0];
  const TensorSpec& output = request.outputs[0];
  const Window& window = params_.window;
  const auto from = [](const Shape& shape) {
    return Dims(shape.begin(), shape.end());
  };
  Dims dilations = from(window.dilations);
  for (auto& dilation : dilations) --dilation;
  const dnnl::memory::desc bias =
      has_bias_ ? dnnl::memory::desc({output.shape[1]}, kFloat, Tag::a)
                : dnnl::memory::desc();
  dnnl::memory::desc weights = packed;
  if (weights.is_zero()) {
    weights = request.node.constant(1) != nullptr
                  ? dnnl::memory::desc(weights_desc_.dims(), kFloat, Tag::any)
                  : weights_desc_;
  }
  const auto make = [&](const dnnl::memory::desc& source,
                        const dnnl::memory::desc& target) {
    return Primitive::primitive_desc(
        Primitive::desc(dnnl::prop_kind::forward_inference,
                        dnnl::algorithm::convolution_direct, source, weights,
                        bias, target, from(window.strides), dilations,
                        from(window.pads_begin), from(window.pads_end)),
        attributes_, CpuEngine(), /*allow_empty=*/true);
  };
  const dnnl::memory::desc any_input(from(input.shape), kFloat, Tag::any);
  const dnnl::memory::desc any_output(from(output.shape), kFloat, Tag::any);
  if (moves_pixels_) {
    auto liked = make(any_input, any_output);
    if (liked && std::string_view(liked.impl_info_str()).starts_with("brg")) {
      return liked;
    }
  }
  auto best = make(Describe(input), Describe(output));
  if (best && !IsSlow(best)) return best;
  auto other = make(any_input, any_output);
  if (other && (!best || !IsSlow(other))) best = std::move(other);
  if (!best && HasOwn(request)) {
    return absl::UnimplementedError("oneDNN has no kernel for it");
  }
  if (!best) return request.node.Error("oneDNN has no kernel for it");
  return best;
}

absl::Status Convolution::Pack(const KernelRequest& request,
                               const dnnl::memory::desc& wanted) {
  const Constant* weights = request.node.constant(1);
  if (weights != nullptr) {
    RKNND_ASSIGN_OR_RETURN(
        weights_,
        request.weights.Store(wanted.get_size(), [&](std::byte* room) {
          ReorderNow(weights_desc_, weights->data.data(), wanted, room);
        }));
  }
  const Constant* bias = has_bias_ ? request.node.constant(2) : nullptr;
  if (bias != nullptr) {
    RKNND_ASSIGN_OR_RETURN(
        bias_, request.weights.StoreCopy(std::as_bytes(std::span(bias->data))));
  }
  return absl::OkStatus();
}

int64_t Convolution::ChannelUnit() const {
  if (weights_ == nullptr || (has_bias_ && bias_ == nullptr)) return 0;
  if (packed_desc_.data.format_kind != dnnl_blocked ||
      packed_desc_.data.extra.flags != dnnl_memory_extra_flag_none) {
    return 0;
  }
  const dnnl_blocking_desc_t& blocking = packed_desc_.data.format_desc.blocking;
  int64_t unit = 1;
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    if (blocking.inner_idxs[i] == 0) unit *= blocking.inner_blks[i];
  }
  // The first axis counts groups where there are any.
  return params_.grouped ? unit * (params_.output[1] / params_.groups) : unit;
}

dnnl::memory::desc Convolution::BorrowWeights(const Convolution& whole,
                                              Range channels) {
  dnnl::memory::desc desc = whole.packed_desc_;
  weights_ = whole.weights_;
  if (whole.bias_ != nullptr) {
    bias_ = whole.bias_ + static_cast<size_t>(channels.begin) * sizeof(float);
  }
  if (channels.size() == whole.params_.output[1]) return desc;
  const int64_t unit = whole.ChannelUnit();
  const int64_t first_axis = weights_desc_.dims()[0];
  const int64_t step = whole.params_.grouped
                           ? whole.params_.output[1] / whole.params_.groups
                           : 1;
  const int64_t inner = unit / step;  // channels, or groups, in a block
  desc.data.dims[0] = first_axis;
  desc.data.padded_dims[0] = (first_axis + inner - 1) / inner * inner;
  const int64_t blocks = channels.begin / unit;
  weights_ +=
      static_cast<size_t>(blocks * desc.data.format_desc.blocking.strides[0]) *
      sizeof(float);
  return desc;
}

absl::Status Convolution::Make(const KernelRequest& request,
                               const Convolution* whole, Range channels) {
  const Shape& weights = request.inputs[1].shape;
  Dims weights_dims(weights.begin(), weights.end());
  if (params_.grouped) {
    weights_dims[0] /= params_.groups;
    weights_dims.insert(weights_dims.begin(), params_.groups);
  }
  weights_desc_ = DescribeDense(weights_dims);
  has_bias_ = request.node.has_input(2);
  dnnl::post_ops post_ops;
  if (step_.adds()) post_ops.append_sum(1.0F);
  // oneDNN's kernels for AVX activate nothing; it would take those for SSE4.1,
  // half as quick.
  if (CurrentCpuLevel() != CpuLevel::kAvx) step_.MoveActivationTo(post_ops);
  attributes_.set_post_ops(post_ops);
  attributes_.set_scratchpad_mode(dnnl::scratchpad_mode::user);

  moves_pixels_ = whole == nullptr ? IsMostlyWeights(params_, request)
                                   : whole->moves_pixels_;
  dnnl::memory::desc borrowed;
  if (whole != nullptr) borrowed = BorrowWeights(*whole, channels);
  RKNND_ASSIGN_OR_RETURN(const Primitive::primitive_desc chosen,
                         Choose(request, borrowed));
  implementation_ = ImplementationOf(chosen);
  if (whole == nullptr && HasOwn(request) &&
      (IsDetour(implementation_) || IsNarrow(params_, request))) {
    return absl::UnimplementedError("our own kernel is quicker");
  }
  packed_desc_ = chosen.weights_desc();
  if (whole == nullptr) {
    RKNND_RETURN_IF_ERROR(Pack(request, packed_desc_));
  } else if (implementation_ != whole->implementation_) {
    return absl::UnimplementedError("a piece is computed otherwise");
  }
  const dnnl::memory::desc input = Describe(request.inputs[0]);
  const dnnl::memory::desc output = Describe(request.outputs[0]);
  output_bytes_ = output.get_size();

  Take(chosen.scratchpad_desc().get_size());
  if (input != chosen.src_desc()) {
    input_at_ = Take(chosen.src_desc().get_size());
    reorder_input_.emplace(
        dnnl::reorder(dnnl::reorder::primitive_desc(
            CpuEngine(), input, CpuEngine(), chosen.src_desc())),
        std::vector<DnnlArgument>{{DNNL_ARG_FROM, input},
                                  {DNNL_ARG_TO, chosen.src_desc()}});
  }
  if (output != chosen.dst_desc()) {
    output_at_ = Take(chosen.dst_desc().get_size());
    reorder_output_.emplace(
        dnnl::reorder(dnnl::reorder::primitive_desc(
            CpuEngine(), chosen.dst_desc(), CpuEngine(), output)),
        std::vector<DnnlArgument>{{DNNL_ARG_FROM, chosen.dst_desc()},
                                  {DNNL_ARG_TO, output}});
    if (step_.adds()) {
      reorder_add_.emplace(
          dnnl::reorder(dnnl::reorder::primitive_desc(
              CpuEngine(), output, CpuEngine(), chosen.dst_desc())),
          std::vector<DnnlArgument>{{DNNL_ARG_FROM, output},
                                    {DNNL_ARG_TO, chosen.dst_desc()}});
    }
  }
  std::vector<DnnlArgument> arguments = {
      {DNNL_ARG_SRC, chosen.src_desc()},
      {DNNL_ARG_DST, chosen.dst_desc()},
      {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()},
      {DNNL_ARG_WEIGHTS, chosen.weights_desc(), weights_}};
  if (has_bias_) {
    arguments.push_back({DNNL_ARG_BIAS, chosen.bias_desc(), bias_});
  }
  call_.emplace(Primitive(chosen), arguments);
  return absl::OkStatus();
}

absl::Status Convolution::Run(Inputs inputs, Outputs outputs,
                              std::byte* scratch) const {
  auto* source = const_cast<std::byte*>(inputs[0]);
  std::byte* target = outputs[0];
  if (reorder_input_.has_value()) {
    void* const data[] = {source, scratch + input_at_};
    RKNND_RETURN_IF_ERROR(reorder_input_->Run(data));
    source = scratch + input_at_;
  }
  if (reorder_output_.has_value()) {
    target = scratch + output_at_;
    if (step_.adds()) {
      void* const data[] = {const_cast<std::byte*>(inputs[step_.add_index()]),
                            target};
      RKNND_RETURN_IF_ERROR(reorder_add_->Run(data));
    }
  } else if (step_.adds() && inputs[step_.add_index()] != target) {
    std::memcpy(target, inputs[step_.add_index()], output_bytes_);
  }
  std::array<void*, 5> data = {source, target, scratch};
  size_t count = 3;
  if (weights_ == nullptr) data[count++] = const_cast<std::byte*>(inputs[1]);
  if (has_bias_ && bias_ == nullptr) {
    data[count++] = const_cast<std::byte*>(inputs[2]);
  }
  RKNND_RETURN_IF_ERROR(call_->Run(std::span(data.data(), count)));
  if (reorder_output_.has_value()) {
    void* const moved[] = {target, outputs[0]};
    RKNND_RETURN_IF_ERROR(reorder_output_->Run(moved));
  }
  step_.Activate(As<float>(outputs[0]));
  return absl::OkStatus();
}

ConvolutionForm FormOf(const KernelRequest& request, const Params& params,
                       int64_t channel_unit) {
  const Window& window = params.window;
  return {request.inputs[0], request.outputs[0], window.kernel,
          window.strides,    window.dilations,   window.pads_begin,
          window.pads_end,   params.groups,      channel_unit};
}

MadeKernel MakePiece(const KernelRequest& request, const Params& params,
                     const Convolution& whole, const ConvolutionPiece& piece) {
  // More channels are summed in several passes, with strides in others.
  constexpr int64_t kOnePass = 64;
  if (piece.strides != params.window.strides &&
      piece.input.shape[1] > kOnePass) {
    return nullptr;
  }
  std::vector<TensorSpec> inputs(request.inputs.begin(), request.inputs.end());
  inputs[0] = piece.input;
  inputs[1].shape[0] = piece.channels.size();
  if (request.node.node().epilogue.add != kNoValue) {
    inputs.back() = piece.output;
  }
  const KernelRequest smaller{
      request.node, inputs, {&piece.output, 1}, request.weights};
  Params own = params;
  own.groups = piece.groups;
  own.output = piece.output.shape;
  own.window.strides = piece.strides;
  own.window.pads_begin = piece.pads_begin;
  own.window.pads_end = piece.pads_end;
  auto kernel = std::make_unique<Convolution>(smaller, std::move(own));
  RKNND_RETURN_IF_ERROR(GuardDnnl(request.node, [&] {
    return kernel->Make(smaller, &whole, piece.channels);
  }));
  return kernel;
}

// Pictures one pixel wide, as networks over sequences have them. oneDNN's
// kernels take several pixels of a row at a time.
bool IsColumn(const Params& params, const TensorSpec& input) {
  const Window& window = params.window;
  return window.rank() == 2 && input.shape[3] == 1 && window.output[1] == 1 &&
         window.kernel[1] == 1 && window.pads_begin[1] == 0 &&
         window.pads_end[1] == 0;
}

void LayDown(Params& params) {
  Window& window = params.window;
  for (Shape* sides : {&window.kernel, &window.strides, &window.dilations,
                       &window.pads_begin, &window.pads_end, &window.output}) {
    std::swap((*sides)[0], (*sides)[1]);
  }
  std::swap(params.output[2], params.output[3]);
}
void LayDown(TensorSpec& spec) {
  if (spec.shape.size() == 4) std::swap(spec.shape[2], spec.shape[3]);
}

MadeKernel MakeConvolution(const KernelRequest& request, const Params& params);

MadeKernel MakeConv(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(Params params, Parse(request.node));
  RKNND_RETURN_IF_ERROR(EpilogueStep::Check(request));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  if (!IsColumn(params, request.inputs[0])) {
    return MakeConvolution(request, params);
  }
  // The same bytes as one row of pixels.
  std::vector<TensorSpec> inputs(request.inputs.begin(), request.inputs.end());
  TensorSpec output = request.outputs[0];
  for (TensorSpec& spec : inputs) LayDown(spec);
  LayDown(output);
  LayDown(params);
  return MakeConvolution(
      {request.node, inputs, {&output, 1}, request.weights, request.cores},
      params);
}

// One of our own, where the weights are known now.
MadeKernel MakeOwn(const KernelRequest& request, const Params& params) {
  // None in a compiled model, which brings what was stored of them.
  const auto floats = [&](size_t i) {
    const Constant& constant = *request.node.constant(i);
    const auto count = constant.data.size() / sizeof(float);
    return std::vector<float>(constant.as<float>(),
                              constant.as<float>() + count);
  };
  FloatConvolutionSpec spec;
  spec.input = request.inputs[0];
  spec.output = request.outputs[0];
  spec.groups = params.groups;
  if (request.node.has_input(2)) spec.bias = floats(2);
  const Window& window = params.window;
  ConvolutionPhase phase;
  phase.kernel = window.kernel;
  phase.strides = window.strides;
  phase.dilations = window.dilations;
  phase.pads = window.pads_begin;
  phase.outputs = window.output;
  phase.output_first = {Shape(window.rank(), 0)};
  phase.output_steps = Shape(window.rank(), 1);
  phase.weights = floats(1);
  spec.phases.push_back(std::move(phase));
  return MakeFloatConvolution(request, spec);
}

MadeKernel MakeConvolution(const KernelRequest& request, const Params& params) {
  auto made = std::make_unique<Convolution>(request, params);
  const absl::Status status =
      GuardDnnl(request.node, [&] { return made->Make(request); });
  if (absl::IsUnimplemented(status)) return MakeOwn(request, params);
  RKNND_RETURN_IF_ERROR(status);
  const Convolution& whole = *made;
  std::unique_ptr<Kernel> kernel = std::move(made);
  MadeKernel cut = ConvolutionInPieces::Make(
      kernel, FormOf(request, params, whole.ChannelUnit()),
      whole.CanBeCut() ? request.cores : 1, request.node.input_count(),
      [&](const ConvolutionPiece& piece) {
        return MakePiece(request, params, whole, piece);
      });
  if (!absl::IsUnimplemented(cut.status())) return cut;
  // Ours can be stopped within a row.
  if (HasOwn(request)) return MakeOwn(request, params);
  return MakePlainConvolution(request, params.window, params.groups);
}

}  // namespace

void RegisterConvolution(OperatorTable& table) {
  table.Add({.type = "Conv",
             .placement = PlacementRule::kChannelwise,
             .infer = InferConv,
             .make = MakeConv,
             .may_block = MayBlock,
             .takes_activation = true,
             .takes_add = true,
             .overwrites = Overwrite::kAdded});
}

}  // namespace rknnd::soft
