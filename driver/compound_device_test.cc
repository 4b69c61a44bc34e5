// Both kinds of file on one device: published compiled models with their
// vectors, one that cannot be run, and an ONNX model beside them.

#include "driver/compound_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "driver/rknpu/file/testing/shared_programs.h"
#include "driver/rknpu/testing/task_writer.h"
#include "driver/soft/testing/run_model.h"

namespace rknnd::driver {
namespace {

using rknpu::testing::ReadShared;
using soft::testing::BoundModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TensorFormat kPixels = {.type = TensorType::kUint8,
                                  .layout = TensorLayout::kNhwc};
constexpr TensorFormat kPlanes = {.type = TensorType::kInt8,
                                  .layout = TensorLayout::kNchw};

class CompoundDeviceTest : public ::testing::Test {
 protected:
  CompoundDeviceTest()
      : device_(*OpenDevice({.kind = "soft", .soc = "rk3588"})) {}

  // Null: the file is not there.
  std::unique_ptr<Model> Load(const std::string& name) {
    const std::vector<std::byte> bytes = ReadShared(name);
    if (bytes.empty()) return nullptr;
    auto model = device_->Load({.bytes = bytes, .options = "", .name = name});
    if (!model.ok()) {
      ADD_FAILURE() << model.status();
      return nullptr;
    }
    return *std::move(model);
  }

  static void Fill(soft::testing::TestMemory& memory, const std::string& name) {
    const std::vector<std::byte> bytes = ReadShared("vectors/" + name);
    std::memcpy(memory.data(), bytes.data(), bytes.size());
  }
  // How many bytes differ from those of a vector.
  static size_t Differences(const soft::testing::TestMemory& memory,
                            const std::string& name) {
    const std::vector<std::byte> bytes = ReadShared("vectors/" + name);
    EXPECT_FALSE(bytes.empty()) << name;
    size_t different = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      different += memory.data()[i] != bytes[i] ? 1 : 0;
    }
    return different;
  }

  std::unique_ptr<Device> device_;
};

// A program of one task, written by hand: it copies 16 channels of 4 lines of 8
// pixels from 'x' to 'y', which read them with another scale.
rknpu::testing::ProgramSpec Copy() {
  rknpu::testing::Registers registers = {
      {0x4004, 0xe},     {0x5004, 0xe},
      {0x400c, 0x1e5},   {0x4010, 0},
      {0x4014, 0},       {0x4020, 0},
      {0x4024, 512},     {0x4038, 0},
      {0x403c, 0xf000f}, {0x4040, 0x53},
      {0x4050, 2},       {0x4054, 0},
      {0x4058, 15},      {0x405c, 3U << 16 | 7},
      {0x4060, 0x53},    {0x4070, 0x383},
      {0x407c, 0},       {0x4080, 0},
      {0x4084, 1},       {0x4088, 0},
      {0x40c0, 512},     {0x40c4, 0},
      {0x500c, 7},       {0x5010, 3},
      {0x5014, 15},      {0x5018, 0},
      {0x501c, 0},       {0x5020, 0},
      {0x5028, 0},       {0x502c, 0},
      {0x5034, 1},       {0x5038, 0},
      {0x5040, 0},       {0x5044, 0x7801},
      {0x5048, 0},       {0x504c, 0},
      {0x5064, 0},       {0x506c, 0}};
  for (uint16_t number = 0x4090; number <= 0x40ac; number += 4) {
    registers[number] = 0;
  }
  rknpu::testing::TaskWriter writer;
  writer.Node("copy").Add(0x18, registers, {{0x4020, "y"}, {0x5018, "x"}});
  rknpu::testing::ProgramSpec spec = writer.spec();
  spec.tensors[2].shape = {1, 16, 4, 8};
  spec.tensors[3].shape = {1, 16, 4, 8};
  spec.tensors[3].native_shape = {1, 1, 4, 8, 16};
  return spec;
}

TEST_F(CompoundDeviceTest, AProgramWrittenByHandRuns) {
  const std::string file = rknpu::testing::Build(Copy());
  auto model = device_->Load(
      {.bytes = std::as_bytes(std::span(file)), .options = "", .name = "copy"});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE((*model)->info().runnable.ok()) << (*model)->info().runnable;
  EXPECT_EQ((*model)->info().weight_size, 512U);
  EXPECT_EQ((*model)->info().programs[0].internal_size, 1536U);
  auto bound = BoundModel::Make(
      *device_, **model, {kPlanes},
      {{.type = TensorType::kFloat32, .layout = TensorLayout::kNchw}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  for (int i = 0; i < 512; ++i) {
    (*bound)->input(0).data()[i] = static_cast<std::byte>(i * 37);
  }

  const JobResult result = (*bound)->Run(2);

  ASSERT_TRUE(result.status.ok()) << result.status;
  for (int i = 0; i < 512; ++i) {
    float number = 0;
    std::memcpy(&number, (*bound)->output(0).data() + i * 4, 4);
    const auto byte = static_cast<int8_t>(i * 37);
    ASSERT_EQ(number, (static_cast<float>(byte) - 7) * 0.25F) << i;
  }
}

TEST_F(CompoundDeviceTest, AJobThatNobodyWantsEnds) {
  const std::string file = rknpu::testing::Build(Copy());
  auto model = device_->Load(
      {.bytes = std::as_bytes(std::span(file)), .options = "", .name = "copy"});
  ASSERT_TRUE(model.ok()) << model.status();
  auto bound = BoundModel::Make(*device_, **model, {kPlanes}, {kPlanes});
  ASSERT_TRUE(bound.ok()) << bound.status();
  const std::atomic<bool> stop{true};
  (*bound)->set_stop(&stop);

  EXPECT_EQ((*bound)->Run().status.code(), absl::StatusCode::kCancelled);
}

// What the emulator does not know ends the job with its name.
TEST_F(CompoundDeviceTest, AValueThatIsNotKnownIsNamedByTheJob) {
  rknpu::testing::ProgramSpec spec = Copy();
  for (uint64_t& word : spec.commands) {
    if (word == 0x1001000000014084) word = 0x1001800000014084;
  }
  const std::string file = rknpu::testing::Build(spec);
  auto model = device_->Load(
      {.bytes = std::as_bytes(std::span(file)), .options = "", .name = "copy"});
  ASSERT_TRUE(model.ok()) << model.status();
  auto bound = BoundModel::Make(*device_, **model, {kPlanes}, {kPlanes});
  ASSERT_TRUE(bound.ok()) << bound.status();

  const JobResult result = (*bound)->Run();

  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("0x4084"));
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("'copy'"));
}

// A task that leaves its memory is refused before any job.
TEST_F(CompoundDeviceTest, AProgramThatLeavesItsMemoryDoesNotRun) {
  rknpu::testing::ProgramSpec spec = Copy();
  for (auto& relocation : spec.relocations) {
    if (relocation.tensor == "y") relocation.places[0].addend = 528;
  }
  const std::string file = rknpu::testing::Build(spec);
  auto model = device_->Load(
      {.bytes = std::as_bytes(std::span(file)), .options = "", .name = "copy"});

  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(std::string((*model)->info().runnable.message()),
              HasSubstr("task 0 of node 'copy': it writes the bytes 528 to "
                        "1040 of tensor 'y'"));
}

TEST_F(CompoundDeviceTest, TheDemoIsRunOnAnyNumberOfCores) {
  const auto model = Load("multiple_input_demo_v6_rk3588.rknn");
  if (model == nullptr) GTEST_SKIP() << "no published files in RKNND_SHARED";
  ASSERT_TRUE(model->info().runnable.ok()) << model->info().runnable;
  auto bound =
      BoundModel::Make(*device_, *model, {kPixels, kPixels}, {kPlanes});
  ASSERT_TRUE(bound.ok()) << bound.status();
  for (const std::string set : {"vendor", "smooth"}) {
    Fill((*bound)->input(0), "demo_" + set + "_in1_u8.bin");
    Fill((*bound)->input(1), "demo_" + set + "_in2_u8.bin");
    for (uint32_t core = 0; core < 3; ++core) {
      const JobResult result = (*bound)->Run(core);

      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(Differences((*bound)->output(0), "demo_" + set + "_t8_i8.bin"),
                0U)
          << core;
    }
    for (const uint32_t mask : {3U, 6U, 7U}) {
      std::memset((*bound)->output(0).data(), 0, 131072);

      const JobResult result = (*bound)->RunGang(mask);

      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(Differences((*bound)->output(0), "demo_" + set + "_t8_i8.bin"),
                0U)
          << mask;
    }
  }
}

TEST_F(CompoundDeviceTest, TheDemoSaysWhatItIs) {
  const auto model = Load("multiple_input_demo_v6_rk3588.rknn");
  if (model == nullptr) GTEST_SKIP() << "no published files in RKNND_SHARED";
  const ModelInfo& info = model->info();
  const ProgramInfo& program = info.programs[0];

  EXPECT_EQ(info.weight_size, 4864U);
  EXPECT_EQ(info.target_platform, "rk3588");
  EXPECT_EQ(program.internal_size, 1114112U);
  ASSERT_THAT(program.inputs, ::testing::SizeIs(2));
  EXPECT_EQ(program.inputs[1].name, "input");
  EXPECT_THAT(program.inputs[1].dims, ElementsAre(1, 128, 128, 3));
  EXPECT_EQ(program.inputs[1].layout, TensorLayout::kNhwc);
  EXPECT_EQ(program.inputs[1].type, TensorType::kInt8);
  EXPECT_EQ(program.inputs[1].zero_point, -128);
  EXPECT_EQ(program.native_inputs[1].size_with_stride, 49152U);
  EXPECT_THAT(program.outputs[0].dims, ElementsAre(1, 8, 128, 128));
  EXPECT_NEAR(program.outputs[0].scale, 4.142374516F, 1e-6);
  EXPECT_EQ(program.outputs[0].zero_point, 20);
  EXPECT_THAT(program.native_outputs[0].dims, ElementsAre(1, 2, 128, 128, 16));
  EXPECT_EQ(program.native_outputs[0].size_with_stride, 524288U);
  ASSERT_THAT(program.layers, ::testing::SizeIs(5));
  EXPECT_EQ(program.layers[3].type, "ConvAdd");
  EXPECT_EQ(program.layers[3].name, "Conv:Conv_0");
  EXPECT_TRUE(program.layers[3].splits);
  EXPECT_TRUE(program.layers[0].on_cpu);
}

TEST_F(CompoundDeviceTest, LayersHaveTimesAndOutputs) {
  const auto model = Load("multiple_input_demo_v6_rk3588.rknn");
  if (model == nullptr) GTEST_SKIP() << "no published files in RKNND_SHARED";
  auto bound =
      BoundModel::Make(*device_, *model, {kPixels, kPixels}, {kPlanes});
  ASSERT_TRUE(bound.ok()) << bound.status();
  Fill((*bound)->input(0), "demo_smooth_in1_u8.bin");
  Fill((*bound)->input(1), "demo_smooth_in2_u8.bin");
  std::vector<int64_t> times(5);

  const JobResult timed = (*bound)->RunGang(7, false, &times);

  ASSERT_TRUE(timed.status.ok()) << timed.status;
  EXPECT_EQ(Differences((*bound)->output(0), "demo_smooth_t8_i8.bin"), 0U);
  for (const int64_t time : times) EXPECT_GT(time, 0);

  class Sink final : public LayerSink {
   public:
    absl::Status OnLayer(const LayerTensor& tensor) override {
      names.emplace_back(tensor.name);
      if (tensor.name != "7") return absl::OkStatus();
      const std::vector<std::byte> expected =
          ReadShared("vectors/demo_smooth_t7_i8.bin");
      for (size_t i = 0; i < expected.size(); ++i) {
        float number = 0;
        std::memcpy(&number, tensor.bytes.data() + i * 4, 4);
        const auto steps = static_cast<float>(static_cast<int8_t>(expected[i]));
        different += number != (steps - 16) * 2.618234157562256F ? 1 : 0;
      }
      return absl::OkStatus();
    }
    std::vector<std::string> names;
    size_t different = 0;
  } sink;
  const JobResult dumped = (*bound)->RunDumped(sink);

  ASSERT_TRUE(dumped.status.ok()) << dumped.status;
  EXPECT_THAT(sink.names, ElementsAre("input.1", "input", "7", "8"));
  EXPECT_EQ(sink.different, 0U);
}

// Pixels through mean and deviation to a class, a Reshape of the CPU at the
// end.
TEST_F(CompoundDeviceTest, MobileNetAnswersAsTheVectorsDo) {
  const auto model = Load("mobilenetv2_rk3588.rknn");
  if (model == nullptr) GTEST_SKIP() << "no published files in RKNND_SHARED";
  ASSERT_TRUE(model->info().runnable.ok()) << model->info().runnable;
  auto bound = BoundModel::Make(
      *device_, *model, {kPixels},
      {{.type = TensorType::kInt8, .layout = TensorLayout::kUndefined}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  for (const std::string picture : {"chelsea", "coffee"}) {
    Fill((*bound)->input(0), "mobilenetv2_" + picture + "_in_u8.bin");
    for (const uint32_t mask : {1U, 3U, 7U}) {
      std::memset((*bound)->output(0).data(), 0, 1000);

      const JobResult result = (*bound)->RunGang(mask);

      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(Differences((*bound)->output(0),
                            "mobilenetv2_" + picture + "_out_i8.bin"),
                0U)
          << picture << ", " << mask;
    }
  }
}

TEST_F(CompoundDeviceTest, TheTextDetectorAnswersAsTheVectorDoes) {
  const auto model = Load("ppocrv4_det_rk3588.rknn");
  if (model == nullptr) GTEST_SKIP() << "no published files in RKNND_SHARED";
  ASSERT_TRUE(model->info().runnable.ok()) << model->info().runnable;
  auto bound = BoundModel::Make(*device_, *model, {kPixels}, {kPlanes});
  ASSERT_TRUE(bound.ok()) << bound.status();
  Fill((*bound)->input(0), "ppocrv4_det_page_in_u8.bin");

  const JobResult result = (*bound)->Run();

  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(Differences((*bound)->output(0), "ppocrv4_det_page_out_i8.bin"),
            0U);
}

TEST_F(CompoundDeviceTest, HalvesGoInAndComeOut) {
  const auto model = Load("conv_fp16_c32_rk3588.rknn");
  if (model == nullptr) GTEST_SKIP() << "no published files in RKNND_SHARED";
  ASSERT_TRUE(model->info().runnable.ok()) << model->info().runnable;
  auto bound = BoundModel::Make(
      *device_, *model,
      {{.type = TensorType::kFloat16, .layout = TensorLayout::kNchw}},
      {{.type = TensorType::kFloat32, .layout = TensorLayout::kNchw}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  Fill((*bound)->input(0), "conv_fp16_in_f16_nchw.bin");

  const JobResult result = (*bound)->Run(1);

  ASSERT_TRUE(result.status.ok()) << result.status;
  const std::vector<std::byte> expected =
      ReadShared("vectors/conv_fp16_out_f32_nchw.bin");
  const size_t count = expected.size() / 4;
  size_t close = 0;
  for (size_t i = 0; i < count; ++i) {
    float a = 0;
    float b = 0;
    std::memcpy(&a, expected.data() + i * 4, 4);
    std::memcpy(&b, (*bound)->output(0).data() + i * 4, 4);
    // A unit of half precision is up to 1/1024 of the number.
    close += std::abs(a - b) <= std::abs(a) / 1024 + 1e-3F ? 1 : 0;
  }
  EXPECT_EQ(close, count);
}

TEST_F(CompoundDeviceTest, WhatCannotBeRunIsDescribedAndSaysWhy) {
  const struct {
    const char* file;
    const char* reason;
  } cases[] = {{"dual_residual_rk3588.rknn", "(cstDualResidual)"},
               {"multiple_input_demo_rk3588.rknn", "container version 2"},
               {"multiple_input_demo_v6_rk3566.rknn", "program for 'rk3566'"}};
  for (const auto& wrong : cases) {
    const auto model = Load(wrong.file);
    if (model == nullptr) GTEST_SKIP() << "no published files in RKNND_SHARED";

    EXPECT_FALSE(model->info().runnable.ok());
    EXPECT_THAT(std::string(model->info().runnable.message()),
                HasSubstr(wrong.reason));
    EXPECT_FALSE(model->info().programs[0].inputs.empty());
  }
}

TEST_F(CompoundDeviceTest, AResetEndsAndTells) {
  bool done = false;
  device_->Reset([&](const absl::Status& status) { done = status.ok(); });

  EXPECT_TRUE(done);
  EXPECT_EQ(device_->resets(), 1U);
}

}  // namespace
}  // namespace rknnd::driver
