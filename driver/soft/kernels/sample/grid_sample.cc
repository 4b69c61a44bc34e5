// GridSample of pictures: each pixel of the output is taken from where the grid
// says. Places and weights of some pixels are found once for all channels.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

enum class Mode : uint8_t { kNearest, kLinear, kCubic };
enum class Outside : uint8_t { kZeros, kBorder, kReflection };

struct Params {
  Mode mode = Mode::kLinear;
  Outside outside = Outside::kZeros;
  bool align_corners = false;
  int64_t images = 0, channels = 0, rows = 0, columns = 0;  // of the input
  int64_t height = 0, width = 0;                            // of the output
};

absl::StatusOr<Params> Parse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {2, 2}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 1));
  const Shape& data = node.shape(0);
  const Shape& grid = node.shape(1);
  if (data.size() != 4 || grid.size() != 4 || grid[0] != data[0] ||
      grid[3] != 2) {
    return node.Error(absl::StrCat("data ", ShapeText(data), ", grid ",
                                   ShapeText(grid),
                                   "; only pictures are supported"));
  }
  Params params;
  const std::string mode = node.String("mode", "bilinear");
  const std::string outside = node.String("padding_mode", "zeros");
  // Opset 20 has other words for two of them.
  if (mode == "nearest") {
    params.mode = Mode::kNearest;
  } else if (mode == "bicubic" || mode == "cubic") {
    params.mode = Mode::kCubic;
  } else if (mode != "bilinear" && mode != "linear") {
    return node.Error("mode '" + mode + "' is not supported");
  }
  if (outside == "border") {
    params.outside = Outside::kBorder;
  } else if (outside == "reflection") {
    params.outside = Outside::kReflection;
  } else if (outside != "zeros") {
    return node.Error("padding_mode '" + outside + "' is not supported");
  }
  params.align_corners = node.Int("align_corners", 0) != 0;
  params.images = data[0];
  params.channels = data[1];
  params.rows = data[2];
  params.columns = data[3];
  params.height = grid[1];
  params.width = grid[2];
  if (data[2] * data[3] == 0 && data[0] * grid[1] * grid[2] > 0) {
    return node.Error(absl::StrCat("samples ", ShapeText(data)));
  }
  return params;
}

Inference InferGridSample(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params p, Parse(node));
  return InferOne(node, DataType::kFloat32,
                  {p.images, p.channels, p.height, p.width});
}

// A coordinate between the first and the last; far ones and NaN too, which no
// integer could hold.
float Bounded(float x, int64_t size) {
  const auto most = static_cast<float>(size) + 8.0F;
  return x >= -8.0F ? std::min(x, most) : -8.0F;
}

// Between the borders, back and forth as between mirrors.
float Reflected(float x, float low, float high) {
  const float range = high - low;
  if (!(range > 0.0F) || !std::isfinite(x)) return low;
  const float from_low = std::fabs(x - low);
  const float turns = std::floor(from_low / range);
  const float rest = from_low - turns * range;
  return std::fmod(turns, 2.0F) == 0.0F ? low + rest : high - rest;
}

class Sampler {
 public:
  explicit Sampler(const Params& params) : p_(params) {}

  static constexpr int64_t kPixels = 64;  // at once
  static constexpr size_t kMostTaps = 16;
  // From which elements of a channel each pixel comes, how much of each.
  struct Taps {
    std::array<std::array<int32_t, kPixels>, kMostTaps> at;
    std::array<std::array<float, kPixels>, kMostTaps> weight;
  };

  [[nodiscard]] size_t taps() const {
    return p_.mode == Mode::kCubic ? 16 : p_.mode == Mode::kLinear ? 4 : 1;
  }

  void Find(const float* grid, int64_t count, Taps& taps) const {
    for (int64_t i = 0; i < count; ++i) {
      FindOne(Place(grid[2 * i], p_.columns), Place(grid[2 * i + 1], p_.rows),
              static_cast<size_t>(i), taps);
    }
  }

 private:
  // From -1 to 1 to pixels.
  [[nodiscard]] float Place(float x, int64_t size) const {
    const auto n = static_cast<float>(size);
    float at = p_.align_corners ? (x + 1.0F) / 2.0F * (n - 1.0F)
                                : ((x + 1.0F) * n - 1.0F) / 2.0F;
    // Of a cubic only its points, further below, are moved.
    if (p_.mode != Mode::kCubic) {
      if (p_.outside == Outside::kBorder) {
        at = at >= 0.0F ? std::min(at, n - 1.0F) : 0.0F;
      } else if (p_.outside == Outside::kReflection) {
        at = Mirror(at, size);
      }
    }
    return Bounded(at, size);
  }
  [[nodiscard]] float Mirror(float at, int64_t size) const {
    const auto n = static_cast<float>(size);
    const float mirrored = p_.align_corners ? Reflected(at, 0.0F, n - 1.0F)
                                            : Reflected(at, -0.5F, n - 0.5F);
    return std::clamp(mirrored, 0.0F, n - 1.0F);
  }
  // A point on an axis: its element, or -1 where there is a zero.
  [[nodiscard]] int64_t Element(int64_t at, int64_t size) const {
    if (at >= 0 && at < size) return at;
    switch (p_.outside) {
      case Outside::kZeros:
        return -1;
      case Outside::kBorder:
        return std::clamp<int64_t>(at, 0, size - 1);
      case Outside::kReflection:
        break;
    }
    // Floats above 2^24 are sparse: the nearest may lie behind the last
    // element.
    return std::min(static_cast<int64_t>(
                        std::nearbyint(Mirror(static_cast<float>(at), size))),
                    size - 1);
  }

  // Points of an axis and their weights.
  struct Axis {
    std::array<int64_t, 4> at{};
    std::array<float, 4> weight{};
    size_t count = 1;
  };
  [[nodiscard]] Axis AxisAt(float x, int64_t size) const {
    Axis axis;
    if (p_.mode == Mode::kNearest) {
      axis.at[0] = Element(static_cast<int64_t>(std::nearbyint(x)), size);
      axis.weight[0] = 1.0F;
      return axis;
    }
    const float floor = std::floor(x);
    const float t = x - floor;
    const auto first = static_cast<int64_t>(floor);
    if (p_.mode == Mode::kLinear) {
      axis.count = 2;
      axis.at = {Element(first, size), Element(first + 1, size)};
      axis.weight = {1.0F - t, t};
      return axis;
    }
    axis.count = 4;
    for (size_t k = 0; k < 4; ++k) {
      axis.at[k] = Element(first - 1 + static_cast<int64_t>(k), size);
    }
    constexpr float a = -0.75F;
    const auto near = [](float d) {
      return ((a + 2.0F) * d - (a + 3.0F)) * d * d + 1.0F;
    };
    const auto far = [](float d) {
      return ((a * d - 5.0F * a) * d + 8.0F * a) * d - 4.0F * a;
    };
    axis.weight = {far(1.0F + t), near(t), near(1.0F - t), far(2.0F - t)};
    return axis;
  }

  void FindOne(float x, float y, size_t i, Taps& taps) const {
    const Axis across = AxisAt(x, p_.columns), down = AxisAt(y, p_.rows);
    size_t tap = 0;
    for (size_t r = 0; r < down.count; ++r) {
      for (size_t c = 0; c < across.count; ++c, ++tap) {
        const bool inside = down.at[r] >= 0 && across.at[c] >= 0;
        taps.at[tap][i] = static_cast<int32_t>(
            inside ? down.at[r] * p_.columns + across.at[c] : 0);
        taps.weight[tap][i] = inside ? down.weight[r] * across.weight[c] : 0.0F;
      }
    }
  }

  const Params p_;
};

MadeKernel MakeGridSample(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Params p, Parse(request.node));
  const Sampler sampler(p);
  const int64_t pixels = p.height * p.width;
  const int64_t runs = (pixels + Sampler::kPixels - 1) / Sampler::kPixels;
  const int64_t plane = p.rows * p.columns;
  const Work work =
      WorkOf(request, kFunction / 4 * static_cast<int64_t>(sampler.taps()));
  return MakeSharedKernel(
      work, p.images * runs, [=](Inputs inputs, Outputs outputs, Part part) {
        Sampler::Taps taps;
        const Range share = ShareOf(part, p.images * runs);
        for (int64_t piece = share.begin; piece < share.end; ++piece) {
          StopPoint();
          const int64_t image = piece / runs;
          const int64_t first = piece % runs * Sampler::kPixels;
          const int64_t count = std::min(Sampler::kPixels, pixels - first);
          sampler.Find(As<float>(inputs[1]) + (image * pixels + first) * 2,
                       count, taps);
          for (int64_t c = 0; c < p.channels; ++c) {
            const float* const from =
                As<float>(inputs[0]) + (image * p.channels + c) * plane;
            float* const to = As<float>(outputs[0]) +
                              (image * p.channels + c) * pixels + first;
            for (size_t t = 0; t < sampler.taps(); ++t) {
              const auto* const at = taps.at[t].data();
              const auto* const weight = taps.weight[t].data();
              for (int64_t i = 0; i < count; ++i) {
                const float x = weight[i] * from[at[i]];
                to[i] = t == 0 ? x : to[i] + x;
              }
            }
          }
        }
      });
}

}  // namespace

void RegisterGridSample(OperatorTable& table) {
  table.Add(
      {.type = "GridSample", .infer = InferGridSample, .make = MakeGridSample});
}

}  // namespace rknnd::soft
