// Resize and Upsample. Each axis that changes is one pass with a table of
// sources and weights for its output positions; the passes use scratch in turn.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

// A kernel keeps a table as long as each axis that it changes.
constexpr int64_t kMaxSize = 1 << 24;

struct Params {
  Shape output;
  std::vector<double> scales;
  std::vector<double> roi;  // starts, then ends; tf_crop_and_resize only
  std::string mode, coordinates, nearest;
  float cubic_a = -0.75F, extrapolation = 0.0F;
  bool exclude_outside = false, antialias = false;
  // Which axes sizes, scales and roi are of (opset 18); empty: all in order.
  std::vector<size_t> axes;
};

absl::StatusOr<std::vector<float>> KnownFloats(const NodeView& node, size_t i) {
  const Constant* constant = node.constant(i);
  if (constant == nullptr) return node.ConstantInts(i).status();
  if (constant->type != DataType::kFloat32) {
    return node.Error(absl::StrCat("input ", i, " must hold floats"));
  }
  const auto* from = constant->as<float>();
  return std::vector<float>(from, from + constant->elements());
}

// The node's sizes, or one scale for all axes where they are only bounds.
void TakeSizes(const NodeView& node, const std::vector<size_t>& axes,
               const std::vector<int64_t>& sizes, Params& params) {
  const std::string policy = node.String("keep_aspect_ratio_policy", "stretch");
  const Shape& input = node.shape(0);
  const auto scale_of = [&](size_t i) {
    return static_cast<double>(sizes[i]) /
           static_cast<double>(std::max<int64_t>(input[axes[i]], 1));
  };
  double common = axes.empty() ? 1.0 : scale_of(0);
  for (size_t i = 1; i < axes.size(); ++i) {
    common = policy == "not_larger" ? std::min(common, scale_of(i))
                                    : std::max(common, scale_of(i));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t d = axes[i];
    params.output[d] = sizes[i];
    params.scales[d] = scale_of(i);
    if (policy == "stretch") continue;
    const double size =
        std::floor(common * static_cast<double>(input[d]) + 0.5);
    params.scales[d] = common;
    params.output[d] = static_cast<int64_t>(
        std::clamp(size, -1.0, static_cast<double>(kMaxSize + 1)));
  }
}

// Where the numbers are: Upsample has an attribute up to version 8, an input in
// 9; Resize an input in 10, and from 11 on roi, scales or sizes.
absl::Status ReadSizes(const NodeView& node, Params& params) {
  const Shape& input = node.shape(0);
  std::vector<size_t> axes = params.axes;
  if (axes.empty()) {
    axes.resize(input.size());
    std::iota(axes.begin(), axes.end(), size_t{0});
  }
  const size_t rank = axes.size();
  const bool modern = node.node().type == "Resize" && node.node().opset >= 11;
  const size_t scales_at = modern ? 2 : 1;
  std::vector<float> scales = node.Floats("scales");
  const auto holds_something = [&](size_t i) {
    return node.has_input(i) &&
           ProductOf(node.shape(i), 0, node.shape(i).size()) > 0;
  };
  if (holds_something(scales_at)) {
    RKNND_ASSIGN_OR_RETURN(scales, KnownFloats(node, scales_at));
  }
  if (modern && params.coordinates == "tf_crop_and_resize") {
    if (!holds_something(1)) return node.Error("roi is missing");
    RKNND_ASSIGN_OR_RETURN(const std::vector<float> roi, KnownFloats(node, 1));
    if (roi.size() != 2 * rank) {
      return node.Error(absl::StrCat("roi has ", roi.size(), " numbers"));
    }
    // All of the axes that are not named.
    params.roi.assign(2 * input.size(), 0.0);
    std::fill_n(params.roi.begin() + static_cast<ptrdiff_t>(input.size()),
                input.size(), 1.0);
    for (size_t i = 0; i < rank; ++i) {
      params.roi[axes[i]] = roi[i];
      params.roi[input.size() + axes[i]] = roi[rank + i];
    }
  }
  params.output = input;
  params.scales.assign(input.size(), 1.0);
  if (modern && holds_something(3)) {
    RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                           node.ConstantInts(3));
    if (sizes.size() != rank) {
      return node.Error(
          absl::StrCat("has ", sizes.size(), " sizes for ", ShapeText(input)));
    }
    TakeSizes(node, axes, sizes, params);
  } else {
    if (scales.size() != rank) {
      return node.Error(absl::StrCat("has ", scales.size(), " scales for ",
                                     ShapeText(input)));
    }
    for (size_t i = 0; i < rank; ++i) {
      const size_t d = axes[i];
      double length = static_cast<double>(input[d]);
      if (!params.roi.empty()) {
        length *= params.roi[input.size() + d] - params.roi[d];
      }
      const double size = std::floor(length * double{scales[i]});
      if (!(scales[i] > 0.0F) || !(size >= 0.0 && size <= kMaxSize)) {
        return node.Error(absl::StrCat("scales axis ", d, " of ",
                                       ShapeText(input), " by ", scales[i]));
      }
      params.output[d] = static_cast<int64_t>(size);
      params.scales[d] = scales[i];
    }
  }
  for (size_t d = 0; d < input.size(); ++d) {
    const int64_t size = params.output[d];
    if (size < 0 || size > kMaxSize || (size > 0 && input[d] == 0)) {
      return node.Error(absl::StrCat("makes ", ShapeText(params.output), " of ",
                                     ShapeText(input)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Params> Parse(const NodeView& node) {
  const bool upsample = node.node().type == "Upsample";
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 4}));
  Params params;
  params.mode = node.String("mode", "nearest");
  if (params.mode == "bilinear" || params.mode == "trilinear") {
    params.mode = "linear";  // before version 7
  }
  const bool modern = !upsample && node.node().opset >= 11;
  params.coordinates =
      modern ? node.String("coordinate_transformation_mode", "half_pixel")
             : "asymmetric";
  params.nearest =
      modern ? node.String("nearest_mode", "round_prefer_floor") : "floor";
  params.cubic_a = node.Float("cubic_coeff_a", -0.75F);
  params.extrapolation = node.Float("extrapolation_value", 0.0F);
  params.exclude_outside = node.Int("exclude_outside", 0) != 0;
  const auto one_of = [](const std::string& what,
                         std::initializer_list<const char*> known) {
    return std::any_of(known.begin(), known.end(),
                       [&](const char* name) { return what == name; });
  };
  if (!one_of(params.mode, {"nearest", "linear", "cubic"}) ||
      !one_of(params.coordinates,
              {"half_pixel", "pytorch_half_pixel", "align_corners",
               "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}) ||
      !one_of(params.nearest,
              {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})) {
    return node.Error(absl::StrCat("mode '", params.mode, "', coordinates '",
                                   params.coordinates, "', nearest '",
                                   params.nearest, "'"));
  }
  const std::string policy = node.String("keep_aspect_ratio_policy", "stretch");
  if (!one_of(policy, {"stretch", "not_larger", "not_smaller"})) {
    return node.Error(absl::StrCat("keep_aspect_ratio_policy '", policy, "'"));
  }
  params.antialias = node.Int("antialias", 0) != 0 && params.mode != "nearest";
  RKNND_ASSIGN_OR_RETURN(
      params.axes, CheckAxes(node, node.Ints("axes"), node.shape(0).size()));
  if (params.mode != "nearest" || params.coordinates == "tf_crop_and_resize") {
    RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  }
  RKNND_RETURN_IF_ERROR(ReadSizes(node, params));
  return params;
}

Inference InferResize(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  return InferOne(node, node.type(0), params.output);
}

// Where output position `i` lies on the input's axis.
double Coordinate(const Params& params, size_t axis, int64_t i, int64_t in,
                  int64_t out) {
  const double scale = params.scales[axis];
  const auto x = static_cast<double>(i);
  if (params.coordinates == "asymmetric") return x / scale;
  if (params.coordinates == "align_corners") {
    return out == 1
               ? 0.0
               : x * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  }
  if (params.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (params.coordinates == "tf_crop_and_resize") {
    const double start = params.roi[axis];
    const double end = params.roi[axis + params.roi.size() / 2];
    const auto last = static_cast<double>(in - 1);
    if (out == 1) return 0.5 * (start + end) * last;
    return start * last +
           x * (end - start) * last / static_cast<double>(out - 1);
  }
  if (params.coordinates == "pytorch_half_pixel" && out == 1) return 0.0;
  return (x + 0.5) / scale - 0.5;
}

int64_t NearestTo(const std::string& mode, double x, int64_t size) {
  double at = 0.0;
  if (mode == "round_prefer_floor") {
    at = std::ceil(x - 0.5);
  } else if (mode == "round_prefer_ceil") {
    at = std::floor(x + 0.5);
  } else {
    at = mode == "floor" ? std::floor(x) : std::ceil(x);
  }
  return static_cast<int64_t>(
      std::clamp(at, 0.0, static_cast<double>(size - 1)));
}

struct Tap {
  int64_t at = 0;  // position on the input's axis
  float weight = 0.0F;
};

// One axis: `taps` sources for each of `out` positions.
struct Pass {
  int64_t outer = 1, in = 1, out = 1, inner = 1;
  size_t taps = 1;
  std::vector<Tap> table;
  std::vector<bool> outside;  // empty, or which positions are extrapolated
};

// Weights of a cubic through four points, `t` behind the second.
std::array<double, 4> Cubic(double t, double a) {
  const auto near = [a](double x) {
    return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  };
  const auto far = [a](double x) {
    return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
  };
  return {far(1.0 + t), near(t), near(1.0 - t), far(2.0 - t)};
}

// A cubic or a triangle that is as wide as `taps` points, at `x`.
double FilterAt(const Params& params, double x) {
  x = std::fabs(x);
  if (params.mode == "linear") return std::max(1.0 - x, 0.0);
  if (x >= 2.0) return 0.0;
  const std::array<double, 4> weights =
      Cubic(x - std::floor(x), params.cubic_a);
  return x < 1.0 ? weights[1] : weights[0];
}

// What makes a picture smaller without gaps: all points within the filter,
// which is as much wider as the picture is smaller.
Pass MakeWidePass(const Params& params, size_t axis, int64_t in, int64_t out) {
  Pass pass;
  pass.in = in;
  pass.out = out;
  const double scale = params.scales[axis];
  const double radius = (params.mode == "cubic" ? 2.0 : 1.0) / scale;
  pass.taps = static_cast<size_t>(2.0 * std::ceil(radius) + 1.0);
  for (int64_t i = 0; i < out; ++i) {
    const double x = Coordinate(params, axis, i, in, out);
    const auto first = static_cast<int64_t>(std::ceil(x - radius));
    std::vector<double> weights(pass.taps);
    double sum = 0.0;
    for (size_t k = 0; k < pass.taps; ++k) {
      const int64_t at = first + static_cast<int64_t>(k);
      weights[k] = FilterAt(params, (static_cast<double>(at) - x) * scale);
      if (params.exclude_outside && (at < 0 || at >= in)) weights[k] = 0.0;
      sum += weights[k];
    }
    for (size_t k = 0; k < pass.taps; ++k) {
      const int64_t at =
          std::clamp<int64_t>(first + static_cast<int64_t>(k), 0, in - 1);
      pass.table.push_back(
          {at, static_cast<float>(sum != 0.0 ? weights[k] / sum : 0.0)});
    }
  }
  return pass;
}

Pass MakePass(const Params& params, size_t axis, int64_t in, int64_t out) {
  if (params.antialias && params.scales[axis] < 1.0 && params.roi.empty()) {
    return MakeWidePass(params, axis, in, out);
  }
  Pass pass;
  pass.in = in;
  pass.out = out;
  const bool crops = params.coordinates == "tf_crop_and_resize";
  pass.taps = params.mode == "cubic" ? 4 : params.mode == "linear" ? 2 : 1;
  for (int64_t i = 0; i < out; ++i) {
    double x = Coordinate(params, axis, i, in, out);
    const auto last = static_cast<double>(in - 1);
    if (crops) pass.outside.push_back(!(x >= 0.0 && x <= last));
    // Beyond a few elements outside nothing changes any more.
    x = x == x ? std::clamp(x, -4.0, last + 4.0) : 0.0;
    if (pass.taps == 1) {
      pass.table.push_back({NearestTo(params.nearest, x, in), 1.0F});
      continue;
    }
    const double floor = std::floor(x);
    const double t = x - floor;
    std::array<double, 4> weights = {1.0 - t, t, 0.0, 0.0};
    auto first = static_cast<int64_t>(floor);
    if (pass.taps == 4) {
      weights = Cubic(t, params.cubic_a);
      --first;
    }
    double sum = 0.0;
    for (size_t k = 0; k < pass.taps; ++k) {
      const int64_t at = first + static_cast<int64_t>(k);
      if (params.exclude_outside && (at < 0 || at >= in)) weights[k] = 0.0;
      sum += weights[k];
    }
    for (size_t k = 0; k < pass.taps; ++k) {
      const int64_t at =
          std::clamp<int64_t>(first + static_cast<int64_t>(k), 0, in - 1);
      const double weight =
          params.exclude_outside && sum != 0.0 ? weights[k] / sum : weights[k];
      pass.table.push_back({at, static_cast<float>(weight)});
    }
  }
  return pass;
}

// Whole runs of `inner` elements, of any type.
void Copy(const Pass& pass, int64_t outer, size_t size, const std::byte* from,
          std::byte* to) {
  const size_t run = static_cast<size_t>(pass.inner) * size;
  for (int64_t o = 0; o < outer; ++o) {
    const std::byte* rows = from + static_cast<size_t>(o * pass.in) * run;
    if (size == sizeof(float) && pass.inner == 1) {
      const auto* in = As<uint32_t>(rows);
      auto* out = As<uint32_t>(to);
      for (int64_t i = 0; i < pass.out; ++i) {
        out[i] = in[pass.table[static_cast<size_t>(i)].at];
      }
      to += static_cast<size_t>(pass.out) * run;
      continue;
    }
    for (const Tap& tap : pass.table) {
      std::memcpy(to, rows + static_cast<size_t>(tap.at) * run, run);
      to += run;
    }
  }
}

void Weigh(const Pass& pass, int64_t outer, const float* from, float* to) {
  for (int64_t o = 0; o < outer; ++o) {
    const Tap* tap = pass.table.data();
    for (int64_t i = 0; i < pass.out; ++i, tap += pass.taps) {
      for (size_t k = 0; k < pass.taps; ++k) {
        const float* run = from + tap[k].at * pass.inner;
        const float weight = tap[k].weight;
        if (k == 0) {
          for (int64_t n = 0; n < pass.inner; ++n) to[n] = weight * run[n];
        } else {
          for (int64_t n = 0; n < pass.inner; ++n) to[n] += weight * run[n];
        }
      }
      to += pass.inner;
    }
    from += pass.in * pass.inner;
  }
}

void Extrapolate(const Pass& pass, int64_t outer, float value, float* to) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < pass.out; ++i) {
      if (pass.outside[static_cast<size_t>(i)]) {
        std::fill_n(to, pass.inner, value);
      }
      to += pass.inner;
    }
  }
}

class ResizeKernel final : public Kernel {
 public:
  ResizeKernel(const KernelRequest& request, const Params& params)
      : size_(SizeOf(request.outputs[0].type)),
        extrapolation_(params.extrapolation),
        work_(WorkOf(request)) {
    Shape shape = PhysicalShape(request.inputs[0]);
    const Shape& to = params.output;
    // From the last axis on: there, tensors are still small when they grow.
    for (size_t d = to.size(); d > 0; --d) {
      const size_t axis = d - 1;
      const int64_t in = request.inputs[0].shape[axis];
      if (to[axis] == in && params.scales[axis] == 1.0 && params.roi.empty()) {
        continue;
      }
      Pass pass = MakePass(params, axis, in, to[axis]);
      pass.outer = ProductOf(shape, 0, axis);
      pass.inner = ProductOf(shape, axis + 1, shape.size());
      shape[axis] = to[axis];
      room_ = std::max(
          room_,
          static_cast<size_t>(ProductOf(shape, 0, shape.size())) * size_);
      work_.operations +=
          ProductOf(shape, 0, shape.size()) * static_cast<int64_t>(pass.taps);
      passes_.push_back(std::move(pass));
    }
    room_ = (room_ + 63) / 64 * 64;
    bytes_ = request.outputs[0].bytes();
  }

  [[nodiscard]] size_t scratch_size() const override {
    return passes_.size() > 1 ? 2 * room_ : 0;
  }
  [[nodiscard]] bool reads_constant(size_t i) const override { return i == 0; }

  // Between what is resized alike: pictures, channels or blocks of them.
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    return PartsOf(work_, pictures(), cores);
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart(Part{}, inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* scratch) const override {
    if (passes_.empty()) std::memcpy(outputs[0], inputs[0], bytes_);
    const Range share = ShareOf(part, pictures());
    const std::byte* from = nullptr;
    for (size_t p = 0; p < passes_.size(); ++p) {
      const Pass& pass = passes_[p];
      const int64_t each = pass.outer / pictures();
      const auto at = [&](int64_t length) {
        return static_cast<size_t>(share.begin * each * length * pass.inner) *
               size_;
      };
      if (p == 0) from = inputs[0] + at(pass.in);
      std::byte* to = p + 1 == passes_.size() ? outputs[0] + at(pass.out)
                                              : scratch + p % 2 * room_;
      const int64_t outer = share.size() * each;
      if (pass.taps == 1) {
        Copy(pass, outer, size_, from, to);
      } else {
        Weigh(pass, outer, As<float>(from), As<float>(to));
      }
      if (!pass.outside.empty()) {
        Extrapolate(pass, outer, extrapolation_, As<float>(to));
      }
      from = to;
    }
    return absl::OkStatus();
  }

 private:
  // The axes before the first that changes, which is the last pass's.
  [[nodiscard]] int64_t pictures() const {
    return passes_.empty() ? 1 : passes_.back().outer;
  }

  const size_t size_;
  const float extrapolation_;
  Work work_;
  std::vector<Pass> passes_;
  size_t room_ = 0, bytes_ = 0;
};

// Channels stay as they are when pictures are resized.
bool KeepsChannels(const NodeView& node, size_t i) {
  if (i != 0 && i < node.input_count()) return false;
  const auto params = Parse(node);
  return params.ok() && params->scales[0] == 1.0 && params->scales[1] == 1.0 &&
         params->output[1] == node.shape(0)[1] && params->roi.empty();
}
bool MayBlock(const NodeView& node, size_t i, int) {
  return IsBlockable(node, 0) && KeepsChannels(node, i);
}
bool MayLieLast(const NodeView& node, size_t i) {
  return SizeOf(node.type(0)) == 1 && node.shape(0).size() >= 3 &&
         KeepsChannels(node, i);
}

MadeKernel MakeResize(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(request.node));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  if (request.inputs[0].placement != request.outputs[0].placement) {
    return request.node.Error("its output is placed unlike its input");
  }
  return std::make_unique<ResizeKernel>(request, params);
}

}  // namespace

void RegisterResize(OperatorTable& table) {
  for (const char* type : {"Resize", "Upsample"}) {
    table.Add({.type = type,
               .placement = PlacementRule::kElementwise,
               .infer = InferResize,
               .make = MakeResize,
               .may_block = MayBlock,
               .may_channels_last = MayLieLast});
  }
}

}  // namespace rknnd::soft
