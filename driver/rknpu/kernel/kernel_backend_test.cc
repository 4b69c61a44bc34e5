// The policy around jobs: resets, self-tests, who runs where, and every failure
// of every call.

#include "driver/rknpu/kernel/kernel_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/posix/mapping.h"
#include "driver/rknpu/kernel/testing/fake_kernel.h"

namespace rknnd::rknpu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using testing::FakeKernel;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SubmitFault;

const NpuNode kNode = {"/dev/dri/renderD129", true, ""};

// A table of two tasks that no NPU knows how to run: where it comes to running
// them the fake says so; faults come before.
class KernelBackendTest : public ::testing::Test {
 protected:
  void Open(uint32_t cores = 3) {
    auto backend = KernelBackend::Open(
        kernel_, kNode,
        {.cores = cores,
         .log = [this](const std::string& line) { lines_.push_back(line); }});
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
    auto commands = backend_->Allocate(4096);
    ASSERT_TRUE(commands.ok()) << commands.status();
    commands_ = *std::move(commands);
    const std::vector<TaskEntry> tasks(2, {.enable_mask = 0x18, .words = 1});
    table_ = *backend_->PlaceTable(tasks, commands_->address());
  }
  absl::Status Run(std::vector<uint32_t> cores) {
    std::vector<CoreTasks> parts;
    parts.reserve(cores.size());
    for (const uint32_t core : cores) parts.push_back({core, {0, 2}});
    return backend_->Run({.table = table_.get(), .cores = parts, .memory = {}});
  }

  FakeKernel kernel_;
  std::vector<std::string> lines_;
  std::unique_ptr<KernelBackend> backend_;
  std::unique_ptr<PlacedMemory> commands_;
  std::unique_ptr<PlacedTasks> table_;
};

TEST_F(KernelBackendTest, EachCorePassesItsSelfTestBeforeItServes) {
  Open();
  EXPECT_EQ(kernel_.TakeCount(uapi::kSubmit), 3U);
  EXPECT_EQ(backend_->usable_cores(), 7U);
  EXPECT_THAT(kernel_.complaints(), IsEmpty());
}

TEST_F(KernelBackendTest, ACoreThatFailsIsNotUsedAndSaid) {
  kernel_.dead_cores = {1};
  kernel_.version = 902;
  Open();

  EXPECT_EQ(backend_->usable_cores(), 5U);
  EXPECT_FALSE(backend_->CanGang(3));
  EXPECT_FALSE(backend_->CanGang(7));
  EXPECT_THAT(lines_, Contains(AllOf(HasSubstr("core 1"), HasSubstr("0.9.2"),
                                     HasSubstr("0.9.6 or later"))));
  // Its jobs run on another, which finds nothing to run in them.
  kernel_.Expect({SubmitFault::kCounterZero});
  EXPECT_EQ(Run({1}).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(backend_->usable_cores(), 5U);
}

TEST_F(KernelBackendTest, WithoutAnyCoreThereIsNoNpu) {
  kernel_.dead_cores = {0, 1, 2};
  const auto backend = KernelBackend::Open(kernel_, kNode, {});

  EXPECT_EQ(backend.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(kernel_.open_files(), 0U);
}

TEST(KernelBackendOpenTest, AnNpuWithoutCoresOrWithTooManyIsRefused) {
  for (const uint32_t cores : {0U, 4U}) {
    FakeKernel kernel;
    const auto opened = KernelBackend::Open(kernel, kNode, {.cores = cores});
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(kernel.calls(), 0U);
  }
}

TEST_F(KernelBackendTest, AHangCostsOneResetAndCoresAreTestedAgain) {
  Open();
  kernel_.TakeCount(uapi::kSubmit);
  kernel_.Expect({SubmitFault::kHang});

  const absl::Status status = Run({2});

  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("core 2"), HasSubstr("2000 ms")));
  EXPECT_EQ(kernel_.resets(), 1U) << "the driver's own is enough";
  EXPECT_EQ(backend_->resets(), 1U);
  EXPECT_EQ(kernel_.TakeCount(uapi::kSubmit), 4U);
  EXPECT_EQ(backend_->usable_cores(), 7U);
}

TEST_F(KernelBackendTest, SuccessWithoutTasksIsAFailure) {
  Open();
  kernel_.Expect({SubmitFault::kCounterZero});

  const absl::Status status = Run({0});

  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0 of 2"));
  EXPECT_EQ(kernel_.resets(), 1U);
}

TEST_F(KernelBackendTest, WhoIsResetByOthersMayRunAgain) {
  Open();
  kernel_.Expect({SubmitFault::kReset});

  EXPECT_EQ(Run({0}).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(backend_->usable_cores(), 7U);
  EXPECT_EQ(kernel_.resets(), 0U) << "two daemons would reset each other";
}

TEST_F(KernelBackendTest, ACoreThatIsLostAfterAResetStaysLost) {
  Open();
  kernel_.Expect({SubmitFault::kHang, SubmitFault::kHang, SubmitFault::kNone,
                  SubmitFault::kNone, SubmitFault::kHang});

  EXPECT_EQ(Run({0}).code(), absl::StatusCode::kDeadlineExceeded);

  EXPECT_EQ(backend_->usable_cores(), 6U);
  EXPECT_TRUE(backend_->Reset().ok());
  EXPECT_EQ(backend_->usable_cores(), 6U);
  EXPECT_THAT(lines_, Contains(HasSubstr("until rknnd starts again")));
}

TEST_F(KernelBackendTest, WhatWasNotBegunNeedsNoReset) {
  Open();
  kernel_.Expect({SubmitFault::kMemory, SubmitFault::kGone});

  EXPECT_EQ(Run({0}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Run({0}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(kernel_.resets(), 0U);
}

TEST_F(KernelBackendTest, CoresThatTheDriverNeverStartsAreNotAsked) {
  Open();
  EXPECT_FALSE(backend_->CanGang(5));
  EXPECT_FALSE(backend_->CanGang(6));
  EXPECT_TRUE(backend_->CanGang(3));
  EXPECT_TRUE(backend_->CanGang(7));
  EXPECT_EQ(Run({0, 2}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Run({3}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Run({}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(kernel_.complaints(), IsEmpty());
}

TEST_F(KernelBackendTest, ARangeOutsideTheTableIsRefused) {
  Open();
  const CoreTasks beyond = {0, {1, 2}};
  const CoreTasks none = {0, {0, 0}};
  EXPECT_FALSE(
      backend_
          ->Run({.table = table_.get(), .cores = {&beyond, 1}, .memory = {}})
          .ok());
  EXPECT_FALSE(
      backend_->Run({.table = table_.get(), .cores = {&none, 1}, .memory = {}})
          .ok());
}

TEST_F(KernelBackendTest, AJobThatNobodyWantsIsNotSubmitted) {
  Open();
  kernel_.TakeCount(uapi::kSubmit);
  const std::atomic<bool> stop{true};
  const CoreTasks part = {0, {0, 2}};

  EXPECT_TRUE(absl::IsCancelled(backend_->Run({.table = table_.get(),
                                               .cores = {&part, 1},
                                               .memory = {},
                                               .stop = &stop})));
  EXPECT_EQ(kernel_.TakeCount(uapi::kSubmit), 0U);
}

// Singles on all cores, gangs and resets at once: the fake complains of two
// jobs on a core, and of gangs beside others.
TEST_F(KernelBackendTest, OneJobACoreAndGangsAlone) {
  Open();
  std::vector<SubmitFault> faults;
  for (int i = 0; i < 400; ++i) {
    faults.push_back(i % 3 == 0 ? SubmitFault::kReset : SubmitFault::kMemory);
  }
  kernel_.Expect(faults);
  std::atomic<int> left{180};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t, &left] {
      while (left.fetch_sub(1) > 0) {
        const absl::Status status = t < 3 ? Run({t}) : Run({0, 1, 2});
        EXPECT_FALSE(status.ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(kernel_.complaints(), IsEmpty());
}

TEST_F(KernelBackendTest, ItsHeapsMemoryIsReachedWithoutACopy) {
  Open();
  const auto heap = backend_->MakeHeap();
  const auto memory = heap->Allocate(5000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->size, 8192U);
  std::vector<std::byte> mapped(8192);
  const auto kept = backend_->Import(memory->fd.get());
  EXPECT_NE(kept, nullptr);
  kernel_.TakeCount(uapi::kMemCreate);

  const auto placed = backend_->PlaceDmaBuf(memory->fd.get(), 4096,
                                            std::span(mapped).first(4096));

  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(kernel_.TakeCount(uapi::kMemCreate), 0U) << "known already";
  EXPECT_EQ((*placed)->address() % 4096, 0U);
  EXPECT_FALSE(
      backend_
          ->PlaceDmaBuf(memory->fd.get(), 4097, std::span(mapped).first(4096))
          .ok());
  EXPECT_EQ(backend_->PlaceDmaBuf(-1, 0, mapped).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(KernelBackendTest, ItsHeapGivesZeroedSram) {
  kernel_.sram = 8192;
  Open();
  const auto heap = backend_->MakeHeap();
  const auto memory = heap->AllocateWithSram(16384, 4096);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->sram, 4096U);
  const auto mapping = base::Mapping::OfFd(memory->fd.get(), 0, 16384,
                                           base::Mapping::Access::kRead);
  ASSERT_TRUE(mapping.ok());
  EXPECT_THAT(mapping->bytes(), ::testing::Each(std::byte{0}));
  EXPECT_EQ(heap->Allocate(16384)->sram, 0U);
}

// Opening, memory, a table and a job, with each call failing in each way: an
// error, nothing left behind, and no call that crashes a kernel.
TEST(KernelFaultsTest, EachCallMayFailWithEachError) {
  const auto use = [](FakeKernel& kernel) {
    auto opened = KernelBackend::Open(kernel, kNode, {});
    if (!opened.ok()) return;
    KernelBackend& backend = **opened;
    const auto memory = backend.Allocate(4096);
    if (!memory.ok()) return;
    const TaskEntry task = {.enable_mask = 0x18, .words = 1};
    const auto table = backend.PlaceTable({&task, 1}, (*memory)->address());
    if (!table.ok()) return;
    (void)backend.Sync(**memory, 0, 4096, SyncSide::kToNpu);
    const CoreTasks part = {0, {0, 1}};
    kernel.Expect({SubmitFault::kReset});
    EXPECT_FALSE(
        backend.Run({.table = table->get(), .cores = {&part, 1}, .memory = {}})
            .ok());
    (void)backend.Reset();
  };
  FakeKernel good;
  use(good);
  const uint64_t calls = good.calls();
  ASSERT_GT(calls, 40U);
  for (uint64_t call = 0; call < calls; ++call) {
    for (const int error :
         {EPERM,  ENOENT, EINTR,  EIO,       ENXIO,     EBADF,  EAGAIN,
          ENOMEM, EACCES, EFAULT, EBUSY,     ENODEV,    EINVAL, EMFILE,
          ENOTTY, ENOSPC, ENOSYS, ETIMEDOUT, ECANCELED, 512}) {
      FakeKernel kernel;
      kernel.FailCall(call, error);
      use(kernel);
      EXPECT_EQ(kernel.open_files(), 0U) << call << " " << error;
      EXPECT_THAT(kernel.complaints(), IsEmpty()) << call << " " << error;
    }
  }
}

}  // namespace
}  // namespace rknnd::rknpu
