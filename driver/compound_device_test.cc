// Both kinds of file on one device: published compiled models with their
// vectors, one that cannot be run, and an ONNX model beside them.

#include "driver/compound_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/posix/unique_fd.h"
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

TEST_F(CompoundDeviceTest, AProgramWrittenByHandRuns) {
  const std::string file = rknpu::testing::Build(rknpu::testing::CopyProgram());
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
  const std::string file = rknpu::testing::Build(rknpu::testing::CopyProgram());
  auto model = device_->Load(
      {.bytes = std::as_bytes(std::span(file)), .options = "", .name = "copy"});
  ASSERT_TRUE(model.ok()) << model.status();
  auto bound = BoundModel::Make(*device_, **model, {kPlanes}, {kPlanes});
  ASSERT_TRUE(bound.ok()) << bound.status();
  const std::atomic<bool> stop{true};
  (*bound)->set_stop(&stop);

  EXPECT_EQ((*bound)->Run().status.code(), absl::StatusCode::kCancelled);
}

// What the emulator does not know is named before any job is tried.
TEST_F(CompoundDeviceTest, AValueThatIsNotKnownIsNamedByTheLoad) {
  rknpu::testing::ProgramSpec spec = rknpu::testing::CopyProgram();
  for (uint64_t& word : spec.commands) {
    if (word == 0x1001000000014084) word = 0x1001800000014084;
  }
  const std::string file = rknpu::testing::Build(spec);

  auto model = device_->Load(
      {.bytes = std::as_bytes(std::span(file)), .options = "", .name = "copy"});

  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(std::string((*model)->info().runnable.message()),
              HasSubstr("layer 'copy': task 0 of core 0 (node 1): DPU "
                        "OUT_CVT_SCALE (0x4084) is 0x80000001"));
}

// 32 atoms are read and written, and nothing is multiplied.
TEST_F(CompoundDeviceTest, LayersSayWhatTheyCost) {
  const std::string file = rknpu::testing::Build(rknpu::testing::CopyProgram());
  auto model = device_->Load(
      {.bytes = std::as_bytes(std::span(file)), .options = "", .name = "copy"});
  ASSERT_TRUE(model.ok()) << model.status();
  const ProgramInfo& program = (*model)->info().programs[0];

  const LayerInfo& layer = program.layers[1];
  EXPECT_EQ(layer.ddr_read, 512U);
  EXPECT_EQ(layer.ddr_bytes, 1024U);
  EXPECT_EQ(layer.macs, 0U);
  EXPECT_EQ(layer.npu_cycles, 32U);
  EXPECT_EQ(layer.ddr_cycles, 32U);
  EXPECT_EQ(layer.modelled, 32);  // at 1 GHz
  EXPECT_EQ(program.modelled, 32);
  EXPECT_GE(program.expected, 32);
}

// The model's constants, and the commands, private bytes and task table of each
// of three cores.
TEST_F(CompoundDeviceTest, AModelPaysForItsCommandsToo) {
  const rknpu::testing::ProgramSpec spec = rknpu::testing::CopyProgram();
  const std::string file = rknpu::testing::Build(spec);
  auto model = device_->Load(
      {.bytes = std::as_bytes(std::span(file)), .options = "", .name = "copy"});
  ASSERT_TRUE(model.ok()) << model.status();

  EXPECT_EQ((*model)->info().weight_size, 512U);
  EXPECT_EQ((*model)->held_weights(),
            512U + 3 * (spec.commands.size() * 8 + 40));
}

// A job with internal memory that the test can look at.
class WatchedRun {
 public:
  WatchedRun(Device& device, const Model& model)
      : device_(device),
        model_(model),
        arena_(device, model.info().programs[0].internal_size) {
    std::memset(arena_.data(), kUntouched, arena_size());
  }

  JobResult Run(const std::vector<TensorBinding>& inputs,
                const std::vector<TensorBinding>& outputs) {
    class Listener final : public JobListener {
     public:
      void OnJobDone(JobResult result) override { kept = std::move(result); }
      JobResult kept;
    } listener;
    JobRequest job;
    job.model = &model_;
    job.inputs = inputs;
    job.outputs = outputs;
    job.internal = arena_.memory();
    job.listener = &listener;
    device_.Submit(job);
    return listener.kept;
  }
  // Bytes of internal memory that were written, from `first` to `end`.
  [[nodiscard]] size_t Written(size_t first, size_t end) const {
    return static_cast<size_t>(end - first -
                               std::count(arena_.data() + first,
                                          arena_.data() + end,
                                          static_cast<std::byte>(kUntouched)));
  }
  [[nodiscard]] size_t arena_size() const {
    return model_.info().programs[0].internal_size;
  }

 private:
  static constexpr int kUntouched = 0x5a;
  Device& device_;
  const Model& model_;
  soft::testing::TestMemory arena_;
};

constexpr TensorFormat kNative = {.type = TensorType::kInt8,
                                  .layout = TensorLayout::kNc1hwc2,
                                  .pass_through = true};

TEST_F(CompoundDeviceTest, MemoryAsTheNpuHasItIsUsedWhereItIs) {
  const std::string file = rknpu::testing::Build(rknpu::testing::CopyProgram());
  auto model = device_->Load(
      {.bytes = std::as_bytes(std::span(file)), .options = "", .name = "copy"});
  ASSERT_TRUE(model.ok()) << model.status();
  soft::testing::TestMemory x(*device_, 512);
  soft::testing::TestMemory y(*device_, 1024);
  for (int i = 0; i < 512; ++i) x.data()[i] = static_cast<std::byte>(i * 37);
  const TensorBinding in = {.memory = x.memory(), .format = kNative};
  const TensorBinding out = {.memory = y.memory(), .format = kNative};
  TensorBinding converted = out;
  converted.format.layout = TensorLayout::kNchw;
  converted.format.pass_through = false;
  WatchedRun run(*device_, **model);

  ASSERT_TRUE(run.Run({in}, {out}).status.ok());

  EXPECT_EQ(run.Written(0, 1536), 0U);
  EXPECT_EQ(std::memcmp(x.data(), y.data(), 512), 0);

  // Each port by itself; and the words that named the program's memory name
  // internal memory again.
  std::memset(y.data(), 0, 1024);
  ASSERT_TRUE(run.Run({in}, {converted}).status.ok());
  EXPECT_EQ(run.Written(0, 512), 0U);
  EXPECT_GT(run.Written(512, 1024), 500U);
  for (int c = 0; c < 16; ++c) {
    for (int p = 0; p < 32; ++p) {
      ASSERT_EQ(y.data()[c * 32 + p], x.data()[p * 16 + c]);
    }
  }
}

TEST_F(CompoundDeviceTest, MemoryThatPortsShareIsConverted) {
  const std::string file = rknpu::testing::Build(rknpu::testing::CopyProgram());
  auto model = device_->Load(
      {.bytes = std::as_bytes(std::span(file)), .options = "", .name = "copy"});
  ASSERT_TRUE(model.ok()) << model.status();
  soft::testing::TestMemory both(*device_, 2048);
  for (int i = 0; i < 512; ++i) both.data()[i] = static_cast<std::byte>(i * 5);
  const TensorBinding in = {.memory = both.memory(), .format = kNative};
  // One line of pixels further on.
  const TensorBinding out = {
      .memory = both.memory(), .offset = 128, .format = kNative};
  WatchedRun run(*device_, **model);

  ASSERT_TRUE(run.Run({in}, {out}).status.ok());

  EXPECT_GT(run.Written(0, 512), 500U);
  for (int i = 0; i < 512; ++i) {
    ASSERT_EQ(both.data()[128 + i], static_cast<std::byte>(i * 5)) << i;
  }
}

TEST_F(CompoundDeviceTest, MemoryThatGoesAwayUnderTheNpuEndsTheJob) {
  const std::string file = rknpu::testing::Build(rknpu::testing::CopyProgram());
  auto model = device_->Load(
      {.bytes = std::as_bytes(std::span(file)), .options = "", .name = "copy"});
  ASSERT_TRUE(model.ok()) << model.status();
  soft::testing::TestMemory x(*device_, 512);
  const base::UniqueFd fd(memfd_create("y", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), 4096), 0);
  const auto y =
      device_->Attach({.fd = fd.get(), .size = 1024}, MemoryAccess::kReadWrite);
  ASSERT_TRUE(y.ok()) << y.status();
  const TensorBinding in = {.memory = x.memory(), .format = kNative};
  const TensorBinding out = {.memory = y->get(), .format = kNative};
  TensorBinding converted = out;
  converted.format.layout = TensorLayout::kNchw;
  converted.format.pass_through = false;
  WatchedRun run(*device_, **model);
  ASSERT_EQ(ftruncate(fd.get(), 0), 0);

  const JobResult first = run.Run({in}, {out});
  const JobResult again = run.Run({in}, {converted});

  EXPECT_EQ(first.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(first.status.message()), HasSubstr("'y' went away"));
  EXPECT_EQ(again.status.code(), absl::StatusCode::kDataLoss);
}

// Bytes that follow from nothing but their place.
void Scatter(std::byte* bytes, size_t count) {
  uint32_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    bytes[i] = static_cast<std::byte>(state >> 24);
  }
}

TEST_F(CompoundDeviceTest, PublishedModelsAnswerTheSameWithoutCopies) {
  const struct {
    const char* file;
  } cases[] = {{"multiple_input_demo_v6_rk3588.rknn"},
               {"mobilenetv2_rk3588.rknn"},
               {"yolov8n_algae_rk3588.rknn"},
               {"ppocrv4_det_rk3588.rknn"}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.file);
    const auto model = Load(one.file);
    if (model == nullptr) GTEST_SKIP() << "no published files in RKNND_SHARED";
    ASSERT_TRUE(model->info().runnable.ok()) << model->info().runnable;
    const ProgramInfo& program = model->info().programs[0];
    std::vector<std::unique_ptr<soft::testing::TestMemory>> memories;
    std::vector<TensorBinding> direct[2], copied[2];
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const TensorAttr& attr = program.native_inputs[i];
      memories.push_back(std::make_unique<soft::testing::TestMemory>(
          *device_, attr.size_with_stride));
      Scatter(memories.back()->data(), attr.size_with_stride);
      const TensorFormat format = {.type = attr.type,
                                   .layout = attr.layout,
                                   .pass_through = true,
                                   .w_stride = attr.w_stride};
      direct[0].push_back(
          {.memory = memories.back()->memory(), .format = format});
      // A byte off the NPU's multiple of 16.
      memories.push_back(std::make_unique<soft::testing::TestMemory>(
          *device_, attr.size_with_stride + 1));
      Scatter(memories.back()->data() + 1, attr.size_with_stride);
      copied[0].push_back(
          {.memory = memories.back()->memory(), .offset = 1, .format = format});
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const TensorAttr& attr = program.native_outputs[i];
      const TensorFormat format = {
          .type = attr.type, .layout = attr.layout, .pass_through = true};
      for (auto* bindings : {&direct[1], &copied[1]}) {
        const uint64_t offset = bindings == &copied[1] ? 1 : 0;
        memories.push_back(std::make_unique<soft::testing::TestMemory>(
            *device_, attr.size_with_stride + offset));
        bindings->push_back({.memory = memories.back()->memory(),
                             .offset = offset,
                             .format = format});
      }
    }
    WatchedRun run(*device_, *model);

    const JobResult without = run.Run(direct[0], direct[1]);
    const JobResult with = run.Run(copied[0], copied[1]);

    ASSERT_TRUE(without.status.ok()) << without.status;
    ASSERT_TRUE(with.status.ok()) << with.status;
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const size_t first = memories.size() - 2 * (program.outputs.size() - i);
      // Of what the model has; channels beyond that may be anything.
      const TensorAttr& attr = program.outputs[i];
      const TensorAttr& native = program.native_outputs[i];
      const std::byte* const a = memories[first]->data();
      const std::byte* const b = memories[first + 1]->data() + 1;
      if (native.layout != TensorLayout::kNc1hwc2) {
        EXPECT_EQ(std::memcmp(a, b, native.size), 0);
        continue;
      }
      const size_t pixels = size_t{attr.dims[2]} * attr.dims[3];
      size_t different = 0;
      for (size_t c = 0; c < attr.dims[1]; ++c) {
        for (size_t p = 0; p < pixels; ++p) {
          const size_t at = (c / 16 * pixels + p) * 16 + c % 16;
          different += a[at] != b[at] ? 1 : 0;
        }
      }
      EXPECT_EQ(different, 0U) << attr.name;
    }
  }
}

// A task that leaves its memory is refused before any job.
TEST_F(CompoundDeviceTest, AProgramThatLeavesItsMemoryDoesNotRun) {
  rknpu::testing::ProgramSpec spec = rknpu::testing::CopyProgram();
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
  } cases[] = {{"multiple_input_demo_rk3588.rknn", "container version 2"},
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

// It is the program that computes it, part by part.
TEST_F(CompoundDeviceTest, WhatAProgramHasToBringIsNamed) {
  const auto model = Load("dual_residual_rk3588.rknn");
  if (model == nullptr) GTEST_SKIP() << "no published files in RKNND_SHARED";

  EXPECT_TRUE(model->info().runnable.ok());
  EXPECT_THAT(model->info().custom_operators, HasSubstr("cstDualResidual"));
}

TEST_F(CompoundDeviceTest, AResetEndsAndTells) {
  bool done = false;
  device_->Reset([&](const absl::Status& status) { done = status.ok(); });

  EXPECT_TRUE(done);
  EXPECT_EQ(device_->resets(), 1U);
}

}  // namespace
}  // namespace rknnd::driver
