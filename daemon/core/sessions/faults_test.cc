// Tests of sessions, jobs and memory on a device on which things go wrong.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>

#include "base/posix/mapping.h"
#include "base/values/sha256.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "driver/faults/faulty_device.h"

namespace rknnd::core {
namespace {

using driver::Fault;
using driver::FaultKind;
using testing::TestSession;

constexpr char kFaultModel[] = "bytes=16 internal=4096";

class FaultsTest : public testing::CoreTest {
 protected:
  FaultsTest() {
    options.device = &faulty;
    options.faults = &faulty.faults();
    StartService();
  }
  ~FaultsTest() override {
    faulty.Stop();
    StopService();
  }

  uint64_t Set(const Fault& fault) {
    const auto set = faulty.faults().Set(fault);
    EXPECT_TRUE(set.ok()) << set.status();
    return set.ok() ? set->id : 0;
  }
  void Clear(uint64_t id) {
    EXPECT_TRUE(faulty.faults().Clear(id).ok());
    faulty.RunDue();
  }
  void Pass(base::Nanoseconds time) {
    clock.Advance(time);
    faulty.RunDue();
  }
  // A session whose only context runs on one core.
  TestSession OpenOn(uint32_t core, int32_t pid = 100) {
    TestSession session = Open(pid);
    MakeReady(session, 1, kFaultModel, 0, 1U << core);
    return session;
  }
  // Submits a job and lets a worker take it.
  void Start(const TestSession& session, uint32_t slot = 0) {
    ASSERT_TRUE(Submit(session, 1, slot).ok());
    RunReady();
  }
  absl::StatusCode RunOnce(const TestSession& session, uint32_t slot = 0) {
    const size_t before = session.sink->count();
    Start(session, slot);
    EXPECT_EQ(session.sink->count(), before + 1);
    return session.sink->last().status.code();
  }

  driver::FaultyDevice faulty{{&device, &clock}};
};

TEST_F(FaultsTest, FailedJobGivesBackCoreTokenAndBuffers) {
  const TestSession session = OpenOn(1);
  const TestSession neighbour = OpenOn(1, 200);
  Set({.kind = FaultKind::kWrongStatus, .core = 1, .times = 1});
  EXPECT_EQ(RunOnce(session), absl::StatusCode::kInternal);
  EXPECT_EQ(service->Status().jobs_running, 0U);
  EXPECT_EQ(service->Status().jobs_failed, 1U);
  EXPECT_EQ(RunOnce(neighbour), absl::StatusCode::kOk);

  const uint32_t before = device.memories();
  service->CloseSession(session->id());
  EXPECT_EQ(device.memories(), before - 2);
}

TEST_F(FaultsTest, HashFindsAModelThatCameFromItsCompiledForm) {
  const testing::TemporaryFolder folder;
  device.set_compiler("form 1, this CPU");
  options.cache_dir = folder.path();
  StartService();
  Upload(Open(), kFaultModel);
  StartService();
  const TestSession session = Open();
  ASSERT_EQ(Create(session, 1, kFaultModel), absl::OkStatus());
  ASSERT_TRUE(session->DestroyContext(1).ok());
  ASSERT_EQ(device.restores(), 1U);
  MakeReady(session, 1, kFaultModel);
  MakeReady(session, 2, "bytes=8");
  Set({.kind = FaultKind::kWrongStatus,
       .model = base::ToHex(Id(kFaultModel)).substr(0, 16)});

  EXPECT_EQ(RunOnce(session), absl::StatusCode::kInternal);

  ASSERT_TRUE(Submit(session, 2, 1).ok());
  RunReady();
  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
}

TEST_F(FaultsTest, FailedGangGivesBackAllItsCores) {
  const TestSession gang = Open();
  MakeReady(gang, 1, kFaultModel, 0, 3);
  const TestSession first = OpenOn(0, 200);
  const TestSession second = OpenOn(1, 300);
  const uint64_t id = Set({.kind = FaultKind::kDeadCore, .core = 1});
  EXPECT_EQ(RunOnce(gang), absl::StatusCode::kInternal);
  EXPECT_EQ(RunOnce(first), absl::StatusCode::kOk);
  Clear(id);
  EXPECT_EQ(RunOnce(second), absl::StatusCode::kOk);
  EXPECT_EQ(RunOnce(gang), absl::StatusCode::kOk);
}

TEST_F(FaultsTest, HangingGangHoldsAllItsCores) {
  const TestSession gang = Open();
  MakeReady(gang, 1, kFaultModel, 0, 3);
  const TestSession second = OpenOn(1, 200);
  const TestSession third = OpenOn(2, 300);
  Set({.kind = FaultKind::kHang, .core = 1, .times = 1});
  Start(gang);
  Start(second);
  EXPECT_EQ(RunOnce(third), absl::StatusCode::kOk);
  EXPECT_EQ(second.sink->count(), 0U);
  Pass(driver::kDriverGiveUp);
  EXPECT_EQ(gang.sink->last().status.code(),
            absl::StatusCode::kDeadlineExceeded);
  RunReady();
  EXPECT_EQ(second.sink->last().status, absl::OkStatus());
}

TEST_F(FaultsTest, HangingJobHoldsItsCoreAndNoOther) {
  const TestSession hung = OpenOn(0);
  const TestSession behind = OpenOn(0, 200);
  const TestSession beside = OpenOn(2, 300);
  const uint64_t id = Set({.kind = FaultKind::kHang, .core = 0, .times = 1});
  Start(hung);
  Start(behind);
  EXPECT_EQ(RunOnce(beside), absl::StatusCode::kOk);
  EXPECT_EQ(hung.sink->count(), 0U);
  EXPECT_EQ(behind.sink->count(), 0U);
  EXPECT_EQ(service->Status().jobs_running, 1U);
  EXPECT_EQ(service->Status().jobs_queued, 1U);

  clock.Advance(3 * base::kSecond);
  const uint32_t woken = waker.count;
  Clear(id);
  EXPECT_EQ(hung.sink->last().status, absl::OkStatus());
  EXPECT_EQ(hung.sink->last().run, 3 * base::kSecond);
  EXPECT_EQ(waker.count, woken + 1);
  RunReady();
  EXPECT_EQ(behind.sink->last().status, absl::OkStatus());
}

TEST_F(FaultsTest, WhenTheDriverGivesUpTheJobsOfAllCoresFailOnce) {
  const TestSession hung = OpenOn(0);
  const TestSession beside = OpenOn(1, 200);
  Set({.kind = FaultKind::kHang, .core = 0, .times = 1});
  device.HoldJobs(true);
  Start(hung);
  Start(beside);
  Pass(driver::kDriverGiveUp);
  EXPECT_EQ(hung.sink->last().status.code(),
            absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(device.Release());
  // An innocent one: its client runs it again.
  EXPECT_EQ(beside.sink->last().status.code(), absl::StatusCode::kUnavailable);
  device.HoldJobs(false);
  EXPECT_EQ(RunOnce(hung), absl::StatusCode::kOk);
  EXPECT_EQ(RunOnce(beside), absl::StatusCode::kOk);
}

TEST_F(FaultsTest, JobWhoseTimeWentByBehindAHangIsNotRun) {
  const TestSession hung = OpenOn(0);
  const TestSession behind = OpenOn(0, 200);
  Set({.kind = FaultKind::kHang, .core = 0, .times = 1});
  Start(hung);
  JobSubmission submission;
  submission.context = 1;
  submission.timeout_ms = 20;
  ASSERT_TRUE(behind->gate()->Submit(submission).ok());
  RunReady();
  Pass(driver::kDriverGiveUp);
  RunReady();
  EXPECT_EQ(behind.sink->last().status.code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(device.runs().empty());
}

TEST_F(FaultsTest, HangIsAnsweredBeforeTheDriverGivesUp) {
  const TestSession hung = OpenOn(0);
  Set({.kind = FaultKind::kHang, .core = 0, .times = 1});
  Start(hung);
  PassTime(options.scheduling.hang);
  ASSERT_EQ(hung.sink->count(), 1U);
  EXPECT_EQ(hung.sink->last().status.code(),
            absl::StatusCode::kDeadlineExceeded);
  Start(hung, 0);
  Pass(driver::kDriverGiveUp - options.scheduling.hang);
  EXPECT_EQ(hung.sink->count(), 1U);
  RunReady();
  EXPECT_EQ(hung.sink->count(), 2U);
  EXPECT_EQ(hung.sink->last().status, absl::OkStatus());
}

TEST_F(FaultsTest, SlowJobIsAnsweredAtItsTimeoutAndLateForNobody) {
  const TestSession session = OpenOn(1);
  Set({.kind = FaultKind::kSlow, .times = 1, .ms = 30});
  JobSubmission submission;
  submission.context = 1;
  submission.timeout_ms = 20;
  ASSERT_TRUE(session->gate()->Submit(submission).ok());
  RunReady();
  PassTime(20 * kMs);
  EXPECT_EQ(session.sink->last().status.code(),
            absl::StatusCode::kDeadlineExceeded);
  Pass(10 * kMs);
  EXPECT_EQ(session.sink->count(), 1U);
  EXPECT_EQ(RunOnce(session), absl::StatusCode::kOk);
}

TEST_F(FaultsTest, MemoryOfAHangingJobOutlivesItsSession) {
  const uint32_t before = device.memories();
  const TestSession hung = OpenOn(0);
  Set({.kind = FaultKind::kHang, .core = 0});
  Start(hung);
  const uint32_t held = device.memories();
  service->CloseSession(hung->id());
  RunLoops();
  EXPECT_EQ(device.memories(), held);
  EXPECT_EQ(hung.sink->count(), 0U);
  Pass(driver::kDriverGiveUp);
  // Nobody is answered any more; what is left are arena and model in grace.
  EXPECT_EQ(hung.sink->count(), 0U);
  EXPECT_EQ(device.memories(), held - 2);
  EXPECT_GE(device.memories(), before);
  EXPECT_EQ(memory().io, 0U);
}

TEST_F(FaultsTest, SlowJobIsAnsweredLateAndRight) {
  const TestSession session = OpenOn(1);
  Set({.kind = FaultKind::kSlow, .ms = 30});
  Start(session);
  Pass(29 * kMs);
  EXPECT_EQ(session.sink->count(), 0U);
  Pass(kMs);
  EXPECT_EQ(session.sink->last().status, absl::OkStatus());
  EXPECT_EQ(session.sink->last().run, 30 * kMs);
  EXPECT_EQ(service->Status().cores[1].busy, 30 * kMs);
}

TEST_F(FaultsTest, CrashedDeviceRefusesAllUntilItIsBack) {
  const TestSession session = OpenOn(0);
  const TestSession other = OpenOn(1, 200);
  Set({.kind = FaultKind::kCrash, .core = 0, .times = 1, .ms = 50});
  EXPECT_EQ(RunOnce(session), absl::StatusCode::kUnavailable);
  EXPECT_EQ(RunOnce(other), absl::StatusCode::kUnavailable);
  EXPECT_EQ(AllocateNow(session, 9, 4096, 0).status().code(),
            absl::StatusCode::kUnavailable);
  Pass(50 * kMs);
  EXPECT_EQ(RunOnce(session), absl::StatusCode::kOk);
  EXPECT_EQ(RunOnce(other), absl::StatusCode::kOk);
}

TEST_F(FaultsTest, RefusedMemoryIsChargedToNobody) {
  const TestSession session = Open();
  const uint64_t id = Set({.kind = FaultKind::kOutOfMemory, .times = 1});
  EXPECT_EQ(AllocateNow(session, 1, 4096, 0).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(memory().io, 0U);
  EXPECT_TRUE(AllocateNow(session, 1, 4096, 0).ok());
  Clear(id);
}

TEST_F(FaultsTest, RefusedModelCanBeLoadedAgain) {
  const TestSession session = Open();
  Set({.kind = FaultKind::kOutOfMemory, .model = "m.onnx", .times = 1});
  const std::string model = "bytes=16 weight=1000";
  const auto refused = Upload(session, model);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(service->Status().models, 0U);
  EXPECT_EQ(memory().weight, 0U);
  EXPECT_EQ(Upload(session, model), absl::OkStatus());
}

TEST_F(FaultsTest, ModelRefusedFromItsCompiledFormIsNotCompiledInstead) {
  const testing::TemporaryFolder folder;
  device.set_compiler("form 1, this CPU");
  options.cache_dir = folder.path();
  StartService();
  Upload(Open(), kFaultModel);
  StartService();
  const uint32_t before = device.loads();
  Set({.kind = FaultKind::kOutOfMemory, .model = "m.onnx", .times = 1});

  const TestSession session = Open();
  EXPECT_EQ(Create(session, 1, kFaultModel)->code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(device.loads(), before + 1);

  EXPECT_EQ(Create(session, 1, kFaultModel), absl::OkStatus());
  EXPECT_EQ(device.restores(), 2U);
}

TEST_F(FaultsTest, DrainEndsWhenTheHangDoes) {
  const TestSession session = OpenOn(0);
  Set({.kind = FaultKind::kHang});
  Start(session);
  bool drained = false;
  DrainService([&drained] { drained = true; });
  RunLoops();
  EXPECT_FALSE(drained);
  Pass(driver::kDriverGiveUp);
  RunLoops();
  EXPECT_TRUE(drained);
}

TEST_F(FaultsTest, StatusCountsWhatIsInForce) {
  EXPECT_EQ(service->Status().faults, 0U);
  const uint64_t id = Set({.kind = FaultKind::kDeadCore, .core = 2});
  EXPECT_EQ(service->Status().faults, 1U);
  Clear(id);
  EXPECT_EQ(service->Status().faults, 0U);
}

TEST_F(FaultsTest, FaultsThatWereNotEnabledAreRefusedWithTheWayToDoIt) {
  options.faults = nullptr;
  StartService();
  const auto faults = service->faults();
  EXPECT_EQ(faults.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(faults.status().message().find("--faults"),
            absl::string_view::npos);
  EXPECT_FALSE(service->wants_syncs());
}

TEST_F(FaultsTest, SettingAndClearingHoldsUpNoLoop) {
  std::optional<uint64_t> set;
  std::optional<absl::Status> cleared;
  service->SetFault({.kind = FaultKind::kIncoherent},
                    [&](absl::StatusOr<driver::FaultReport> report) {
                      ASSERT_TRUE(report.ok()) << report.status();
                      set = report->id;
                    });
  EXPECT_FALSE(set.has_value());
  EXPECT_FALSE(loop.RunOne());
  RunLoops();
  ASSERT_TRUE(set.has_value());
  service->ClearFault(*set, [&](absl::Status status) { cleared = status; });
  EXPECT_FALSE(cleared.has_value());
  RunLoops();
  EXPECT_EQ(cleared, absl::OkStatus());
}

TEST_F(FaultsTest, ThoseThatAreWrongAreAnsweredToo) {
  std::optional<absl::Status> answer;
  service->SetFault(
      {.kind = FaultKind::kSlow},
      [&](absl::StatusOr<driver::FaultReport> set) { answer = set.status(); });
  RunLoops();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->code(), absl::StatusCode::kInvalidArgument);
  service->ClearFault(99, [&](absl::Status status) { answer = status; });
  RunLoops();
  EXPECT_EQ(answer->code(), absl::StatusCode::kNotFound);
  options.faults = nullptr;
  StartService();
  service->ClearFault(1, [&](absl::Status status) { answer = status; });
  EXPECT_EQ(answer->code(), absl::StatusCode::kFailedPrecondition);
}

// ---- caches -----------------------------------------------------------------

class IncoherentTest : public FaultsTest {
 protected:
  static constexpr uint32_t kKeepInputs = 0x4000;
  static constexpr uint32_t kKeepOutputs = 0x8000;

  // Context 1 with input buffer 1 and output buffer 2 as the program sees them.
  void MakeContext(uint32_t flags) {
    session_ = Open();
    Upload(session_, "bytes=4");
    Create(session_, 1, "bytes=4", flags);
    in_ = Map(1);
    out_ = Map(2);
    ASSERT_TRUE(
        session_->Bind(BindTo(1, driver::Direction::kInput, 0, 1, 4)).ok());
    ASSERT_TRUE(
        session_->Bind(BindTo(1, driver::Direction::kOutput, 0, 2, 4)).ok());
    Set({.kind = FaultKind::kIncoherent});
  }
  base::Mapping Map(uint32_t buffer) {
    const auto made = AllocateNow(session_, buffer, 4096, 0);
    EXPECT_TRUE(made.ok());
    return *base::Mapping::OfFd(made->fd.get(), 0, 4096,
                                base::Mapping::Access::kReadWrite);
  }

  TestSession session_;
  base::Mapping in_, out_;
};

TEST_F(IncoherentTest, RunOfPlainMemoryNeedsNoSync) {
  MakeContext(0);
  in_.data()[0] = std::byte{41};
  EXPECT_EQ(RunOnce(session_), absl::StatusCode::kOk);
  EXPECT_EQ(out_.data()[0], std::byte{42});
}

TEST_F(IncoherentTest, KeptInputCacheNeedsASyncOfTheProgram) {
  MakeContext(kKeepInputs);
  in_.data()[0] = std::byte{41};
  EXPECT_EQ(RunOnce(session_), absl::StatusCode::kOk);
  EXPECT_EQ(out_.data()[0], std::byte{1});
  ASSERT_TRUE(session_->SyncBuffer(1, driver::CacheSide::kToDevice).ok());
  EXPECT_EQ(RunOnce(session_), absl::StatusCode::kOk);
  EXPECT_EQ(out_.data()[0], std::byte{42});
}

TEST_F(IncoherentTest, KeptOutputCacheNeedsASyncOfTheProgram) {
  MakeContext(kKeepOutputs);
  EXPECT_EQ(RunOnce(session_), absl::StatusCode::kOk);
  EXPECT_EQ(out_.data()[0], std::byte{0});
  ASSERT_TRUE(session_->SyncBuffer(2, driver::CacheSide::kFromDevice).ok());
  EXPECT_EQ(out_.data()[0], std::byte{1});
}

TEST_F(IncoherentTest, SyncOfABufferOfNobodyIsAnError) {
  MakeContext(0);
  EXPECT_EQ(session_->SyncBuffer(77, driver::CacheSide::kBoth).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace rknnd::core
