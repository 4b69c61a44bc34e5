// Compiled models on an NPU behind the kernel's driver: the same answers as the
// emulator's, few calls, and what becomes of a job whose core does not end it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "driver/compound_device.h"
#include "driver/open_device.h"
#include "driver/rknpu/file/testing/shared_programs.h"
#include "driver/rknpu/kernel/kernel_backend.h"
#include "driver/rknpu/kernel/testing/fake_kernel.h"
#include "driver/rknpu/testing/task_writer.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/run_model.h"
#include "driver/testing/kernel_npu.h"

namespace rknnd::driver {
namespace {

using rknpu::testing::FakeKernel;
using rknpu::testing::ReadShared;
using rknpu::testing::SubmitFault;
using soft::testing::BoundModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace uapi = rknpu::uapi;

class KernelDeviceTest : public ::testing::Test {
 protected:
  void Open() {
    auto soft = soft::OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
    ASSERT_TRUE(soft.ok());
    static_cast<soft::SoftDevice&>(**soft).set_cache_calls(&calls_);
    auto npu = rknpu::KernelBackend::Open(
        kernel_, {"/dev/dri/renderD129", true, ""}, {});
    ASSERT_TRUE(npu.ok()) << npu.status();
    CompoundParts parts;
    parts.soft = *std::move(soft);
    parts.platform = "rk3588";
    parts.backend = *std::move(npu);
    parts.npu = {"rknpu", "0.9.8"};
    device_ = MakeCompoundDevice(std::move(parts), nullptr);
  }
  // The hand-written program with memory for it.
  void Load() {
    const std::string file =
        rknpu::testing::Build(rknpu::testing::CopyProgram());
    auto model = device_->Load({.bytes = std::as_bytes(std::span(file)),
                                .options = "",
                                .name = "copy"});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    ASSERT_TRUE(model_->info().runnable.ok()) << model_->info().runnable;
    const TensorFormat planes = {.type = TensorType::kInt8,
                                 .layout = TensorLayout::kNchw};
    auto bound = BoundModel::Make(*device_, *model_, {planes}, {planes});
    ASSERT_TRUE(bound.ok()) << bound.status();
    bound_ = *std::move(bound);
  }
  // Runs it on other pixels each time. Output is input.
  absl::Status RunAndCompare(uint32_t core) {
    ++round_;
    for (int i = 0; i < 512; ++i) {
      bound_->input(0).data()[i] = static_cast<std::byte>(i * 37 + round_);
    }
    const JobResult result = bound_->Run(core);
    if (result.status.ok()) {
      EXPECT_EQ(
          std::memcmp(bound_->input(0).data(), bound_->output(0).data(), 512),
          0);
    }
    return result.status;
  }

  FakeKernel kernel_;
  testing::MemfdsAreDmaBufs calls_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<BoundModel> bound_;
  int round_ = 0;
};

TEST_F(KernelDeviceTest, AProgramRunsOnEachCore) {
  Open();
  Load();
  for (const uint32_t core : {0U, 1U, 2U, 0U}) {
    EXPECT_TRUE(RunAndCompare(core).ok()) << core;
  }
  EXPECT_EQ(device_->info().kind, "rknpu");
  EXPECT_EQ(device_->info().driver, "0.9.8");
  EXPECT_THAT(kernel_.complaints(), IsEmpty());
}

TEST_F(KernelDeviceTest, AFrameIsOneSubmitAndNoCallForCommands) {
  Open();
  Load();
  EXPECT_TRUE(RunAndCompare(1).ok());
  kernel_.TakeCount(uapi::kSubmit);
  kernel_.TakeCount(uapi::kMemSync);
  kernel_.TakeCount(uapi::kMemCreate);
  const uint64_t calls = kernel_.calls();

  EXPECT_TRUE(RunAndCompare(1).ok());

  EXPECT_EQ(kernel_.TakeCount(uapi::kSubmit), 1U);
  EXPECT_EQ(kernel_.TakeCount(uapi::kMemCreate), 0U);
  // Another driver's memory is no matter of this one's caches.
  EXPECT_EQ(kernel_.TakeCount(uapi::kMemSync), 0U);
  EXPECT_EQ(kernel_.calls() - calls, 1U);
}

TEST_F(KernelDeviceTest, AHangIsRunAgainOnce) {
  Open();
  Load();
  kernel_.Expect({SubmitFault::kHang});
  EXPECT_TRUE(RunAndCompare(0).ok());
  EXPECT_EQ(device_->resets(), 1U);
  // Twice, with the self-test of three cores between.
  kernel_.Expect({SubmitFault::kHang, SubmitFault::kNone, SubmitFault::kNone,
                  SubmitFault::kNone, SubmitFault::kHang});
  EXPECT_EQ(RunAndCompare(0).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(KernelDeviceTest, AModelThatHangsThreeTimesIsGivenUp) {
  Open();
  Load();
  for (int i = 0; i < 3; ++i) {
    kernel_.Expect({SubmitFault::kHang});
    EXPECT_TRUE(RunAndCompare(0).ok());
  }
  EXPECT_EQ(RunAndCompare(0).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(KernelDeviceTest, WhoIsResetByAnotherProgramRunsAgain) {
  Open();
  Load();
  kernel_.Expect({SubmitFault::kReset});
  EXPECT_TRUE(RunAndCompare(2).ok());
  EXPECT_TRUE(RunAndCompare(2).ok());
}

TEST_F(KernelDeviceTest, ADriverThatGoesAwayFailsTheJobAndSaysSo) {
  Open();
  Load();
  kernel_.Expect({SubmitFault::kGone});
  const absl::Status status = RunAndCompare(0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("driver has gone away"));
  EXPECT_TRUE(RunAndCompare(0).ok()) << "it is there again";
  EXPECT_EQ(device_->resets(), 0U);
  EXPECT_THAT(kernel_.complaints(), IsEmpty());
}

// What a board's suspension does to the jobs of all cores: none of them ends,
// and what the NPU was told is gone.
TEST_F(KernelDeviceTest, JobsThatASuspensionEndedRunAgain) {
  Open();
  Load();
  for (const uint32_t core : {0U, 1U, 2U}) {
    kernel_.Expect({SubmitFault::kHang});
    EXPECT_TRUE(RunAndCompare(core).ok()) << core;
  }
  EXPECT_EQ(device_->resets(), 3U);
  EXPECT_THAT(kernel_.complaints(), IsEmpty());
}

TEST_F(KernelDeviceTest, AnOperatorsResetReachesTheNpu) {
  Open();
  Load();
  const uint64_t before = kernel_.resets();
  bool done = false;
  device_->Reset([&done](const absl::Status&) { done = true; });
  EXPECT_TRUE(done);
  EXPECT_TRUE(RunAndCompare(0).ok());
  EXPECT_EQ(kernel_.resets(), before + 1);
}

TEST_F(KernelDeviceTest, NothingIsLeftBehind) {
  Open();
  Load();
  EXPECT_TRUE(RunAndCompare(0).ok());
  bound_.reset();
  model_.reset();
  device_.reset();
  EXPECT_EQ(kernel_.buffers(), 0U);
  EXPECT_EQ(kernel_.open_files(), 0U);
  EXPECT_THAT(kernel_.complaints(), IsEmpty());
}

TEST_F(KernelDeviceTest, APublishedNetworkIsRightToTheByteOnEachCoreAndAll) {
  const std::vector<std::byte> file = ReadShared("mobilenetv2_rk3588.rknn");
  const std::vector<std::byte> pixels =
      ReadShared("vectors/mobilenetv2_chelsea_in_u8.bin");
  const std::vector<std::byte> answer =
      ReadShared("vectors/mobilenetv2_chelsea_out_i8.bin");
  if (file.empty()) GTEST_SKIP() << "it is not in RKNND_SHARED";
  Open();
  const auto model =
      device_->Load({.bytes = file, .options = "", .name = "mobilenet"});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto bound = BoundModel::Make(
      *device_, **model,
      {{.type = TensorType::kUint8, .layout = TensorLayout::kNhwc}},
      {{.type = TensorType::kInt8, .layout = TensorLayout::kNchw}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  std::memcpy((*bound)->input(0).data(), pixels.data(), pixels.size());
  // 6 are no cores that the driver starts together: one of them runs it.
  for (const uint32_t cores : {1U, 2U, 4U, 3U, 7U, 6U}) {
    std::memset((*bound)->output(0).data(), 0, answer.size());
    const JobResult result = (*bound)->RunGang(cores);
    ASSERT_TRUE(result.status.ok()) << cores << " " << result.status;
    EXPECT_EQ(
        std::memcmp((*bound)->output(0).data(), answer.data(), answer.size()),
        0)
        << cores;
  }
  EXPECT_THAT(kernel_.complaints(), IsEmpty());
}

// All memory is the driver's and cached: what is not synchronised is rubbish.
TEST(CachedMemoryTest, APublishedNetworkIsRightToTheByteWithFewCalls) {
  const std::vector<std::byte> file = ReadShared("mobilenetv2_rk3588.rknn");
  if (file.empty()) GTEST_SKIP() << "it is not in RKNND_SHARED";
  FakeKernel kernel;
  testing::MemfdsAreDmaBufs calls;
  auto opened = testing::KernelNpu::Open(kernel, &calls);
  ASSERT_TRUE(opened.ok()) << opened.status();
  testing::KernelNpu& npu = **opened;
  ASSERT_TRUE(npu.Load(file).ok());
  for (const std::string picture : {"chelsea", "coffee"}) {
    const std::vector<std::byte> pixels =
        ReadShared("vectors/mobilenetv2_" + picture + "_in_u8.bin");
    const std::vector<std::byte> answer =
        ReadShared("vectors/mobilenetv2_" + picture + "_out_i8.bin");
    std::copy(pixels.begin(), pixels.end(), npu.input().begin());
    for (const uint32_t cores : {1U, 4U, 3U, 7U}) {
      const absl::Status status = npu.Run(cores);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_TRUE(
          std::equal(answer.begin(), answer.end(), npu.output().begin()))
          << picture << " " << cores;
    }
  }
  EXPECT_TRUE(npu.Run(1).ok());
  kernel.TakeCount(uapi::kSubmit);
  kernel.TakeCount(uapi::kMemSync);
  const uint64_t before = kernel.calls();
  EXPECT_TRUE(npu.Run(1).ok());
  EXPECT_EQ(kernel.TakeCount(uapi::kSubmit), 1U);
  // Of the input, of what the CPU's node at the end reads (two) and writes, and
  // of the output.
  EXPECT_EQ(kernel.TakeCount(uapi::kMemSync), 5U);
  EXPECT_EQ(kernel.calls() - before, 6U);
  EXPECT_THAT(kernel.complaints(), IsEmpty());
}

std::vector<std::string> LinesOf(FakeKernel& kernel, const std::string& kind,
                                 absl::Status* status) {
  std::vector<std::string> lines;
  const auto opened = OpenDeviceOn(
      kernel, {.kind = kind, .soc = "rk3588"},
      [&lines](const std::string& line) { lines.push_back(line); });
  *status = opened.status();
  return lines;
}

TEST(OpenDeviceTest, AutoSaysWhatItTookAndWhy) {
  absl::Status status;
  FakeKernel npu;
  EXPECT_THAT(LinesOf(npu, "auto", &status),
              ElementsAre(HasSubstr("rknpu 0.9.8 at '/dev/dri/renderD129'")));
  EXPECT_TRUE(status.ok()) << status;
  FakeKernel none;
  none.nodes.clear();
  EXPECT_THAT(LinesOf(none, "auto", &status),
              ElementsAre(HasSubstr("no driver for an NPU")));
  EXPECT_TRUE(status.ok()) << status;
  FakeKernel rocket;
  rocket.nodes = {{"/dev/accel/accel0", {"rocket", "rocket DRM"}}};
  EXPECT_THAT(LinesOf(rocket, "auto", &status),
              ElementsAre(HasSubstr("mainline driver 'rocket'")));
  EXPECT_TRUE(status.ok()) << status;
}

TEST(OpenDeviceTest, WhoAsksForTheNpuIsToldWhyThereIsNone) {
  absl::Status status;
  FakeKernel old;
  old.version = 402;
  LinesOf(old, "rknpu", &status);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0.4.2 is too old"));
  FakeKernel none;
  none.nodes.clear();
  LinesOf(none, "rknpu", &status);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
}

TEST(OpenDeviceTest, SoftDoesNotLookForAnNpu) {
  absl::Status status;
  FakeKernel npu;
  EXPECT_THAT(LinesOf(npu, "soft", &status), IsEmpty());
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(npu.calls(), 0U);
}

TEST(OpenDeviceTest, ItsHeapServesFirstUnlessOthersAreConfigured) {
  FakeKernel kernel;
  auto opened =
      OpenDeviceOn(kernel, {.kind = "auto", .soc = "rk3588"}, nullptr);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_NE(opened->heap, nullptr);
  const Heaps heaps = ProbeHeaps({}, std::move(opened->heap));
  EXPECT_EQ(heaps.Allocate({.size = 4096})->heap, "rknpu");
  auto again = OpenDeviceOn(kernel, {.kind = "auto", .soc = "rk3588"}, nullptr);
  const Heaps configured =
      ProbeHeaps({.order = {"memfd"}}, std::move(again->heap));
  EXPECT_EQ(configured.Allocate({.size = 4096})->heap, "memfd");
}

}  // namespace
}  // namespace rknnd::driver
