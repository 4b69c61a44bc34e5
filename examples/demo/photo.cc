// Filming a photo, for detectors with the head of an SSD: scores (background,
// face) and boxes (left, top, right, bottom as shares) per candidate.

#include <algorithm>
#include <cmath>
#include <utility>

#include "examples/demo/subject.h"

namespace rknnd::demo {
namespace {

constexpr int kWidth = 1920, kHeight = 1080;
// How far the picture wanders, in pixels; even, as chroma comes in pairs.
constexpr int kSway = 24;
constexpr float kSureEnough = 0.7F;
// Two boxes that share more than this of their union show one face.
constexpr float kSameFace = 0.3F;

float Area(const client::Box& box) {
  return std::max(0.0F, box.right - box.left) *
         std::max(0.0F, box.bottom - box.top);
}

float Overlap(const client::Box& a, const client::Box& b) {
  const float shared =
      Area({std::max(a.left, b.left), std::max(a.top, b.top),
            std::min(a.right, b.right), std::min(a.bottom, b.bottom)});
  return shared / (Area(a) + Area(b) - shared + 1e-9F);
}

class Photo final : public Subject {
 public:
  Photo(const client::Image& photo, int camera) : camera_(camera) {
    client::Image wide(kWidth + 2 * kSway, kHeight + 2 * kSway);
    client::ResizeLetterboxed(photo.pixels(), wide.pixels(), {90, 90, 90});
    memory_.resize(detector::Nv12Bytes(wide.width(), wide.height()));
    scene_ = detector::Nv12In(memory_.data(), wide.width(), wide.height());
    const client::ConstPixels pixels = std::as_const(wide).pixels();
    for (int y = 0; y < wide.height(); ++y) {
      const uint8_t* rgb = pixels.data + static_cast<size_t>(y) * pixels.stride;
      uint8_t* luma = scene_.luma + static_cast<size_t>(y) * scene_.stride;
      uint8_t* chroma =
          scene_.chroma + static_cast<size_t>(y / 2) * scene_.stride;
      for (int x = 0; x < wide.width(); ++x, rgb += 3) {
        const detector::Yuv yuv = detector::ToYuv(rgb[0], rgb[1], rgb[2]);
        luma[x] = yuv.y;
        if (x % 2 != 0 || y % 2 != 0) continue;
        chroma[x] = yuv.u;
        chroma[x + 1] = yuv.v;
      }
    }
  }

  void Draw(double seconds, const detector::Nv12& frame) override {
    const double phase = seconds * 3.3 + camera_ * 1.7;
    const auto shift = [](double share) {
      return static_cast<size_t>(std::lround(kSway / 2 * (1 + share))) * 2;
    };
    const size_t dx = shift(std::sin(phase)), dy = shift(std::cos(phase * 0.7));
    const auto row_bytes = static_cast<size_t>(frame.width);
    for (size_t y = 0; y < static_cast<size_t>(frame.height); ++y) {
      std::copy_n(scene_.luma + (y + dy) * scene_.stride + dx, row_bytes,
                  frame.luma + y * frame.stride);
    }
    for (size_t y = 0; y < static_cast<size_t>(frame.height) / 2; ++y) {
      std::copy_n(scene_.chroma + (y + dy / 2) * scene_.stride + dx, row_bytes,
                  frame.chroma + y * frame.stride);
    }
  }

  [[nodiscard]] Normalisation normalisation() const override {
    return {127, 1 / 128.0F, 127};
  }

  [[nodiscard]] std::vector<Finding> Find(
      const std::vector<std::vector<float>>& outputs, int width,
      int height) const override {
    std::vector<Finding> sure;
    if (outputs.size() < 2) return sure;
    const std::vector<float>&scores = outputs[0], &boxes = outputs[1];
    const size_t count = std::min(scores.size() / 2, boxes.size() / 4);
    const auto w = static_cast<float>(width), h = static_cast<float>(height);
    for (size_t i = 0; i < count; ++i) {
      const float score = scores[2 * i + 1];
      // Not a number is not sure enough, and has no place in an order.
      if (!(score >= kSureEnough)) continue;
      const float* box = boxes.data() + 4 * i;
      sure.push_back({{box[0] * w, box[1] * h, box[2] * w, box[3] * h},
                      {80, 255, 80},
                      score});
    }
    std::sort(sure.begin(), sure.end(),
              [](const auto& a, const auto& b) { return a.score > b.score; });
    std::vector<Finding> kept;
    for (const Finding& candidate : sure) {
      const bool seen =
          std::any_of(kept.begin(), kept.end(), [&](const auto& k) {
            return Overlap(k.box, candidate.box) > kSameFace;
          });
      if (!seen) kept.push_back(candidate);
    }
    return kept;
  }

 private:
  const int camera_;
  std::vector<uint8_t> memory_;
  detector::Nv12 scene_;
};

}  // namespace

base::Expected<std::unique_ptr<Subject>> FilmPhoto(const std::string& photo,
                                                   int camera) {
  auto image = client::ReadImage(photo);
  if (!image) return std::move(image).error();
  return std::unique_ptr<Subject>(std::make_unique<Photo>(*image, camera));
}

}  // namespace rknnd::demo
