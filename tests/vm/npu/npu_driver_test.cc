// The back end of the kernel's driver on a real kernel with the stand-in for
// that driver, without a daemon between them: memory, faults, calls a frame.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "driver/rknpu/file/testing/shared_programs.h"
#include "driver/rknpu/kernel/kernel_calls.h"
#include "driver/testing/kernel_npu.h"
#include "tests/vm/npu/standin_counts.h"

namespace rknnd::vm {
namespace {

using driver::testing::KernelNpu;
using rknpu::testing::ReadShared;

class NpuDriverTest : public testing::Test {
 protected:
  // The process that computes; it is beside this program.
  NpuDriverTest() {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    const std::string npu = self.substr(0, self.rfind('/')) + "/vm_npu";
    npu_ = fork();
    if (npu_ != 0) return;
    execl(npu.c_str(), npu.c_str(), nullptr);
    _exit(127);
  }
  ~NpuDriverTest() override {
    SetStandin("random_faults", 0);
    npu_device_.reset();
    kill(npu_, SIGKILL);
    waitpid(npu_, nullptr, 0);
    ExpectNoBreach(before_);
  }

  // False: the network is not there.
  bool Load() {
    const std::vector<std::byte> file = ReadShared("mobilenetv2_rk3588.rknn");
    if (file.empty()) return false;
    auto opened = KernelNpu::Open(*kernel_, nullptr);
    EXPECT_TRUE(opened.ok()) << opened.status();
    npu_device_ = *std::move(opened);
    const absl::Status status = npu_device_->Load(file);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok();
  }
  absl::Status RunPicture(const std::string& picture, uint32_t cores) {
    const std::vector<std::byte> pixels =
        ReadShared("vectors/mobilenetv2_" + picture + "_in_u8.bin");
    const std::vector<std::byte> answer =
        ReadShared("vectors/mobilenetv2_" + picture + "_out_i8.bin");
    std::copy(pixels.begin(), pixels.end(), npu_device_->input().begin());
    absl::Status status = npu_device_->Run(cores);
    if (status.ok()) {
      EXPECT_TRUE(std::equal(answer.begin(), answer.end(),
                             npu_device_->output().begin()))
          << picture << " on cores " << cores;
    }
    return status;
  }

  const StandinCounts before_ = ReadStandin();
  const std::unique_ptr<rknpu::KernelCalls> kernel_ = rknpu::MakeKernelCalls();
  std::unique_ptr<KernelNpu> npu_device_;
  pid_t npu_ = -1;
};

TEST_F(NpuDriverTest, AnswersAreRightToTheByteOnEachCoreAndAll) {
  if (!Load()) GTEST_SKIP() << "mobilenetv2_rk3588.rknn is not here";
  for (const char* picture : {"chelsea", "coffee"}) {
    for (const uint32_t cores : {1U, 2U, 4U, 3U, 7U}) {
      const absl::Status status = RunPicture(picture, cores);
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

TEST_F(NpuDriverTest, AFrameIsOneSubmitAndTheSyncsOfItsPorts) {
  if (!Load()) GTEST_SKIP() << "mobilenetv2_rk3588.rknn is not here";
  ASSERT_TRUE(RunPicture("chelsea", 1).ok());
  const StandinCounts before = ReadStandin();
  constexpr uint64_t kFrames = 5;
  for (uint64_t i = 0; i < kFrames; ++i) {
    ASSERT_TRUE(RunPicture("chelsea", 1).ok());
  }
  const StandinCounts after = ReadStandin();
  EXPECT_EQ(after.at("submit") - before.at("submit"), kFrames);
  EXPECT_EQ(after.at("sync") - before.at("sync"), 5 * kFrames);
  for (const char* other : {"action", "create", "map", "destroy"}) {
    EXPECT_EQ(after.at(other), before.at(other)) << other;
  }
}

TEST_F(NpuDriverTest, EachFaultIsALateFrame) {
  if (!Load()) GTEST_SKIP() << "mobilenetv2_rk3588.rknn is not here";
  for (const char* fault : {"hang", "wrong_status", "lose_interrupt",
                            "counter_zero", "reset_under"}) {
    const uint64_t resets = ReadStandin().at("resets");
    SetStandin(fault, 1);
    EXPECT_TRUE(RunPicture("chelsea", 2).ok()) << fault;
    EXPECT_GT(ReadStandin().at("resets"), resets) << fault;
    EXPECT_TRUE(RunPicture("coffee", 2).ok()) << fault;
  }
}

TEST_F(NpuDriverTest, ACoreThatDiesIsStoodInForByAnother) {
  if (!Load()) GTEST_SKIP() << "mobilenetv2_rk3588.rknn is not here";
  SetStandin("dead_cores", 2);
  EXPECT_TRUE(RunPicture("chelsea", 2).ok());
  EXPECT_TRUE(RunPicture("coffee", 2).ok());
  EXPECT_TRUE(RunPicture("coffee", 7).ok()) << "on those that are left";
  SetStandin("dead_cores", 0);
}

TEST_F(NpuDriverTest, FaultsAtRandomLoseNoFrame) {
  if (!Load()) GTEST_SKIP() << "mobilenetv2_rk3588.rknn is not here";
  SetStandin("random_faults", 60);
  int given_up = 0;
  for (int i = 0; i < 40; ++i) {
    const absl::Status status = RunPicture("chelsea", 1U << i % 3);
    // By rule: a job that hung twice, and a model with three hangs on end.
    if (absl::IsDeadlineExceeded(status)) {
      ++given_up;
    } else if (absl::IsFailedPrecondition(status)) {
      SetStandin("random_faults", 0);
      ASSERT_TRUE(Load());
      SetStandin("random_faults", 60);
    } else {
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  SetStandin("random_faults", 0);
  EXPECT_LT(given_up, 20);
  EXPECT_TRUE(RunPicture("coffee", 1).ok());
}

}  // namespace
}  // namespace rknnd::vm
