// Tests of memory whose CPU and device do not see each other's writes.

#include "driver/faults/incoherent_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "driver/faults/faulty_device.h"
#include "driver/faults/testing/plain_device.h"

namespace rknnd::driver {
namespace {

using testing::kPlainBytes;
using testing::PlainDevice;
using testing::SharedBytes;

class Ignore final : public JobListener {
 public:
  void OnJobDone(JobResult done) override { EXPECT_TRUE(done.status.ok()); }
};

class IncoherentMemoryTest : public ::testing::Test {
 protected:
  void Begin() {
    const auto set = device_.faults().Set({.kind = FaultKind::kIncoherent});
    ASSERT_TRUE(set.ok()) << set.status();
    fault_ = set->id;
  }
  void End() { EXPECT_TRUE(device_.faults().Clear(fault_).ok()); }

  // output = input + 1.
  void Run(const SharedBytes& in, const SharedBytes& out, bool program_syncs,
           uint64_t in_offset = 0, uint64_t out_offset = 0) {
    const TensorBinding input{in.memory.get(), in_offset, {}, program_syncs};
    const TensorBinding output{out.memory.get(), out_offset, {}, program_syncs};
    JobRequest job;
    job.model = model_.get();
    job.inputs = {&input, 1};
    job.outputs = {&output, 1};
    job.listener = &ignore_;
    device_.Submit(job);
  }

  Ignore ignore_;
  base::FakeClock clock_;
  PlainDevice plain_{1, &clock_};
  FaultyDevice device_{{&plain_, &clock_}};
  std::unique_ptr<Model> model_ = *device_.Load({{}, "", "m"});
  SharedBytes in_{device_, 4096}, out_{device_, 4096};
  uint64_t fault_ = 0;
};

TEST_F(IncoherentMemoryTest, WithoutTheFaultNothingNeedsASync) {
  in_[0] = std::byte{5};
  Run(in_, out_, true);
  EXPECT_EQ(out_[0], std::byte{6});
}

TEST_F(IncoherentMemoryTest, WriteWithoutSyncIsNotSeenByTheDevice) {
  Begin();
  in_[0] = std::byte{5};
  Run(in_, out_, true);
  out_.memory->Synchronize(CacheSide::kFromDevice);
  EXPECT_EQ(out_[0], std::byte{1});
  in_.memory->Synchronize(CacheSide::kToDevice);
  Run(in_, out_, true);
  out_.memory->Synchronize(CacheSide::kFromDevice);
  EXPECT_EQ(out_[0], std::byte{6});
}

TEST_F(IncoherentMemoryTest, ResultWithoutSyncIsNotSeenByTheProgram) {
  Begin();
  Run(in_, out_, true);
  EXPECT_EQ(out_[0], std::byte{0});
  out_.memory->Synchronize(CacheSide::kFromDevice);
  EXPECT_EQ(out_[0], std::byte{1});
}

TEST_F(IncoherentMemoryTest, RunThatSyncsNeedsNoCallOfTheProgram) {
  Begin();
  in_[0] = std::byte{5};
  Run(in_, out_, false);
  EXPECT_EQ(out_[0], std::byte{6});
}

TEST_F(IncoherentMemoryTest, MemoryMadeDuringTheFaultIsIncoherentToo) {
  Begin();
  const SharedBytes late(device_, 4096);
  late[0] = std::byte{5};
  Run(late, out_, true);
  out_.memory->Synchronize(CacheSide::kFromDevice);
  EXPECT_EQ(out_[0], std::byte{1});
}

TEST_F(IncoherentMemoryTest, SyncsMoveOnlyWhatWasWritten) {
  // Input and output in one buffer: cleaning the one leaves the other.
  Begin();
  Run(in_, in_, true, 0, 1024);
  in_[0] = std::byte{9};
  in_.memory->Synchronize(CacheSide::kToDevice);
  in_.memory->Synchronize(CacheSide::kFromDevice);
  EXPECT_EQ(in_[0], std::byte{9});
  EXPECT_EQ(in_[1024], std::byte{1});
}

TEST_F(IncoherentMemoryTest, InvalidatingLosesWhatTheCpuWrote) {
  Begin();
  in_[3] = std::byte{7};
  in_.memory->Synchronize(CacheSide::kFromDevice);
  EXPECT_EQ(in_[3], std::byte{0});
}

TEST_F(IncoherentMemoryTest, ClearingMakesBothSidesAgree) {
  Begin();
  in_[0] = std::byte{5};
  Run(in_, out_, true);
  End();
  EXPECT_EQ(out_[0], std::byte{1});
  Run(in_, out_, true);
  EXPECT_EQ(out_[0], std::byte{6});
}

TEST_F(IncoherentMemoryTest, JobUnderWhichTheFaultEndsIsSeenByTheProgram) {
  Begin();
  in_[0] = std::byte{5};
  plain_.hold = true;
  Run(in_, out_, true);
  End();
  plain_.Release();
  EXPECT_EQ(out_[0], std::byte{6});
}

TEST_F(IncoherentMemoryTest, PartsOfABufferAndOddSizesWork) {
  SharedBytes odd(device_, 4096 - 7);
  Begin();
  odd[4088] = std::byte{8};
  odd.memory->Synchronize(CacheSide::kBoth);
  EXPECT_EQ(odd[4088], std::byte{8});
  odd[kPlainBytes] = std::byte{4};
  Run(odd, out_, false, kPlainBytes, 128);
  EXPECT_EQ(out_[128], std::byte{5});
}

TEST_F(IncoherentMemoryTest, DeviceMadeIncoherentIsSoWithoutAnyFault) {
  FaultyDevice always({&plain_, &clock_, kDriverGiveUp, /*incoherent=*/true});
  const SharedBytes memory(always, 4096);
  const auto* incoherent = static_cast<IncoherentMemory*>(memory.memory.get());
  ASSERT_NE(incoherent->shadow(), nullptr);
  EXPECT_TRUE(always.faults().List().empty());
  // The fault of that name changes nothing, neither when it is set nor cleared.
  const auto set = always.faults().Set({.kind = FaultKind::kIncoherent});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_TRUE(always.faults().Clear(set->id).ok());
  EXPECT_NE(incoherent->shadow(), nullptr);
}

// Memory comes and goes while the mode changes, on another thread, as it does
// in the daemon. What is left has the mode there is in the end.
TEST(MemoryRegisterTest, MemoryComesAndGoesWhileTheModeChanges) {
  base::FakeClock clock;
  PlainDevice plain(1, &clock);
  const auto all = std::make_shared<MemoryRegister>();
  std::atomic<bool> stop{false};
  std::thread changes([&] {
    for (bool mode = true; !stop; mode = !mode) {
      all->SetIncoherent(plain, mode);
    }
    all->SetIncoherent(plain, true);
  });
  const base::UniqueFd fd = *base::MakeMemfd("test", 4096);
  const MemoryRef ref{fd.get(), 0, 4096};
  std::vector<std::unique_ptr<Memory>> kept;
  for (int i = 0; i < 300; ++i) {
    auto memory =
        IncoherentMemory::Attach(plain, all, ref, MemoryAccess::kReadWrite);
    ASSERT_TRUE(memory.ok()) << memory.status();
    (*memory)->Synchronize(CacheSide::kBoth);
    if (i % 3 == 0) kept.push_back(*std::move(memory));
  }
  stop = true;
  changes.join();
  for (const auto& memory : kept) {
    EXPECT_NE(static_cast<IncoherentMemory&>(*memory).shadow(), nullptr);
  }
}

// A device whose memory takes until it is told to be attached.
TEST(MemoryRegisterTest, CopyingHoldsUpNobodyElse) {
  class Slow final : public PlainDevice {
   public:
    using PlainDevice::PlainDevice;
    absl::StatusOr<std::unique_ptr<Memory>> Attach(
        const MemoryRef& memory, MemoryAccess access) override {
      if (slow) {
        begun.set_value();
        go.get_future().wait();
      }
      return PlainDevice::Attach(memory, access);
    }
    std::atomic<bool> slow{false};
    std::promise<void> begun, go;
  };
  base::FakeClock clock;
  Slow device(1, &clock);
  const auto all = std::make_shared<MemoryRegister>();
  const base::UniqueFd fd = *base::MakeMemfd("test", 4096);
  const MemoryRef ref{fd.get(), 0, 4096};
  const auto attach = [&] {
    return *IncoherentMemory::Attach(device, all, ref,
                                     MemoryAccess::kReadWrite);
  };
  const auto there = attach();
  auto gone = attach();
  device.slow = true;
  std::thread change([&] { all->SetIncoherent(device, true); });
  device.begun.get_future().wait();
  device.slow = false;
  // One is being copied.
  gone.reset();
  there->Synchronize(CacheSide::kBoth);
  EXPECT_NE(static_cast<IncoherentMemory&>(*attach()).shadow(), nullptr);
  device.go.set_value();
  change.join();
  EXPECT_NE(static_cast<IncoherentMemory&>(*there).shadow(), nullptr);
}

}  // namespace
}  // namespace rknnd::driver
