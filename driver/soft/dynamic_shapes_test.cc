// Models that list shapes and models with a batch, on the software NPU: each
// row, each slice answers as a model of that shape alone.

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::Direction;
using driver::TensorFormat;
using driver::TensorLayout;
using driver::TensorType;
using ::testing::AllOf;
using testing::BoundModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OnnxBuilder;

constexpr TensorFormat kDynamicImage{.type = TensorType::kFloat32,
                                     .layout = TensorLayout::kNchw};

std::vector<float> SteppedNumbers(size_t count, size_t step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * step + i / 7) % 19) / 8.0F - 1.0F;
  }
  return values;
}

// Two convolutions with weights that outweigh all else, and what comes of them
// divided by the picture's own size; `side` -1 is left open.
OnnxBuilder Net(int64_t side, int64_t batch = 1) {
  OnnxBuilder builder;
  builder.Input("image", {batch, 3, side, side})
      .Floats("w1", {64, 3, 3, 3}, SteppedNumbers(64 * 27, 5))
      .Node("Conv", {"image", "w1"}, {"a"}, "first")
      .Ints("kernel_shape", {3, 3})
      .Ints("pads", {1, 1, 1, 1})
      .Node("Relu", {"a"}, {"b"})
      .Floats("w2", {64, 64, 3, 3}, SteppedNumbers(64 * 64 * 9, 3))
      .Node("Conv", {"b", "w2"}, {"y"}, "second")
      .Ints("kernel_shape", {3, 3})
      .Ints("pads", {1, 1, 1, 1})
      .Output("y", {batch, 64, side, side});
  return builder;
}

class DynamicShapesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    device_->EnterWorker();
  }

  std::unique_ptr<driver::Model> Load(const OnnxBuilder& builder,
                                      const std::string& options = "") {
    auto model = device_->Load({builder.Bytes(), options, "m.onnx"});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  std::string ErrorOf(const OnnxBuilder& builder, const std::string& options) {
    return std::string(
        device_->Load({builder.Bytes(), options, "m.onnx"}).status().message());
  }

  std::vector<float> Run(const driver::Model& model,
                         const std::vector<float>& input,
                         const TensorFormat& in = kDynamicImage,
                         uint32_t row = 0) {
    auto bound = BoundModel::Make(*device_, model, {in}, {kDynamicImage}, row);
    EXPECT_TRUE(bound.ok()) << bound.status();
    std::memcpy((*bound)->input(0).data(), input.data(),
                input.size() * sizeof(float));
    EXPECT_TRUE((*bound)->Run().status.ok());
    std::vector<float> answer(model.info().programs[row].outputs[0].elements);
    std::memcpy(answer.data(), (*bound)->output(0).data(),
                answer.size() * sizeof(float));
    return answer;
  }

  std::unique_ptr<driver::Device> device_;
};

constexpr char kThreeRows[] =
    "dynamic_input: [[[1,3,8,8]],[[1,3,24,24]],[[1,3,16,16]]]";

TEST_F(DynamicShapesTest, EachRowAnswersAsTheFixedModel) {
  const auto model = Load(Net(-1), kThreeRows);
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(model->info().programs.size(), 3U);
  EXPECT_EQ(model->info().largest, 1U);

  uint32_t row = 0;
  for (const int64_t side : {8, 24, 16}) {
    const auto fixed = Load(Net(side));
    ASSERT_NE(fixed, nullptr);
    const auto input = SteppedNumbers(static_cast<size_t>(3 * side * side), 7);
    const auto extent = static_cast<uint32_t>(side);
    EXPECT_THAT(model->info().programs[row].inputs[0].dims,
                ElementsAre(1, extent, extent, 3));
    EXPECT_EQ(Run(*model, input, kDynamicImage, row), Run(*fixed, input))
        << side;
    ++row;
  }
}

TEST_F(DynamicShapesTest, RowsReplaceAFixedShapeToo) {
  const auto model = Load(Net(32), kThreeRows);
  const auto fixed = Load(Net(8));
  ASSERT_TRUE(model != nullptr && fixed != nullptr);
  const auto input = SteppedNumbers(3 * 8 * 8, 7);

  EXPECT_EQ(Run(*model, input), Run(*fixed, input));
}

TEST_F(DynamicShapesTest, WeightsAreSharedByTheRows) {
  const auto fixed = Load(Net(24));
  const auto model = Load(Net(-1), kThreeRows);
  ASSERT_TRUE(model != nullptr && fixed != nullptr);

  // 150 KiB of weights; a few pages more at most.
  EXPECT_LE(model->info().weight_size, fixed->info().weight_size + (16U << 10));
}

TEST_F(DynamicShapesTest, InternalMemoryIsARowsOwn) {
  const auto model = Load(Net(-1), kThreeRows);
  ASSERT_NE(model, nullptr);
  const auto& rows = model->info().programs;

  EXPECT_LT(rows[0].internal_size, rows[2].internal_size);
  EXPECT_LT(rows[2].internal_size, rows[1].internal_size);
}

TEST_F(DynamicShapesTest, AsManyRowsAsTheApiListsAreCompiled) {
  OnnxBuilder builder;
  std::string rows;
  for (int i = 1; i <= 512; ++i) {
    rows += (i == 1 ? "" : ",") + ("[[1," + std::to_string(i) + "]]");
  }
  builder.Input("x", {1, -1}).Node("Relu", {"x"}, {"y"}).Output("y", {1, -1});

  const auto model = Load(builder, "dynamic_input: [" + rows + "]");

  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->info().programs.size(), 512U);
  EXPECT_EQ(model->info().largest, 511U);
}

TEST_F(DynamicShapesTest, OneRowFixesWhatIsOpen) {
  const auto model = Load(Net(-1), "dynamic_input: [[[1,3,16,16]]]");
  const auto fixed = Load(Net(16));
  ASSERT_TRUE(model != nullptr && fixed != nullptr);
  const auto input = SteppedNumbers(3 * 16 * 16, 7);

  EXPECT_EQ(model->info().programs.size(), 1U);
  EXPECT_EQ(Run(*model, input), Run(*fixed, input));
}

TEST_F(DynamicShapesTest, OpenShapesWithoutRowsAreRefused) {
  EXPECT_THAT(ErrorOf(Net(-1), ""),
              AllOf(HasSubstr("input 'image': dimension 2"),
                    HasSubstr("option 'dynamic_input'")));
}

TEST_F(DynamicShapesTest, ARowThatTheNetworkContradictsIsNamed) {
  OnnxBuilder builder = Net(-1);
  builder.Floats("half", {1, 64, 8, 8}, SteppedNumbers(64 * 64, 3))
      .Node("Add", {"y", "half"}, {"z"}, "sum")
      .Output("z", {1, 64, -1, -1});

  EXPECT_THAT(ErrorOf(builder, kThreeRows),
              AllOf(HasSubstr("row 1 of option 'dynamic_input' (input 'image' "
                              "1x3x24x24)"),
                    HasSubstr("'sum'")));
}

TEST_F(DynamicShapesTest, ABatchAnswersAsSoManyRuns) {
  const auto model = Load(Net(16), "rknn_batch_size: 4");
  const auto single = Load(Net(16));
  ASSERT_TRUE(model != nullptr && single != nullptr);
  const auto& program = model->info().programs[0];
  ASSERT_EQ(program.batch, 4U);
  EXPECT_THAT(program.inputs[0].dims, ElementsAre(4, 16, 16, 3));
  EXPECT_THAT(program.outputs[0].dims, ElementsAre(4, 64, 16, 16));
  EXPECT_EQ(program.inputs[0].size,
            4 * single->info().programs[0].inputs[0].size);
  EXPECT_EQ(program.native_outputs[0].size,
            4 * single->info().programs[0].native_outputs[0].size);
  EXPECT_EQ(program.internal_size, single->info().programs[0].internal_size);

  constexpr size_t kOne = 3 * 16 * 16;
  const std::vector<float> input = SteppedNumbers(4 * kOne, 11);
  std::vector<float> wanted;
  for (size_t i = 0; i < 4; ++i) {
    const auto begin = input.begin() + static_cast<std::ptrdiff_t>(i * kOne);
    const auto one =
        Run(*single, {begin, begin + static_cast<std::ptrdiff_t>(kOne)});
    wanted.insert(wanted.end(), one.begin(), one.end());
  }
  EXPECT_EQ(Run(*model, input), wanted);
}

TEST_F(DynamicShapesTest, SlicesOfABatchLieHStrideRowsApart) {
  const auto model = Load(Net(8), "rknn_batch_size: 2");
  ASSERT_NE(model, nullptr);
  const TensorFormat padded{.type = TensorType::kFloat32,
                            .layout = TensorLayout::kNhwc,
                            .w_stride = 16,
                            .h_stride = 12};
  const TensorFormat dense{.type = TensorType::kFloat32,
                           .layout = TensorLayout::kNhwc};
  const std::vector<float> picture = SteppedNumbers(2 * 8 * 8 * 3, 7);
  std::vector<float> spread(2 * 12 * 16 * 3, 99.0F);
  for (size_t row = 0; row < 16; ++row) {
    std::memcpy(&spread[((row / 8) * 12 + row % 8) * 48], &picture[row * 24],
                24 * sizeof(float));
  }
  auto needed = model->CheckBinding(0, Direction::kInput, 0, padded);
  ASSERT_TRUE(needed.ok());
  ASSERT_EQ(*needed, (12U * 16 * 3 + 7 * 48 + 24) * sizeof(float));
  spread.resize(*needed / sizeof(float));

  EXPECT_EQ(Run(*model, spread, padded), Run(*model, picture, dense));
}

TEST_F(DynamicShapesTest, ABatchAndRowsGoTogether) {
  const auto model =
      Load(Net(-1), std::string(kThreeRows) + "\nrknn_batch_size: 2");
  const auto single = Load(Net(16));
  ASSERT_TRUE(model != nullptr && single != nullptr);
  EXPECT_THAT(model->info().programs[2].inputs[0].dims,
              ElementsAre(2, 16, 16, 3));
  constexpr size_t kOne = 3 * 16 * 16;
  const std::vector<float> input = SteppedNumbers(2 * kOne, 11);

  const auto both = Run(*model, input, kDynamicImage, 2);

  const auto second =
      Run(*single, {input.begin() + kOne, input.begin() + 2 * kOne});
  EXPECT_EQ(std::vector<float>(both.begin() + 64 * 16 * 16, both.end()),
            second);
}

TEST_F(DynamicShapesTest, ABatchOfTheNetworkItselfRunsAsItIs) {
  const auto model = Load(Net(8, 3));
  const auto single = Load(Net(8));
  ASSERT_TRUE(model != nullptr && single != nullptr);
  EXPECT_EQ(model->info().programs[0].batch, 1U);
  const std::vector<float> input = SteppedNumbers(3 * 3 * 8 * 8, 11);

  const auto all = Run(*model, input);

  const auto last = Run(*single, {input.end() - 3 * 8 * 8, input.end()});
  EXPECT_EQ(std::vector<float>(all.end() - 64 * 8 * 8, all.end()), last);
}

TEST_F(DynamicShapesTest, ABatchOnTopOfABatchIsRefused) {
  EXPECT_THAT(ErrorOf(Net(8, 3), "rknn_batch_size: 2"),
              AllOf(HasSubstr("option 'rknn_batch_size' 2"),
                    HasSubstr("input 'image' of shape 3x3x8x8")));
}

// A microsecond later whenever somebody looks.
class TickingClock final : public base::Clock {
 public:
  [[nodiscard]] base::Nanoseconds Now() const override {
    return now_ += base::kMicrosecond;
  }
  void SleepUntil(base::Nanoseconds /*time*/) const override {}

 private:
  mutable base::Nanoseconds now_ = 0;
};

TEST(BatchTimesTest, LayerTimesOfABatchAreTheSum) {
  const TickingClock clock;
  auto device =
      OpenSoftDevice({.kind = "soft", .soc = "rk3588", .clock = &clock});
  ASSERT_TRUE(device.ok()) << device.status();
  (*device)->EnterWorker();
  const auto times_of = [&](const std::string& options) {
    std::vector<int64_t> times;
    auto model = (*device)->Load({Net(16).Bytes(), options, "m.onnx"});
    auto bound =
        BoundModel::Make(**device, **model, {kDynamicImage}, {kDynamicImage});
    EXPECT_TRUE((*bound)->Run(0, &times).status.ok());
    return times;
  };

  const std::vector<int64_t> single = times_of("");
  const std::vector<int64_t> batch = times_of("rknn_batch_size: 8");

  ASSERT_FALSE(single.empty());
  ASSERT_EQ(batch.size(), single.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    EXPECT_GT(single[i], 0);
    EXPECT_EQ(batch[i], 8 * single[i]);
  }
}

}  // namespace
}  // namespace rknnd::soft
