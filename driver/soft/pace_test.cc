// A paced device: its jobs end when the SoC would end them. On a clock of the
// test's own, so that computing takes no time and sleeping takes none either.

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "driver/device.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"

namespace rknnd::soft {
namespace {

using driver::TensorFormat;
using driver::TensorLayout;
using driver::TensorType;
using testing::BoundModel;
using testing::OnnxBuilder;

constexpr TensorFormat kPacedImage{.type = TensorType::kFloat32,
                                   .layout = TensorLayout::kNchw};

// A convolution that cores share out, and a pool that they do not.
OnnxBuilder PacedNetwork() {
  OnnxBuilder builder;
  builder.Input("x", {1, 32, 64, 64})
      .Floats("w", {64, 32, 3, 3}, std::vector<float>(64 * 32 * 9, 0.01F))
      .Node("Conv", {"x", "w"}, {"c"}, "conv")
      .Ints("pads", {1, 1, 1, 1})
      .Node("MaxPool", {"c"}, {"y"}, "pool")
      .Ints("kernel_shape", {2, 2})
      .Ints("strides", {2, 2})
      .Output("y", {1, 64, 32, 32});
  return builder;
}

class PaceTest : public ::testing::Test {
 protected:
  void Open(bool pace, const std::string& soc = "rk3588") {
    OpenOn(&clock_, pace, soc);
  }
  void OpenOn(const base::Clock* clock, bool pace, const std::string& soc) {
    auto device = OpenSoftDevice(
        {.kind = "soft", .soc = soc, .pace = pace, .clock = clock});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    device_->EnterWorker();
    auto model = device_->Load({PacedNetwork().Bytes(), "", "m.onnx"});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    auto bound =
        BoundModel::Make(*device_, *model_, {kPacedImage}, {kPacedImage});
    ASSERT_TRUE(bound.ok()) << bound.status();
    bound_ = *std::move(bound);
  }
  [[nodiscard]] base::Nanoseconds Modelled() const {
    return model_->info().programs[0].modelled;
  }
  static base::Nanoseconds Took(const driver::JobResult& result) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.ended - result.started;
  }

  base::FakeClock clock_;
  base::MonotonicClock running_clock_;
  std::unique_ptr<driver::Device> device_;
  std::unique_ptr<driver::Model> model_;
  std::unique_ptr<BoundModel> bound_;
};

TEST_F(PaceTest, LayersOfALoadedModelHaveTheirFigures) {
  Open(false);
  const driver::LayerInfo* conv = nullptr;
  for (const driver::LayerInfo& layer : model_->info().programs[0].layers) {
    if (layer.name == "conv") conv = &layer;
  }
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->macs, uint64_t{64} * 64 * 64 * 32 * 9);
  // 16-bit numbers: twice the cycles of 8-bit ones.
  EXPECT_EQ(conv->npu_cycles, uint64_t{2} * 64 * 64 * 2 * 9);
  EXPECT_GT(conv->ddr_cycles, 0U);
  EXPECT_GT(conv->modelled, 0);
  EXPECT_GT(Modelled(), conv->modelled);
}

TEST_F(PaceTest, AJobTakesWhatItsModelTakesOnTheSoc) {
  Open(true);
  EXPECT_EQ(Took(bound_->Run()), Modelled());
}

TEST_F(PaceTest, WithoutPaceAJobTakesWhatItTakesHere) {
  Open(false);
  EXPECT_EQ(Took(bound_->Run()), 0);
}

TEST_F(PaceTest, JobsInARowTakeTheirTimeEach) {
  Open(true);
  const base::Nanoseconds start = clock_.Now();
  for (int job = 0; job < 5; ++job) Took(bound_->Run());
  EXPECT_EQ(clock_.Now(), start + 5 * Modelled());
}

TEST_F(PaceTest, AGangIsFasterButNotThreeTimes) {
  Open(true);
  const base::Nanoseconds gang = Took(bound_->RunGang(7));
  EXPECT_LT(gang, Modelled());
  EXPECT_GT(gang, Modelled() / 3);
}

TEST_F(PaceTest, ASlowerSocTakesLonger) {
  Open(true, "rk3588");
  const base::Nanoseconds fast = Took(bound_->Run());
  Open(true, "rv1106");
  EXPECT_GT(Took(bound_->Run()), fast);
}

TEST_F(PaceTest, HalfTheClockTakesTwiceAsLong) {
  Open(true);
  EXPECT_TRUE(device_->SetClock(0.5));
  EXPECT_NEAR(static_cast<double>(Took(bound_->Run())),
              2.0 * static_cast<double>(Modelled()), 2.0);
  EXPECT_TRUE(device_->SetClock(1));
  EXPECT_EQ(Took(bound_->Run()), Modelled());
}

TEST_F(PaceTest, WithoutPaceThereIsNoClockToSet) {
  Open(false);
  EXPECT_FALSE(device_->SetClock(0.5));
}

TEST_F(PaceTest, LayerTimesAreTheSocsAndAddUp) {
  Open(true);
  std::vector<int64_t> times(model_->info().programs[0].layers.size());
  const base::Nanoseconds took = Took(bound_->Run(0, &times));
  const int64_t sum = std::accumulate(times.begin(), times.end(), int64_t{0});
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(took),
              static_cast<double>(times.size()));
}

TEST_F(PaceTest, OfTheLayersOfAGangThoseThatSplitTakeLess) {
  Open(true);
  std::vector<int64_t> alone, gang;
  Took(bound_->Run(0, &alone));
  const base::Nanoseconds took = Took(bound_->RunGang(7, false, &gang));
  const auto& layers = model_->info().programs[0].layers;
  ASSERT_EQ(alone.size(), layers.size());
  ASSERT_EQ(gang.size(), layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].name == "conv") {
      EXPECT_LT(gang[i], alone[i]);
    } else if (layers[i].name == "pool") {
      EXPECT_NEAR(static_cast<double>(gang[i]), static_cast<double>(alone[i]),
                  2.0);
    }
  }
  EXPECT_NEAR(static_cast<double>(
                  std::accumulate(gang.begin(), gang.end(), int64_t{0})),
              static_cast<double>(took), static_cast<double>(gang.size()));
}

// On a clock that runs, so that conversions take time here.
TEST_F(PaceTest, NoJobTakesLessThanByTheModelAndItsLayersNoMore) {
  OpenOn(&running_clock_, true, "rk3588");
  base::Nanoseconds before = 0;
  for (int job = 0; job < 20; ++job) {
    std::vector<int64_t> times(model_->info().programs[0].layers.size());
    const driver::JobResult result = bound_->Run(0, &times);
    EXPECT_GE(Took(result), Modelled());
    EXPECT_GE(result.started, before);
    before = result.ended;
    // Of a job that took longer here, they are what was measured.
    EXPECT_LE(std::accumulate(times.begin(), times.end(), int64_t{0}),
              Took(result));
  }
}

}  // namespace
}  // namespace rknnd::soft
