// Tests of jobs that wait for fences and tell others of their end, with a
// watcher in the test's hand.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

class FakeWatcher final : public FenceWatcher {
 public:
  FenceState Look(const Fence& fence) override { return states[fence.number]; }
  absl::Status Watch(uint64_t token,
                     const std::shared_ptr<Fence>& fence) override {
    if (!refusal.ok()) return refusal;
    watched[token] = fence;
    return absl::OkStatus();
  }
  void Unwatch(uint64_t token) override { watched.erase(token); }
  void Signal(const std::shared_ptr<Fence>& fence) override {
    // What whoever hears of it finds.
    signalled.push_back(fence->number);
    answers_seen.push_back(sink == nullptr ? 0 : sink->count());
  }
  // Tokens that wait for fence `number`.
  [[nodiscard]] std::vector<uint64_t> TokensOf(uint32_t number) const {
    std::vector<uint64_t> tokens;
    for (const auto& [token, fence] : watched) {
      if (fence->number == number) tokens.push_back(token);
    }
    return tokens;
  }

  std::map<uint32_t, FenceState> states;  // kPending where there is none
  std::map<uint64_t, std::shared_ptr<Fence>> watched;
  std::vector<uint32_t> signalled;
  std::vector<size_t> answers_seen;
  const testing::RecordingSink* sink = nullptr;
  absl::Status refusal;
};

class FencesTest : public testing::CoreTest {
 protected:
  static constexpr uint32_t kIn = 1, kOut = 2, kNotify = 3, kOtherIn = 4;

  FencesTest() {
    options.fences = &watcher_;
    options.limits.fences = 4;
    StartService();
    session_ = Open();
    watcher_.sink = session_.sink.get();
    MakeReady(session_, 1, "bytes=16");
    MakeReady(session_, 2, "bytes=16");
    Register(kIn, false);
    Register(kOut, true);
    Register(kNotify, true);
    Register(kOtherIn, false);
  }
  ~FencesTest() override {
    session_ = {};
    StopService();
    EXPECT_TRUE(watcher_.watched.empty());
  }

  void Register(uint32_t number, bool out) {
    ASSERT_EQ(TryRegister(number, out), absl::OkStatus());
  }
  absl::Status TryRegister(uint32_t number, bool out) {
    Fence fence;
    fence.number = number;
    fence.out = out;
    fence.fd = *base::MakeMemfd("fence", 4096);
    return session_->RegisterFence(std::move(fence));
  }
  JobSubmission Job(uint32_t context, uint32_t slot) {
    JobSubmission job;
    job.context = context;
    job.slot = slot;
    job.sequence = slot + 1;
    job.frame = slot + 1;
    return job;
  }
  void Submit(const JobSubmission& job) {
    ASSERT_EQ(session_->gate()->Submit(job), absl::OkStatus());
    RunReady();
  }
  void SubmitWaiting(uint32_t context, uint32_t slot, uint32_t fence = kIn) {
    JobSubmission job = Job(context, slot);
    job.fence_in = fence;
    Submit(job);
  }
  // As a worker does that finds the fence's event.
  void Fire(uint32_t number, FenceState state) {
    watcher_.states[number] = state;
    for (const uint64_t token : watcher_.TokensOf(number)) {
      watcher_.watched.erase(token);
      service->runner().FenceReady(token, state);
    }
    RunReady();
  }
  std::vector<uint64_t> Frames() {
    std::vector<uint64_t> frames;
    for (const auto& answer : session_.sink->all()) {
      frames.push_back(answer.frame);
    }
    return frames;
  }
  absl::Status Last() { return session_.sink->last().status; }
  static bool Mentions(const absl::Status& status, const std::string& text) {
    return status.message().find(text) != std::string::npos;
  }

  FakeWatcher watcher_;
  TestSession session_;
};

// ---- waiting ----------------------------------------------------------------

TEST_F(FencesTest, JobWhoseFenceIsSignalledRunsStraightAway) {
  watcher_.states[kIn] = FenceState::kSignalled;
  SubmitWaiting(1, 0);
  EXPECT_EQ(Last(), absl::OkStatus());
  EXPECT_EQ(session_.sink->count(), 1U);
  EXPECT_TRUE(watcher_.watched.empty());
}

TEST_F(FencesTest, JobRunsWhenItsFenceIsSignalledAndNotBefore) {
  SubmitWaiting(1, 0);
  RunReady();
  EXPECT_EQ(session_.sink->count(), 0U);
  EXPECT_TRUE(device.runs().empty());
  Fire(kIn, FenceState::kSignalled);
  EXPECT_EQ(session_.sink->count(), 1U);
  EXPECT_EQ(Last(), absl::OkStatus());
  EXPECT_EQ(device.runs().size(), 1U);
}

TEST_F(FencesTest, JobThatWaitsKeepsNoCoreAndNoOtherContextBack) {
  SubmitWaiting(1, 0);
  Submit(Job(2, 1));
  EXPECT_EQ(Frames(), (std::vector<uint64_t>{2}));
}

TEST_F(FencesTest, JobsOfAContextKeepTheirOrderBehindOneThatWaits) {
  SubmitWaiting(1, 0);
  Submit(Job(1, 1));
  EXPECT_TRUE(Frames().empty());
  Fire(kIn, FenceState::kSignalled);
  EXPECT_EQ(Frames(), (std::vector<uint64_t>{1, 2}));
}

TEST_F(FencesTest, FenceThatIsSignalledEarlyLetsItsJobKeepItsTurn) {
  SubmitWaiting(1, 0, kIn);
  SubmitWaiting(1, 1, kOtherIn);
  Fire(kOtherIn, FenceState::kSignalled);
  EXPECT_TRUE(Frames().empty());
  Fire(kIn, FenceState::kSignalled);
  EXPECT_EQ(Frames(), (std::vector<uint64_t>{1, 2}));
}

TEST_F(FencesTest, SeveralJobsWaitForOneFence) {
  for (uint32_t slot = 0; slot < 20; ++slot) SubmitWaiting(slot % 2 + 1, slot);
  EXPECT_EQ(watcher_.TokensOf(kIn).size(), 20U);
  Fire(kIn, FenceState::kSignalled);
  EXPECT_EQ(session_.sink->count(), 20U);
}

TEST_F(FencesTest, FenceThatIsClosedEarlyFailsItsJobAndNoOther) {
  SubmitWaiting(1, 0);
  Submit(Job(1, 1));
  Fire(kIn, FenceState::kClosed);
  ASSERT_EQ(Frames(), (std::vector<uint64_t>{1, 2}));
  const absl::Status failed = session_.sink->all()[0].status;
  EXPECT_EQ(failed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Mentions(failed, "fence 1 was closed at its other end"))
      << failed;
  EXPECT_EQ(Last(), absl::OkStatus());
  EXPECT_EQ(device.runs().size(), 1U);
}

TEST_F(FencesTest, JobIsRefusedWhoseFenceIsClosedAlready) {
  watcher_.states[kIn] = FenceState::kClosed;
  SubmitWaiting(1, 0);
  EXPECT_EQ(Last().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(device.runs().empty());
}

TEST_F(FencesTest, JobIsAnsweredWhoseFenceCannotBeWatched) {
  watcher_.refusal = absl::ResourceExhaustedError("no more");
  SubmitWaiting(1, 0);
  EXPECT_EQ(Last().code(), absl::StatusCode::kResourceExhausted);
  Submit(Job(1, 1));
  EXPECT_EQ(Last(), absl::OkStatus());
}

TEST_F(FencesTest, JobIsAnsweredAtItsTimeoutIfItsFenceNeverComes) {
  JobSubmission job = Job(1, 0);
  job.fence_in = kIn;
  job.timeout_ms = 50;
  Submit(job);
  Submit(Job(1, 1));
  clock.Advance(50 * base::kMillisecond);
  service->runner().Expire();
  RunReady();
  ASSERT_EQ(Frames(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(session_.sink->all()[0].status.code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Last(), absl::OkStatus());
  EXPECT_TRUE(watcher_.watched.empty());
}

TEST_F(FencesTest, JobWithoutALimitWaitsNoLongerThanTheDaemonsFenceTimeout) {
  SubmitWaiting(1, 0);
  clock.Advance(options.scheduling.fence_timeout - 1);
  service->runner().Expire();
  EXPECT_EQ(session_.sink->count(), 0U);
  clock.Advance(1);
  service->runner().Expire();
  EXPECT_EQ(Last().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(watcher_.watched.empty());
}

TEST_F(FencesTest, LateEventFindsNothingAlsoWhenTheSlotIsAnothersAgain) {
  SubmitWaiting(1, 0);
  const uint64_t token = watcher_.TokensOf(kIn).at(0);
  ASSERT_TRUE(session_->DestroyContext(1).ok());
  EXPECT_EQ(Last().code(), absl::StatusCode::kCancelled);
  SubmitWaiting(2, 0, kOtherIn);
  service->runner().FenceReady(token, FenceState::kSignalled);
  service->runner().FenceReady(token, FenceState::kClosed);
  RunReady();
  EXPECT_EQ(session_.sink->count(), 1U);
  Fire(kOtherIn, FenceState::kSignalled);
  EXPECT_EQ(Last(), absl::OkStatus());
}

TEST_F(FencesTest, ContextThatGoesTakesItsWaitsAlong) {
  SubmitWaiting(1, 0);
  SubmitWaiting(1, 1);
  SubmitWaiting(2, 2);
  ASSERT_TRUE(session_->DestroyContext(1).ok());
  EXPECT_EQ(watcher_.TokensOf(kIn).size(), 1U);
  EXPECT_EQ(session_.sink->count(), 2U);
}

TEST_F(FencesTest, SessionThatEndsTakesItsWaitsAlong) {
  SubmitWaiting(1, 0);
  SubmitWaiting(2, 1);
  const std::weak_ptr<Fence> fence = watcher_.watched.begin()->second;
  service->CloseSession(session_->id());
  EXPECT_TRUE(watcher_.watched.empty());
  EXPECT_TRUE(fence.expired());
  EXPECT_EQ(session_.sink->count(), 0U);
  EXPECT_EQ(service->Status().jobs_queued, 0U);
}

TEST_F(FencesTest, CancelledJobIsNotWaitedForAnyMore) {
  SubmitWaiting(1, 0);
  JobSubmission cancel = Job(1, 5);
  cancel.operation = JobSubmission::Operation::kCancel;
  cancel.frame = 1;
  Submit(cancel);
  EXPECT_TRUE(watcher_.watched.empty());
  EXPECT_EQ(session_.sink->count(), 2U);
}

TEST_F(FencesTest, ReleasedFenceIsKeptByTheJobsThatWaitForIt) {
  SubmitWaiting(1, 0);
  ASSERT_TRUE(session_->ReleaseFence(kIn).ok());
  SubmitWaiting(2, 1);
  EXPECT_EQ(Last().code(), absl::StatusCode::kNotFound);
  Fire(kIn, FenceState::kSignalled);
  EXPECT_EQ(Last(), absl::OkStatus());
  EXPECT_EQ(session_.sink->count(), 2U);
}

// ---- telling ----------------------------------------------------------------

TEST_F(FencesTest, FencesAreSignalledOnceTheAnswerIsThere) {
  JobSubmission job = Job(1, 0);
  job.fence_out = kOut;
  job.notify = kNotify;
  Submit(job);
  EXPECT_EQ(watcher_.signalled, (std::vector<uint32_t>{kOut, kNotify}));
  EXPECT_EQ(watcher_.answers_seen, (std::vector<size_t>{1, 1}));
}

TEST_F(FencesTest, FencesAreSignalledWhateverBecomesOfTheJob) {
  JobSubmission job = Job(1, 0);
  job.notify = kNotify;
  // It fails on the device.
  device.FailJobs(absl::InternalError("the core stalled"));
  Submit(job);
  device.FailJobs(absl::OkStatus());
  EXPECT_EQ(watcher_.signalled.size(), 1U);
  // It is refused.
  job.context = 77;
  Submit(job);
  EXPECT_EQ(watcher_.signalled.size(), 2U);
  // It is refused for its other fence.
  job.context = 1;
  job.fence_in = 99;
  Submit(job);
  EXPECT_EQ(watcher_.signalled.size(), 3U);
  // Its fence is closed.
  job.fence_in = kIn;
  Submit(job);
  Fire(kIn, FenceState::kClosed);
  EXPECT_EQ(watcher_.signalled.size(), 4U);
  // It is too late.
  watcher_.states.clear();
  job.timeout_ms = 5;
  Submit(job);
  clock.Advance(5 * base::kMillisecond);
  service->runner().Expire();
  EXPECT_EQ(watcher_.signalled.size(), 5U);
  // It is taken back.
  Submit(job);
  JobSubmission cancel = Job(1, 5);
  cancel.operation = JobSubmission::Operation::kCancel;
  cancel.frame = 0;
  Submit(cancel);
  EXPECT_EQ(watcher_.signalled.size(), 6U);
  // Its context goes.
  Submit(job);
  ASSERT_TRUE(session_->DestroyContext(1).ok());
  EXPECT_EQ(watcher_.signalled.size(), 7U);
  // One answer for each of them, and that of the cancel.
  EXPECT_EQ(session_.sink->count(), 8U);
}

TEST_F(FencesTest, DroppedFrameSignalsItsFence) {
  QueueRequest newest;
  newest.context = 1;
  newest.policy = QueuePolicy::kNewest;
  ASSERT_EQ(session_->SetQueue(newest), absl::OkStatus());
  device.HoldJobs(true);
  for (uint32_t slot = 0; slot < 3; ++slot) {
    JobSubmission job = Job(1, slot);
    job.fence_out = kOut;
    Submit(job);
  }
  EXPECT_EQ(watcher_.signalled.size(), 1U);
  EXPECT_EQ(Last().code(), absl::StatusCode::kAborted);
  device.HoldJobs(false);
  while (device.Release()) RunReady();
  EXPECT_EQ(watcher_.signalled.size(), 3U);
}

TEST_F(FencesTest, SessionThatEndsClosesWhatItWouldHaveSignalled) {
  JobSubmission job = Job(1, 0);
  job.fence_in = kIn;
  job.fence_out = kOut;
  Submit(job);
  const size_t before = OpenFds();
  service->CloseSession(session_->id());
  session_.session.reset();
  EXPECT_TRUE(watcher_.signalled.empty());
  // All four fences, with both contexts' four buffers.
  EXPECT_LE(OpenFds(), before - 4);
}

// ---- numbers ----------------------------------------------------------------

TEST_F(FencesTest, NumberInUseAndNumberZeroAreRefused) {
  ASSERT_TRUE(session_->ReleaseFence(kOtherIn).ok());
  EXPECT_EQ(TryRegister(kIn, true).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(TryRegister(0, false).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(session_->ReleaseFence(9).code(), absl::StatusCode::kNotFound);
}

TEST_F(FencesTest, LimitIsNamedWithWhoIsAtIt) {
  const absl::Status refused = TryRegister(9, false);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Mentions(refused, "'cam'")) << refused;
  EXPECT_TRUE(Mentions(refused, "limit 'fences' is 4")) << refused;
  ASSERT_TRUE(session_->ReleaseFence(kIn).ok());
  EXPECT_EQ(TryRegister(9, false), absl::OkStatus());
}

TEST_F(FencesTest, FenceIsUsedForWhatItWasRegisteredForOnly) {
  SubmitWaiting(1, 0, kOut);
  EXPECT_EQ(Last().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Mentions(Last(), "fence_in 2 was registered to be signalled"))
      << Last();
  JobSubmission job = Job(1, 0);
  job.fence_out = kIn;
  Submit(job);
  EXPECT_TRUE(Mentions(Last(), "fence_out 1 was registered to be waited for"))
      << Last();
  job.fence_out = 0;
  job.notify = 99;
  Submit(job);
  EXPECT_EQ(Last().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Mentions(Last(), "notify 99 is not registered")) << Last();
}

TEST_F(FencesTest, FencesOfAnotherSessionDoNotExist) {
  const TestSession other = Open(200);
  MakeReady(other, 1, "bytes=16");
  JobSubmission job = Job(1, 0);
  job.fence_in = kIn;
  ASSERT_TRUE(other->gate()->Submit(job).ok());
  EXPECT_EQ(other.sink->last().status.code(), absl::StatusCode::kNotFound);
}

TEST_F(FencesTest, DaemonWithoutAWatcherHasNoFences) {
  session_ = {};
  options.fences = nullptr;
  StartService();
  session_ = Open();
  EXPECT_EQ(TryRegister(kIn, false).code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace rknnd::core
