// RoiAlign: each region of a picture as a small picture, by means (or the
// largest) of points between its pixels.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/index/indices.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

// Points of a bin along one axis: what a region of any size may ask for.
constexpr int64_t kMostPoints = 1 << 10;

struct Params {
  int64_t images = 0, channels = 0, rows = 0, columns = 0, regions = 0;
  int64_t height = 1, width = 1;
  int64_t points = 0;  // of a bin along an axis; 0: as many as it has pixels
  float scale = 1.0F, offset = 0.0F;
  bool largest = false, wide = true;
};

absl::StatusOr<Params> Parse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {3, 3}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 1));
  RKNND_RETURN_IF_ERROR(
      CheckType(node, 2, {DataType::kInt32, DataType::kInt64}));
  const Shape& data = node.shape(0);
  const Shape& regions = node.shape(1);
  if (data.size() != 4 || regions.size() != 2 || regions[1] != 4 ||
      node.shape(2) != Shape{regions[0]} || data[2] * data[3] == 0) {
    return node.Error(absl::StrCat("data ", ShapeText(data), ", regions ",
                                   ShapeText(regions), ", of pictures ",
                                   ShapeText(node.shape(2))));
  }
  Params p;
  p.images = data[0];
  p.channels = data[1];
  p.rows = data[2];
  p.columns = data[3];
  p.regions = regions[0];
  p.height = node.Int("output_height", 1);
  p.width = node.Int("output_width", 1);
  p.points = node.Int("sampling_ratio", 0);
  p.scale = node.Float("spatial_scale", 1.0F);
  p.wide = node.type(2) == DataType::kInt64;
  const std::string mode = node.String("mode", "avg");
  // From opset 16 on pixels are half a pixel further, unless the node says so.
  const std::string usual =
      node.node().opset >= 16 ? "half_pixel" : "output_half_pixel";
  const std::string places =
      node.String("coordinate_transformation_mode", usual);
  if (p.height < 1 || p.width < 1 || p.points < 0 || p.points > kMostPoints ||
      p.height > kMaxTensorBytes || p.width > kMaxTensorBytes ||
      (mode != "avg" && mode != "max") ||
      (places != "half_pixel" && places != "output_half_pixel")) {
    return node.Error(absl::StrCat(p.height, "x", p.width, " bins of ",
                                   p.points, " points, mode '", mode,
                                   "', coordinates '", places, "'"));
  }
  p.largest = mode == "max";
  p.offset = places == "half_pixel" ? 0.5F : 0.0F;
  const Constant* known = node.constant(2);
  for (int64_t i = 0; known != nullptr && i < known->elements(); ++i) {
    if (IndexAt(known->data.data(), p.wide, i, p.images) < 0) {
      return node.Error(absl::StrCat("region ", i, " is of a picture that is ",
                                     "not there, there are ", p.images));
    }
  }
  return p;
}

Inference InferRoiAlign(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params p, Parse(node));
  return InferOne(node, DataType::kFloat32,
                  {p.regions, p.channels, p.height, p.width});
}

// Four pixels around a point, and how much of each.
struct Point {
  std::array<int64_t, 4> at{};
  std::array<float, 4> weight{};
};

Point PointAt(const Params& p, float y, float x) {
  Point point;
  const auto rows = static_cast<float>(p.rows);
  const auto columns = static_cast<float>(p.columns);
  // NaN is outside, too.
  if (!(y >= -1.0F && y <= rows && x >= -1.0F && x <= columns)) return point;
  y = std::max(y, 0.0F);
  x = std::max(x, 0.0F);
  auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  int64_t bottom = top + 1, right = left + 1;
  if (top >= p.rows - 1) {
    top = bottom = p.rows - 1;
    y = static_cast<float>(top);
  }
  if (left >= p.columns - 1) {
    left = right = p.columns - 1;
    x = static_cast<float>(left);
  }
  const float down = y - static_cast<float>(top);
  const float across = x - static_cast<float>(left);
  point.at = {top * p.columns + left, top * p.columns + right,
              bottom * p.columns + left, bottom * p.columns + right};
  point.weight = {(1.0F - down) * (1.0F - across), (1.0F - down) * across,
                  down * (1.0F - across), down * across};
  return point;
}

class RoiAlignKernel final : public Kernel {
 public:
  RoiAlignKernel(const KernelRequest& request, const Params& params)
      : p_(params),
        work_(WorkOf(request, kFunction)),
        no_picture_(request.node.Error(
            absl::StrCat("a region is of a picture that is not there, there "
                         "are ",
                         params.images))) {}

  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    return PartsOf(work_, p_.regions * p_.channels, cores);
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart(Part{}, inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* /*scratch*/) const override {
    const Range share = ShareOf(part, p_.regions * p_.channels);
    for (int64_t i = share.begin; i < share.end; ++i) {
      const int64_t region = i / p_.channels;
      const int64_t image = IndexAt(inputs[2], p_.wide, region, p_.images);
      if (image < 0) return no_picture_;
      RunOne(As<float>(inputs[0]) +
                 (image * p_.channels + i % p_.channels) * p_.rows * p_.columns,
             As<float>(inputs[1]) + region * 4,
             As<float>(outputs[0]) + i * p_.height * p_.width);
    }
    return absl::OkStatus();
  }

 private:
  void RunOne(const float* data, const float* region, float* out) const {
    const auto place = [&](int64_t i) {
      return Once(region[i]) * p_.scale - p_.offset;
    };
    const float left = place(0), top = place(1);
    float width = place(2) - left, height = place(3) - top;
    if (p_.offset == 0.0F) {
      width = std::max(width, 1.0F);
      height = std::max(height, 1.0F);
    }
    const float bin_height = height / static_cast<float>(p_.height);
    const float bin_width = width / static_cast<float>(p_.width);
    const auto points = [&](float bin) -> int64_t {
      if (p_.points > 0) return p_.points;
      const float wanted = std::ceil(bin);
      return wanted >= 0.0F ? static_cast<int64_t>(std::min(
                                  wanted, static_cast<float>(kMostPoints)))
                            : 0;
    };
    const int64_t down = points(bin_height), across = points(bin_width);
    const auto count = static_cast<float>(std::max<int64_t>(down * across, 1));
    for (int64_t y = 0; y < p_.height; ++y) {
      for (int64_t x = 0; x < p_.width; ++x) {
        StopPoint();
        float sum = 0.0F, largest = 0.0F;
        for (int64_t k = 0; k < down * across; ++k) {
          const auto row = static_cast<float>(k / across);
          const auto column = static_cast<float>(k % across);
          const Point point =
              PointAt(p_,
                      top + (static_cast<float>(y) +
                             (row + 0.5F) / static_cast<float>(down)) *
                                bin_height,
                      left + (static_cast<float>(x) +
                              (column + 0.5F) / static_cast<float>(across)) *
                                 bin_width);
          float value = 0.0F, most = 0.0F;
          for (size_t t = 0; t < 4; ++t) {
            const float part = point.weight[t] * data[point.at[t]];
            value += part;
            most = t == 0 ? part : std::max(most, part);
          }
          sum += value;
          largest = k == 0 ? most : std::max(largest, most);
        }
        *out++ = p_.largest ? largest : sum / count;
      }
    }
  }

  const Params p_;
  const Work work_;
  const absl::Status no_picture_;
};

MadeKernel MakeRoiAlign(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Params p, Parse(request.node));
  return std::make_unique<RoiAlignKernel>(request, p);
}

}  // namespace

void RegisterRoiAlign(OperatorTable& table) {
  table.Add({.type = "RoiAlign", .infer = InferRoiAlign, .make = MakeRoiAlign});
}

}  // namespace rknnd::soft
