// The committed detector on the software NPU, through the C API as the demo
// uses it: how well it finds what fresh frames show. All of it in this process
// (target local:).

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "examples/detector/decode.h"
#include "examples/detector/frame.h"
#include "examples/detector/scene.h"

namespace rknnd::detector {
namespace {

// train.py printed kPrinted for the int8 network on its own test frames. Fresh
// frames differ by luck: a detector that is computed wrongly loses far more.
constexpr double kPrinted = 0.91;
constexpr double kBound = 0.8 * kPrinted;
// Scenes that neither train.py's seeds nor the demo's cameras have.
constexpr uint64_t kFirstSeed = 0xF4E54000;
constexpr int kScenes = 120;
constexpr int kFrameWidth = 1920, kFrameHeight = 1080;

const std::string& ModelPath() {
  static const std::string& path = *new std::string(
      std::string(RKNND_SOURCE_ROOT) + "/examples/detector/detector.onnx");
  return path;
}

struct Claim {
  float score;
  bool right;
};

// Area under the envelope of precision over recall.
double AveragePrecision(std::vector<Claim> claims, size_t there) {
  std::sort(claims.begin(), claims.end(),
            [](const Claim& a, const Claim& b) { return a.score > b.score; });
  std::vector<double> precision(claims.size());
  double right = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    right += claims[i].right ? 1 : 0;
    precision[i] = right / static_cast<double>(i + 1);
  }
  double best = 0, sum = 0;
  for (size_t i = claims.size(); i-- > 0;) {
    best = std::max(best, precision[i]);
    if (claims[i].right) sum += best;
  }
  return there == 0 ? 0 : sum / static_cast<double>(there);
}

// What claims about frames were worth.
class Score {
 public:
  void Add(const std::vector<Detection>& found,
           const std::vector<Figure>& figures) {
    std::vector<bool> taken(figures.size());
    for (const Figure& figure : figures) ++there_.at(Index(figure.kind));
    for (const Detection& claim : found) {  // the surest first
      float best = 0.5F;
      size_t which = figures.size();
      for (size_t i = 0; i < figures.size(); ++i) {
        if (taken[i] || figures[i].kind != claim.kind) continue;
        const float overlap = Overlap(claim.box, figures[i].box);
        if (overlap >= best) {
          best = overlap;
          which = i;
        }
      }
      const bool right = which < figures.size();
      if (right) taken[which] = true;
      claims_.at(Index(claim.kind)).push_back({claim.score, right});
    }
  }

  [[nodiscard]] double AveragePrecisionOf(Kind kind) const {
    return AveragePrecision(claims_.at(Index(kind)), there_.at(Index(kind)));
  }

 private:
  static size_t Index(Kind kind) { return static_cast<size_t>(kind); }

  std::array<std::vector<Claim>, kKinds> claims_;
  std::array<size_t, kKinds> there_{};
};

class DetectorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before the library is used
    setenv("RKNND_TARGET", "local:", 1);
  }

  void SetUp() override {
    std::string path = ModelPath();
    ASSERT_EQ(rknn_init(&context_, path.data(), 0, 0, nullptr), RKNN_SUCC)
        << rknnd_last_error();
  }
  void TearDown() override {
    if (context_ != 0) rknn_destroy(context_);
  }

  // The four outputs for a picture of the input's size: plain bytes go in.
  std::vector<std::vector<float>> Run(std::vector<uint8_t>& rgb) {
    rknn_input input = {};
    input.buf = rgb.data();
    input.size = static_cast<uint32_t>(rgb.size());
    input.type = RKNN_TENSOR_UINT8;
    input.fmt = RKNN_TENSOR_NHWC;
    std::array<rknn_output, 4> outputs{};
    for (rknn_output& output : outputs) output.want_float = 1;
    std::vector<std::vector<float>> answer;
    if (rknn_inputs_set(context_, 1, &input) != RKNN_SUCC ||
        rknn_run(context_, nullptr) != RKNN_SUCC ||
        rknn_outputs_get(context_, outputs.size(), outputs.data(), nullptr) !=
            RKNN_SUCC) {
      ADD_FAILURE() << rknnd_last_error();
      return answer;
    }
    for (const rknn_output& output : outputs) {
      const auto* values = static_cast<const float*>(output.buf);
      answer.emplace_back(values, values + output.size / sizeof(float));
    }
    rknn_outputs_release(context_, outputs.size(), outputs.data());
    return answer;
  }

  rknn_context context_ = 0;
};

TEST(DetectorFileTest, HasAtMost400Kilobytes) {
  EXPECT_LE(std::filesystem::file_size(ModelPath()), 400'000U);
}

TEST_F(DetectorTest, NamesItsKinds) {
  rknn_custom_string text = {};
  ASSERT_EQ(rknn_query(context_, RKNN_QUERY_CUSTOM_STRING, &text, sizeof text),
            RKNN_SUCC)
      << rknnd_last_error();
  EXPECT_STREQ(text.string, "person,vehicle");
}

TEST_F(DetectorTest, FindsWhatFreshFramesShow) {
  std::vector<uint8_t> memory(Nv12Bytes(kFrameWidth, kFrameHeight));
  const Nv12 frame = Nv12In(memory.data(), kFrameWidth, kFrameHeight);
  std::vector<uint8_t> rgb(size_t{kInputWidth} * kInputHeight * 3);
  Shrinker shrinker;
  Score score;
  for (uint64_t i = 0; i < kScenes && !HasFailure(); ++i) {
    Scene scene(kFirstSeed + i, kFrameWidth, kFrameHeight);
    const std::vector<Figure> figures = scene.Draw(1, frame);
    shrinker.ToRgb(frame, kInputWidth, kInputHeight, rgb.data());

    // Unsure claims count too: the measure is over all of recall.
    score.Add(Decode(Run(rgb), 0.03F), figures);
  }

  const double people = score.AveragePrecisionOf(Kind::kPerson);
  const double vehicles = score.AveragePrecisionOf(Kind::kVehicle);
  RecordProperty("person", std::to_string(people));
  RecordProperty("vehicle", std::to_string(vehicles));
  EXPECT_GE((people + vehicles) / 2, kBound)
      << "person " << people << ", vehicle " << vehicles;
}

}  // namespace
}  // namespace rknnd::detector
