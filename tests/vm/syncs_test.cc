// DMA_BUF_IOCTL_SYNC around jobs: issued where another device may have written
// or will read, left out where nothing changed sides, and counted as the kernel
// counts.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/vm/guest_test.h"

namespace rknnd::vm {
namespace {

using integration::ClientProcess;
using integration::MakeRelu;
using integration::TestModel;

constexpr size_t kSyncedPage = 4096;
constexpr uint64_t kRuns = 10;

class SyncsTest : public GuestTest {
 protected:
  void SetUp() override {
    StartDaemon();
    model_ = MakeRelu(folder());  // 16 numbers in, 16 out
    client_ = StartClient();
  }

  void Init(const std::string& context, const std::string& flags = "0") {
    ASSERT_TRUE(
        Done(client_->Do("init " + context + " " + model_.path + " " + flags)));
  }
  void Bind(const std::string& context, const std::string& in,
            const std::string& out) {
    ASSERT_TRUE(Done(client_->Do("bind " + context + " " + in + " in 0")));
    ASSERT_TRUE(Done(client_->Do("bind " + context + " " + out + " out 0")));
  }

  // Runs the contexts in turn, and expects so many calls for each round.
  void ExpectPerRound(const std::vector<std::string>& contexts, uint64_t done,
                      uint64_t skipped) {
    for (const std::string& context : contexts) {
      ASSERT_TRUE(Done(client_->Do("run " + context)));
    }
    const Syncs before = CountSyncs();
    const KernelSyncs kernel_before = CountKernelSyncs();
    for (uint64_t i = 0; i < kRuns; ++i) {
      for (const std::string& context : contexts) {
        ASSERT_TRUE(Done(client_->Do("run " + context)));
      }
    }
    const KernelSyncs kernel = CountKernelSyncs();
    const Syncs after = CountSyncs();
    EXPECT_EQ(after.done - before.done, kRuns * done);
    EXPECT_EQ(after.skipped - before.skipped, kRuns * skipped);
    EXPECT_EQ(kernel.begun - kernel_before.begun, kRuns * done);
    EXPECT_EQ(kernel.calls - kernel_before.calls, 2 * kRuns * done);
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
};

TEST_F(SyncsTest, MemoryOfOtherDevicesIsSynchronisedOnBothSidesOfEachJob) {
  const auto giver = StartGiver({"prime", std::to_string(kSyncedPage), "2"});
  Init("a");
  ASSERT_TRUE(Done(Import(*client_, *giver, 0, "in a", kSyncedPage)));
  ASSERT_TRUE(Done(Import(*client_, *giver, 1, "out a", kSyncedPage)));
  Bind("a", "in", "out");
  ExpectPerRound({"a"}, 2, 0);
}

TEST_F(SyncsTest, WhatAJobWroteNeedsNoneForTheNextJob) {
  Init("a");
  Init("b");
  for (const std::string name : {"x", "y", "z"}) {
    ASSERT_TRUE(Done(client_->Do("create " + name + " a 64")));
  }
  Bind("a", "x", "y");
  Bind("b", "y", "z");
  // x is read, y and z are written; y is read by the job behind its writer.
  ExpectPerRound({"a", "b"}, 3, 1);
}

TEST_F(SyncsTest, ProgramThatSynchronisesByItselfIsLeftToIt) {
  Init("a", std::to_string(RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE |
                           RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE));
  ASSERT_TRUE(Done(client_->Do("create in a 64")));
  ASSERT_TRUE(Done(client_->Do("create out a 64")));
  Bind("a", "in", "out");
  ExpectPerRound({"a"}, 0, 2);
}

}  // namespace
}  // namespace rknnd::vm
