// The software NPU through its contract, on models made here.

#include "driver/soft/soft_device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "driver/soft/testing/allocations.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::TensorFormat;
using driver::TensorLayout;
using driver::TensorType;
using ::testing::AllOf;
using testing::BoundModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OnnxBuilder;

constexpr TensorFormat kFloats{.type = TensorType::kFloat32,
                               .layout = TensorLayout::kUndefined};
constexpr TensorFormat kImage{.type = TensorType::kFloat32,
                              .layout = TensorLayout::kNchw};

class SoftDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    device_->EnterWorker();
  }

  std::unique_ptr<driver::Model> Load(const OnnxBuilder& builder) {
    auto model = device_->Load({builder.Bytes(), "", "m.onnx"});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  // Four floats in, four floats out.
  std::vector<float> RunFloats(const driver::Model& model,
                               std::vector<float> values) {
    auto bound = BoundModel::Make(*device_, model, {kFloats}, {kFloats});
    EXPECT_TRUE(bound.ok()) << bound.status();
    std::memcpy((*bound)->input(0).data(), values.data(),
                values.size() * sizeof(float));
    driver::JobResult result = (*bound)->Run();
    EXPECT_TRUE(result.status.ok()) << result.status;
    std::memcpy(values.data(), (*bound)->output(0).data(),
                values.size() * sizeof(float));
    return values;
  }

  std::unique_ptr<driver::Device> device_;
};

OnnxBuilder AddTen() {
  OnnxBuilder builder;
  builder.Input("x", {1, 4})
      .Floats("ten", {1}, {10})
      .Node("Add", {"x", "ten"}, {"y"}, "sum")
      .Output("y", {1, 4});
  return builder;
}

// Convolutions of 20 channels, activations, a residual sum: what placements and
// fusion see.
OnnxBuilder SmallNetwork() {
  OnnxBuilder builder;
  std::vector<float> first(20 * 3 * 9);
  std::vector<float> second(20 * 20);
  for (size_t i = 0; i < first.size(); ++i) {
    first[i] = static_cast<float>(i % 7) / 10 - 0.3F;
  }
  for (size_t i = 0; i < second.size(); ++i) {
    second[i] = static_cast<float>(i % 5) / 20 - 0.1F;
  }
  builder.Input("x", {1, 3, 12, 10})
      .Floats("w1", {20, 3, 3, 3}, first)
      .Floats("w2", {20, 20, 1, 1}, second)
      .Node("Conv", {"x", "w1"}, {"a"}, "first")
      .Ints("pads", {1, 1, 1, 1})
      .Node("Relu", {"a"}, {"b"})
      .Node("Conv", {"b", "w2"}, {"c"}, "second")
      .Node("Add", {"b", "c"}, {"y"})
      .Output("y", {1, 20, 12, 10});
  return builder;
}

TEST_F(SoftDeviceTest, InfoIsThatOfTheSoc) {
  EXPECT_EQ(device_->info().kind, "soft");
  EXPECT_EQ(device_->info().cores, 3U);
  EXPECT_THAT(device_->info().runtime, HasSubstr("2.3.2 ("));
}

TEST_F(SoftDeviceTest, UnknownSocIsAnErrorThatListsTheKnownOnes) {
  auto device = OpenSoftDevice({.kind = "soft", .soc = "rk9999"});

  EXPECT_THAT(
      std::string(device.status().message()),
      AllOf(HasSubstr("'rk9999'"), HasSubstr("rk3588"), HasSubstr("rk3566")));
}

TEST_F(SoftDeviceTest, AddsTen) {
  auto model = Load(AddTen());

  EXPECT_THAT(RunFloats(*model, {1, 2, 3, 4}), ElementsAre(11, 12, 13, 14));
}

TEST_F(SoftDeviceTest, ModelInfoNamesTheGraphAndItsOptions) {
  auto model = Load(AddTen().Metadata("rknn.custom_string", "v7"));

  EXPECT_EQ(model->info().name, "test");
  EXPECT_EQ(model->info().custom_string, "v7");
  EXPECT_GT(model->info().weight_size, 0U);
  EXPECT_EQ(model->info().programs.size(), 1U);
  std::vector<std::string> types;
  for (const auto& layer : model->info().programs[0].layers) {
    types.push_back(layer.type);
  }
  EXPECT_THAT(types, ElementsAre("InputOperator", "Add", "OutputOperator"));
}

TEST_F(SoftDeviceTest, RunIsStampedAndLayersAreTimed) {
  auto model = Load(SmallNetwork());
  auto bound = BoundModel::Make(*device_, *model, {kImage}, {kImage});
  ASSERT_TRUE(bound.ok()) << bound.status();
  std::vector<int64_t> times;

  driver::JobResult result = (*bound)->Run(1, &times);

  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_GT(result.ended, result.started);
  int64_t sum = 0;
  for (int64_t time : times) {
    EXPECT_GE(time, 0);
    sum += time;
  }
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, result.ended - result.started);
}

TEST_F(SoftDeviceTest, EveryCoreGivesTheSameAnswer) {
  auto model = Load(SmallNetwork());
  auto bound = BoundModel::Make(*device_, *model, {kImage}, {kImage});
  ASSERT_TRUE(bound.ok()) << bound.status();
  auto* pixels = reinterpret_cast<float*>((*bound)->input(0).data());
  for (int i = 0; i < 360; ++i) pixels[i] = static_cast<float>(i % 11) - 5;
  const size_t bytes = 20 * 12 * 10 * sizeof(float);
  ASSERT_TRUE((*bound)->Run(0).status.ok());
  std::vector<std::byte> first((*bound)->output(0).data(),
                               (*bound)->output(0).data() + bytes);

  for (uint32_t core : {1U, 2U}) {
    std::memset((*bound)->output(0).data(), 0, bytes);
    ASSERT_TRUE((*bound)->Run(core).status.ok());
    EXPECT_EQ(std::memcmp((*bound)->output(0).data(), first.data(), bytes), 0);
  }
}

TEST_F(SoftDeviceTest, ManyThreadsRunOneModelAtOnce) {
  auto model = Load(SmallNetwork());
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (uint32_t core = 0; core < 3; ++core) {
    threads.emplace_back([this, core, &model, &good] {
      device_->EnterWorker();
      auto bound = BoundModel::Make(*device_, *model, {kImage}, {kImage});
      for (int i = 0; i < 20; ++i) {
        good += (*bound)->Run(core).status.ok() ? 1 : 0;
        // A larger model grows the scratch under running jobs.
        if (core == 0 && i == 5) {
          good += device_->Load({SmallNetwork().Bytes(), "", "n"}).ok() ? 1 : 0;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(good, 61);
}

TEST_F(SoftDeviceTest, SubmitAllocatesNothing) {
  auto model = Load(SmallNetwork());
  auto bound = BoundModel::Make(
      *device_, *model,
      {{.type = TensorType::kUint8, .layout = TensorLayout::kNhwc}},
      {{.type = TensorType::kFloat16, .layout = TensorLayout::kNchw}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  ASSERT_TRUE((*bound)->Run().status.ok());
  const uint64_t before = testing::Allocations();

  driver::JobResult result = (*bound)->Run();

  const uint64_t after = testing::Allocations();
  EXPECT_TRUE(result.status.ok());
  EXPECT_GT(before, 0U);
  EXPECT_EQ(after, before);
}

TEST_F(SoftDeviceTest, SubmitOfAnIntegerNetworkAllocatesNothing) {
  auto model = device_->Load(
      {testing::ReadFile(std::string(RKNND_SOURCE_ROOT) + "/examples/detector/"
                                                          "detector.onnx"),
       "", "detector"});
  ASSERT_TRUE(model.ok()) << model.status();
  const driver::ProgramInfo& program = (*model)->info().programs[0];
  std::vector<driver::TensorFormat> outputs;
  for (const driver::TensorAttr& attr : program.outputs) {
    outputs.push_back(testing::PlainFormat(attr, TensorType::kInt8));
  }
  auto bound = BoundModel::Make(
      *device_, **model,
      {{.type = TensorType::kInt8, .layout = TensorLayout::kNhwc}}, outputs);
  ASSERT_TRUE(bound.ok()) << bound.status();
  ASSERT_TRUE((*bound)->Run().status.ok());
  const uint64_t before = testing::Allocations();

  driver::JobResult result = (*bound)->Run();

  EXPECT_EQ(testing::Allocations(), before);
  EXPECT_TRUE(result.status.ok()) << result.status;
}

TEST_F(SoftDeviceTest, BytesOfAnImageBecomeFloats) {
  OnnxBuilder builder;
  builder.Input("x", {1, 3, 2, 2})
      .Node("Relu", {"x"}, {"y"})
      .Output("y", {1, 3, 2, 2});
  auto model = Load(builder);
  auto bound = BoundModel::Make(
      *device_, *model,
      {{.type = TensorType::kUint8, .layout = TensorLayout::kNhwc}}, {kImage});
  ASSERT_TRUE(bound.ok()) << bound.status();
  for (int i = 0; i < 12; ++i) {
    (*bound)->input(0).data()[i] = static_cast<std::byte>(i * 20);
  }

  ASSERT_TRUE((*bound)->Run().status.ok());

  const auto* out = reinterpret_cast<float*>((*bound)->output(0).data());
  EXPECT_THAT(
      std::vector<float>(out, out + 12),
      ElementsAre(0, 60, 120, 180, 20, 80, 140, 200, 40, 100, 160, 220));
}

TEST_F(SoftDeviceTest, IndexOutOfRangeNamesItsNode) {
  for (const char* type : {"Gather", "GatherElements"}) {
    OnnxBuilder builder;
    builder.Input("x", {3})
        .Input("i", {2}, onnx::TensorProto::INT64)
        .Node(type, {"x", "i"}, {"y"}, "pick")
        .Output("y", {2});
    auto model = Load(builder);
    auto bound = BoundModel::Make(
        *device_, *model,
        {kFloats,
         {.type = TensorType::kInt64, .layout = TensorLayout::kUndefined}},
        {kFloats});
    ASSERT_TRUE(bound.ok()) << bound.status();
    const int64_t indices[] = {0, 3};
    std::memcpy((*bound)->input(1).data(), indices, sizeof indices);

    const driver::JobResult result = (*bound)->Run();

    EXPECT_THAT(std::string(result.status.message()),
                HasSubstr(std::string(type) +
                          " 'pick': an index is out of range: axis 0 of its "
                          "data has 3"));
  }
}

// What vendor programs turn a quantised network's answers into numbers by.
TEST_F(SoftDeviceTest, BytesAtTheEdgeHaveTheScaleOfTheirNode) {
  for (const auto type : {onnx::TensorProto::INT8, onnx::TensorProto::UINT8}) {
    OnnxBuilder builder;
    const auto zero = [&](const std::string& name, int value) {
      onnx::TensorProto& tensor =
          *builder.proto().mutable_graph()->add_initializer();
      tensor.set_name(name);
      tensor.set_data_type(type);
      tensor.add_int32_data(value);
    };
    zero("zx", 3);
    zero("zy", 5);
    builder.Input("x", {1, 4}, type)
        .Floats("sx", {}, {0.5F})
        .Floats("sy", {}, {0.25F})
        .Node("DequantizeLinear", {"x", "sx", "zx"}, {"a"})
        .Node("Reshape", {"a", "shape"}, {"b"})
        .Int64s("shape", {2}, {2, 2})
        .Node("Relu", {"b"}, {"c"})
        .Node("QuantizeLinear", {"c", "sy", "zy"}, {"d"})
        .Node("Reshape", {"d", "shape"}, {"y"})
        .Output("y", {2, 2}, type);
    auto model = Load(builder);
    const driver::ProgramInfo& info = model->info().programs[0];
    const auto outer = type == onnx::TensorProto::INT8 ? TensorType::kInt8
                                                       : TensorType::kUint8;
    EXPECT_EQ(info.inputs[0].type, outer);
    EXPECT_EQ(info.inputs[0].scale, 0.5F);
    EXPECT_EQ(info.inputs[0].zero_point, 3);
    EXPECT_EQ(info.outputs[0].type, outer);
    EXPECT_EQ(info.outputs[0].scale, 0.25F);
    EXPECT_EQ(info.outputs[0].zero_point, 5);
  }
}

TEST_F(SoftDeviceTest, OutputMayBeAConstantOrAnInput) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4})
      .Floats("c", {4}, {1, 2, 3, 4})
      .Node("Identity", {"x"}, {"same"})
      .Node("Identity", {"c"}, {"fixed"})
      .Output("same", {1, 4})
      .Output("fixed", {4});
  auto model = Load(builder);
  auto bound =
      BoundModel::Make(*device_, *model, {kFloats}, {kFloats, kFloats});
  ASSERT_TRUE(bound.ok()) << bound.status();
  const float values[] = {7, 8, 9, 10};
  std::memcpy((*bound)->input(0).data(), values, sizeof(values));

  ASSERT_TRUE((*bound)->Run().status.ok());

  EXPECT_EQ(reinterpret_cast<float*>((*bound)->output(0).data())[3], 10);
  EXPECT_EQ(reinterpret_cast<float*>((*bound)->output(1).data())[2], 3);
  EXPECT_EQ(model->info().programs[0].outputs[0].name, "same");
}

TEST_F(SoftDeviceTest, ForeignOperatorLoadsAndFailsAtRunByName) {
  OnnxBuilder builder;
  builder.Opset(1, "my.domain")
      .Input("x", {1, 4})
      .Node("Foo", {"x"}, {"y"}, "foo", "my.domain")
      .Output("y", {1, 4});
  auto model = Load(builder);
  auto bound = BoundModel::Make(*device_, *model, {kFloats}, {kFloats});
  ASSERT_TRUE(bound.ok()) << bound.status();

  driver::JobResult result = (*bound)->Run();

  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(result.status.message()),
              HasSubstr("operator 'my.domain::Foo' of node 'foo'"));
}

// What rknn_custom_op.h promises: a program looks at the outputs, and brings
// the operator, after rknn_init.
TEST_F(SoftDeviceTest, OperatorOfNobodysLoadsWhateverItsOutputsDeclare) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4})
      .Node("cstSoftmax", {"x"}, {"y"}, "soft")
      .Node("Relu", {"y"}, {"z"})
      .Output("y", {1, 4})
      .Output("z", {});
  auto* dims = builder.proto().mutable_graph()->mutable_output(0);
  dims->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->set_dim_param("classes");
  builder.proto()
      .mutable_graph()
      ->mutable_output(1)
      ->mutable_type()
      ->mutable_tensor_type()
      ->clear_shape();

  auto model = Load(builder);
  EXPECT_THAT(model->info().programs[0].outputs[0].dims, ElementsAre(1, 1));
  EXPECT_THAT(model->info().programs[0].outputs[1].dims, ElementsAre(1));
  auto bound =
      BoundModel::Make(*device_, *model, {kFloats}, {kFloats, kFloats});
  ASSERT_TRUE(bound.ok()) << bound.status();

  driver::JobResult result = (*bound)->Run();

  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(result.status.message()),
              HasSubstr("operator 'cstSoftmax' of node 'soft'"));
}

TEST_F(SoftDeviceTest, LoadErrorsNameOperatorNodeAndModel) {
  OnnxBuilder builder;
  builder.Input("x", {2}).Node("Det", {"x"}, {"y"}, "culprit").Output("y", {2});

  auto model = device_->Load({builder.Bytes(), "", "net.onnx"});

  EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      std::string(model.status().message()),
      AllOf(HasSubstr("net.onnx"), HasSubstr("Det"), HasSubstr("culprit")));
}

// Between its two passes this one needs 16384 x 16384 floats.
TEST_F(SoftDeviceTest, KernelThatNeedsTooMuchScratchIsRefusedByName) {
  constexpr int64_t kLong = 16384;
  OnnxBuilder builder;
  builder.Input("x", {1, 1, kLong, 1})
      .Floats("scales", {4}, {1, 1, 1.0F / kLong, kLong})
      .Node("Resize", {"x", "", "scales"}, {"y"}, "turn")
      .Output("y", {1, 1, 1, kLong});

  auto model = device_->Load({builder.Bytes(), "", "m.onnx"});

  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(model.status().message()),
      AllOf(HasSubstr("'m.onnx'"), HasSubstr("'turn'"), HasSubstr("2048 MiB")));
}

TEST_F(SoftDeviceTest, MemoryThatGoesAwayCostsTheJobNotTheProcess) {
  auto model = Load(AddTen());
  // Not sealed, as if an import check had been fooled; two pages.
  base::UniqueFd fd(memfd_create("hostile", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), 8192), 0);
  auto memory =
      device_->Attach({fd.get(), 4096, 4096}, driver::MemoryAccess::kReadWrite);
  ASSERT_TRUE(memory.ok()) << memory.status();
  auto bound = BoundModel::Make(*device_, *model, {kFloats}, {kFloats});
  ASSERT_TRUE(bound.ok());
  ASSERT_EQ(ftruncate(fd.get(), 4096), 0);

  driver::JobResult result = (*bound)->RunWithInput(0, memory->get());

  EXPECT_EQ(result.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("input 'x'"));
  EXPECT_TRUE((*bound)->Run().status.ok());
}

TEST_F(SoftDeviceTest, ReadOnlyMemoryCannotBeAttachedForWriting) {
  const std::vector<std::byte> bytes(4096);
  base::UniqueFd fd = *base::MakeImmutableMemfd("sealed", bytes);

  auto memory =
      device_->Attach({fd.get(), 0, 4096}, driver::MemoryAccess::kReadWrite);

  ASSERT_FALSE(memory.ok());
  EXPECT_THAT(std::string(memory.status().message()),
              HasSubstr("must be writable"));
  EXPECT_TRUE(
      device_->Attach({fd.get(), 0, 4096}, driver::MemoryAccess::kRead).ok());
}

TEST_F(SoftDeviceTest, MemoryPastTheEndOfItsFileCannotBeAttached) {
  base::UniqueFd fd = *base::MakeMemfd("short", 4096);

  EXPECT_FALSE(
      device_->Attach({fd.get(), 0, 1 << 20}, driver::MemoryAccess::kReadWrite)
          .ok());
  EXPECT_FALSE(device_
                   ->Attach({fd.get(), UINT64_MAX - 100, 4096},
                            driver::MemoryAccess::kReadWrite)
                   .ok());
}

TEST_F(SoftDeviceTest, MemoryStaysWhenItsFdIsClosed) {
  base::UniqueFd fd = *base::MakeMemfd("closed", 4096);
  auto memory =
      device_->Attach({fd.get(), 0, 4096}, driver::MemoryAccess::kReadWrite);
  ASSERT_TRUE(memory.ok());
  fd.reset();
  auto model = Load(AddTen());
  auto bound = BoundModel::Make(*device_, *model, {kFloats}, {kFloats});

  EXPECT_TRUE((*bound)->RunWithInput(0, memory->get()).status.ok());
}

TEST_F(SoftDeviceTest, ClearZeroesTheRangeAlone) {
  base::UniqueFd fd = *base::MakeMemfd("arena", 4096);
  base::Mapping view = *base::Mapping::OfFd(fd.get(), 0, 4096,
                                            base::Mapping::Access::kReadWrite);
  std::fill_n(view.data(), view.size(), std::byte{7});
  auto memory =
      device_->Attach({fd.get(), 0, 4096}, driver::MemoryAccess::kReadWrite);
  ASSERT_TRUE(memory.ok());

  (*memory)->Clear(16, 32);

  EXPECT_EQ(view.data()[15], std::byte{7});
  EXPECT_EQ(view.data()[16], std::byte{0});
  EXPECT_EQ(view.data()[47], std::byte{0});
  EXPECT_EQ(view.data()[48], std::byte{7});
}

// Two layers with the same weights, 64 channels: no block has padding.
OnnxBuilder SharedConvolution() {
  OnnxBuilder builder;
  std::vector<float> weights(size_t{64} * 64 * 9);
  std::vector<float> bias(64);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(i % 1013) / 1e5F;
  }
  builder.Input("x", {1, 64, 8, 8})
      .Floats("w", {64, 64, 3, 3}, weights)
      .Floats("b", {64}, bias)
      .Node("Conv", {"x", "w", "b"}, {"a"}, "first")
      .Ints("pads", {1, 1, 1, 1})
      .Node("Conv", {"a", "w", "b"}, {"y"}, "second")
      .Ints("pads", {1, 1, 1, 1})
      .Output("y", {1, 64, 8, 8});
  return builder;
}

TEST_F(SoftDeviceTest, WeightsOfAConvolutionAreKeptOnce) {
  auto model = Load(SharedConvolution());

  constexpr uint64_t kBytes = (uint64_t{64} * 64 * 9 + 64) * sizeof(float);
  EXPECT_GE(model->info().weight_size, kBytes);
  EXPECT_LE(model->info().weight_size, kBytes + 8192);
}

TEST_F(SoftDeviceTest, WeightsOfANarrowProductAreNotPaddedOut) {
  OnnxBuilder builder;
  std::vector<float> weights(size_t{256} * 10);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(i % 17);
  }
  builder.Input("x", {1, 256})
      .Floats("w", {256, 10}, weights)
      .Node("MatMul", {"x", "w"}, {"y"}, "product")
      .Output("y", {1, 10});
  auto model = Load(builder);

  EXPECT_LE(model->info().weight_size,
            weights.size() * sizeof(float) * 2 + 4096);
}

TEST_F(SoftDeviceTest, ScalarOutputsHaveADimension) {
  OnnxBuilder builder;
  builder.Input("x", {4})
      .Int64s("i", {}, {2})
      .Node("Gather", {"x", "i"}, {"y"})
      .Output("y", {});
  auto model = Load(builder);

  EXPECT_THAT(model->info().programs[0].outputs[0].dims, ElementsAre(1));
}

TEST_F(SoftDeviceTest, ModelForAnotherChipIsRefusedByName) {
  OnnxBuilder builder = AddTen();
  builder.Metadata("rknn.target_platform", "rk3566");

  const auto model = device_->Load({builder.Bytes(), "", "m.onnx"});

  EXPECT_EQ(model.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(model.status().message()),
              AllOf(HasSubstr("is for rk3566, this NPU is rk3588"),
                    HasSubstr("target_platform=rk3588")));
}

TEST_F(SoftDeviceTest, ModelForAChipWithTheSameNpuIsTaken) {
  OnnxBuilder builder = AddTen();
  builder.Metadata("rknn.target_platform", "RK3588S");

  EXPECT_NE(Load(builder), nullptr);
}

// ---- jobs that end before they are done -------------------------------------

OnnxBuilder TwoSums() {
  OnnxBuilder builder;
  builder.Input("x", {1, 4})
      .Floats("ten", {1}, {10})
      .Node("Add", {"x", "ten"}, {"a"}, "first")
      .Node("Mul", {"a", "a"}, {"y"}, "second")
      .Output("y", {1, 4});
  return builder;
}

// Does something once, in the middle of a job.
class InTheMiddle final : public driver::LayerSink {
 public:
  explicit InTheMiddle(std::function<void()> act) : act_(std::move(act)) {}
  absl::Status OnLayer(const driver::LayerTensor& tensor) override {
    seen_.emplace_back(tensor.name);
    if (const auto act = std::exchange(act_, nullptr)) act();
    return absl::OkStatus();
  }
  [[nodiscard]] size_t seen() const { return seen_.size(); }

 private:
  std::function<void()> act_;
  std::vector<std::string> seen_;
};

TEST_F(SoftDeviceTest, JobThatNobodyWantsAnyMoreEndsBeforeItsNextLayer) {
  const auto model = Load(TwoSums());
  auto bound = *BoundModel::Make(*device_, *model, {kFloats}, {kFloats});
  std::atomic<bool> stop{false};
  bound->set_stop(&stop);
  InTheMiddle whole([] {});
  ASSERT_TRUE(bound->RunDumped(whole).status.ok());
  InTheMiddle sink([&] { stop = true; });

  const driver::JobResult result = bound->RunDumped(sink);

  EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
  EXPECT_LT(sink.seen(), whole.seen());
  stop = false;
  EXPECT_TRUE(bound->Run().status.ok());
}

TEST_F(SoftDeviceTest, ResetEndsTheJobUnderWayAndIsDoneWhenThatIs) {
  const auto model = Load(TwoSums());
  auto bound = *BoundModel::Make(*device_, *model, {kFloats}, {kFloats});
  bool done = false, done_in_the_middle = true;
  InTheMiddle sink([&] {
    device_->Reset([&](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      done = true;
    });
    done_in_the_middle = done;
  });

  const driver::JobResult result = bound->RunDumped(sink);

  EXPECT_EQ(result.status.code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(done_in_the_middle);
  EXPECT_TRUE(done);
  EXPECT_EQ(device_->resets(), 1U);
  EXPECT_TRUE(bound->Run().status.ok());
}

TEST_F(SoftDeviceTest, ResetOfAnIdleDeviceIsDoneAtOnce) {
  bool done = false;
  device_->Reset([&](const absl::Status& status) { done = status.ok(); });
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace rknnd::soft
