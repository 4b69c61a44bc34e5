// Filming a drawn place with people and vehicles, for the detector that was
// trained on such.

#include "examples/demo/subject.h"
#include "examples/detector/decode.h"
#include "examples/detector/scene.h"

namespace rknnd::demo {
namespace {

client::Color ColorOf(detector::Kind kind) {
  return kind == detector::Kind::kPerson ? client::Color{255, 64, 64}
                                         : client::Color{64, 160, 255};
}

class Street final : public Subject {
 public:
  Street(uint64_t seed, int width, int height) : scene_(seed, width, height) {}

  void Draw(double seconds, const detector::Nv12& frame) override {
    scene_.Draw(seconds, frame);
  }

  [[nodiscard]] Normalisation normalisation() const override {
    return {128, 1 / 128.0F, 128};
  }

  [[nodiscard]] std::vector<Finding> Find(
      const std::vector<std::vector<float>>& outputs, int width,
      int height) const override {
    const auto w = static_cast<float>(width), h = static_cast<float>(height);
    std::vector<Finding> findings;
    for (const detector::Detection& found : detector::Decode(outputs)) {
      findings.push_back({{found.box.left * w, found.box.top * h,
                           found.box.right * w, found.box.bottom * h},
                          ColorOf(found.kind),
                          found.score});
    }
    return findings;
  }

 private:
  detector::Scene scene_;
};

}  // namespace

std::unique_ptr<Subject> FilmStreet(uint64_t seed, int width, int height) {
  return std::make_unique<Street>(seed, width, height);
}

}  // namespace rknnd::demo
