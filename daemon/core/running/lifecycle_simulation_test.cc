// Many histories of jobs that come, wait, run, hang, are dropped, taken back,
// come too late, are answered with others' runs, whose cores are lent, and
// whose contexts and sessions go at any moment: whatever the order, each
// submission is answered once, in its slot, and within its limits.

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "base/posix/mutex.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/silent_fences.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

// What a client may expect, for each slot: the plain model.
class Ledgered final : public CompletionSink {
 public:
  struct Expected {
    uint32_t sequence = 0;
    uint64_t frame = 0;
    base::Nanoseconds answered_by = kNever;
    bool cancel = false;
  };

  void Complete(const JobCompletion& completion) override {
    base::MutexLock lock(mutex_);
    const auto found = expected_.find(completion.slot);
    if (found == expected_.end()) {
      ADD_FAILURE() << "slot " << completion.slot
                    << " was answered though nothing is in it: "
                    << completion.status;
      return;
    }
    EXPECT_EQ(completion.sequence, found->second.sequence);
    EXPECT_EQ(completion.frame, found->second.frame);
    EXPECT_FALSE(closed_) << "a session that has ended was answered";
    if (found->second.cancel) {
      last_count_ = completion.count;
    } else {
      ++answers_[completion.status.code()];
      told_drops_ += completion.drops;
    }
    expected_.erase(found);
  }

  void Expect(uint32_t slot, const Expected& what) {
    base::MutexLock lock(mutex_);
    expected_[slot] = what;
  }
  // Its session has ended, and no other thread was at work for it.
  void Close() {
    base::MutexLock lock(mutex_);
    closed_ = true;
    expected_.clear();
  }
  bool Has(uint32_t slot) const {
    base::MutexLock lock(mutex_);
    return expected_.contains(slot);
  }
  size_t waiting() const {
    base::MutexLock lock(mutex_);
    return expected_.size();
  }
  uint64_t answers(absl::StatusCode code) const {
    base::MutexLock lock(mutex_);
    const auto found = answers_.find(code);
    return found == answers_.end() ? 0 : found->second;
  }
  uint32_t last_count() const {
    base::MutexLock lock(mutex_);
    return last_count_;
  }
  uint64_t told_drops() const {
    base::MutexLock lock(mutex_);
    return told_drops_;
  }
  // The first limit that was not kept; kNever: all were.
  base::Nanoseconds Overdue(base::Nanoseconds now) const {
    base::MutexLock lock(mutex_);
    for (const auto& [slot, what] : expected_) {
      if (what.answered_by <= now) return what.answered_by;
    }
    return kNever;
  }

 private:
  mutable base::Mutex mutex_;
  std::map<uint32_t, Expected> expected_ RKNND_GUARDED_BY(mutex_);
  std::map<absl::StatusCode, uint64_t> answers_ RKNND_GUARDED_BY(mutex_);
  bool closed_ RKNND_GUARDED_BY(mutex_) = false;
  uint32_t last_count_ RKNND_GUARDED_BY(mutex_) = 0;
  uint64_t told_drops_ RKNND_GUARDED_BY(mutex_) = 0;
};

class LifecycleSimulation : public testing::CoreTest,
                            public ::testing::WithParamInterface<uint32_t> {
 protected:
  struct Client {
    std::shared_ptr<Session> session;
    std::shared_ptr<Ledgered> sink;
    std::array<bool, 3> contexts{};
    uint64_t dropped = 0;
  };
  static constexpr uint32_t kContexts = 3;
  static constexpr uint32_t kFence = 1, kEnd = 2, kCamera = 1;

  LifecycleSimulation() : random_(GetParam()) {
    options.fences = &fences_;
    options.limits.jobs_per_context = 8;
    StartService();
    device.HoldJobs(true);
    for (Client& client : clients_) Connect(client);
  }
  ~LifecycleSimulation() override {
    operator_ = nullptr;
    for (Client& client : clients_) client.session = nullptr;
    device.HoldJobs(false);
    while (device.Release()) {
    }
    StopService();
  }

  uint32_t Below(size_t bound) {
    return static_cast<uint32_t>(random_() % bound);
  }

  void Connect(Client& client) {
    Count(client);
    client = {};
    client.sink = std::make_shared<Ledgered>();
    auto opened = service->OpenSession(
        {100 + static_cast<int32_t>(Below(5)), 1000, {}, "cam", false},
        client.sink, nullptr);
    ASSERT_TRUE(opened.ok());
    client.session = *std::move(opened);
    for (const bool out : {false, true}) {
      Fence fence;
      fence.number = out ? kEnd : kFence;
      fence.out = out;
      fence.fd = *base::MakeMemfd("fence", 4096);
      ASSERT_TRUE(client.session->RegisterFence(std::move(fence)).ok());
    }
  }

  void Count(const Client& client) {
    if (client.sink == nullptr) return;
    for (int code = 0; code <= 16; ++code) {
      const auto status = static_cast<absl::StatusCode>(code);
      totals_[status] += client.sink->answers(status);
    }
  }

  void MakeContext(Client& client, uint32_t context) {
    constexpr uint32_t kMasks[] = {0, 1, 2, 3, 7};
    const testing::TestSession session{client.session, nullptr, nullptr};
    for (uint32_t buffer = context * 100; buffer < context * 100 + 2;
         ++buffer) {
      (void)session->ReleaseBuffer(buffer);
    }
    MakeReady(session, context, "bytes=16 internal=4096", 0,
              kMasks[Below(std::size(kMasks))]);
    client.contexts[context - 1] = true;
    // All of them see what the camera sees.
    (void)session->ReleaseBuffer(kCamera);
    ASSERT_TRUE(
        ImportNow(session, kCamera, *base::Duplicate(camera_.get()), 0).ok());
    ASSERT_TRUE(
        session
            ->Bind(BindTo(context, driver::Direction::kInput, 0, kCamera, 4096))
            .ok());
  }

  void SubmitSome(Client& client) {
    const uint32_t slot = Below(kJobSlots);
    if (client.sink->Has(slot)) return;
    JobSubmission job;
    job.context = 1 + Below(kContexts);
    job.slot = slot;
    job.sequence = ++sequence_;
    job.frame = Below(6);
    if (Below(3) == 0) job.timeout_ms = 1 + Below(60);
    if (Below(4) == 0) job.deadline = (1 + Below(40)) * kMs;
    if (Below(10) == 0) job.fence_in = kFence;
    if (Below(10) == 0) job.fence_out = kEnd;
    job.shared = job.frame != 0 && Below(3) == 0;
    Ledgered::Expected expected{job.sequence, job.frame};
    if (job.timeout_ms != 0) {
      expected.answered_by = clock.Now() + job.timeout_ms * kMs;
    }
    client.sink->Expect(slot, expected);
    ASSERT_TRUE(client.session->gate()->Submit(job).ok());
  }

  void CancelSome(Client& client) {
    const uint32_t slot = Below(kJobSlots);
    if (client.sink->Has(slot)) return;
    JobSubmission job;
    job.operation = JobSubmission::Operation::kCancel;
    job.context = 1 + Below(kContexts);
    job.slot = slot;
    job.sequence = ++sequence_;
    job.frame = Below(6);
    client.sink->Expect(slot, {job.sequence, job.frame, kNever, true});
    const uint64_t before = client.sink->answers(absl::StatusCode::kCancelled);
    ASSERT_TRUE(client.session->gate()->Submit(job).ok());
    EXPECT_FALSE(client.sink->Has(slot));
    EXPECT_EQ(client.sink->answers(absl::StatusCode::kCancelled) - before,
              client.sink->last_count());
  }

  // Lends some cores, or takes them back.
  void ToggleLease() {
    if (operator_ != nullptr) {
      service->CloseSession(operator_->id());
      operator_ = nullptr;
      return;
    }
    auto opened = service->OpenSession({1, 0, {}, "rknnctl", true},
                                       std::make_shared<Ledgered>(), nullptr);
    ASSERT_TRUE(opened.ok());
    operator_ = *std::move(opened);
    service->Lease(operator_->id(), 1 + Below(7), "bench",
                   [](const absl::Status&) {});
  }

  void Step() {
    Client& client = clients_[Below(clients_.size())];
    const uint32_t choice = Below(1000);
    if (choice < 450) {
      SubmitSome(client);
    } else if (choice < 600) {
      RunReady();
    } else if (choice < 750) {
      device.FailJobs(Below(10) == 0 ? absl::InternalError("the core stalled")
                                     : absl::OkStatus());
      device.Release();
    } else if (choice < 800) {
      CancelSome(client);
    } else if (choice < 880) {
      PassTime(Below(30) * kMs);
    } else if (choice < 882) {
      PassTime(options.scheduling.hang);
    } else if (choice < 920) {
      service->runner().Expire();  // for nothing
    } else if (choice < 924) {
      ToggleLease();
      RunLoops();
    } else if (choice < 940) {
      const uint32_t context = 1 + Below(kContexts);
      const absl::Status set = client.session->SetQueue(
          {context, static_cast<QueuePolicy>(Below(2)), Below(4),
           Below(2) == 0 ? 0 : Below(50) * kMs});
      EXPECT_EQ(set.ok(), client.contexts[context - 1]) << set;
    } else if (choice < 970) {
      if (fences_.watched.empty()) return;
      const uint64_t token = fences_.watched.begin()->first;
      fences_.watched.erase(token);
      service->runner().FenceReady(
          token, Below(4) == 0 ? FenceState::kClosed : FenceState::kSignalled);
    } else if (choice < 997) {
      const uint32_t context = 1 + Below(kContexts);
      if (!client.contexts[context - 1]) return MakeContext(client, context);
      if (Below(4) != 0) return;
      ASSERT_TRUE(client.session->DestroyContext(context).ok());
      client.contexts[context - 1] = false;
    } else {
      client.sink->Close();
      service->CloseSession(client.session->id());
      Connect(client);
    }
  }

  void Check() {
    for (const Client& client : clients_) {
      EXPECT_EQ(client.sink->Overdue(clock.Now()), kNever)
          << "a job was not answered at its timeout";
    }
    EXPECT_EQ(device.violations(), 0U);
  }

  std::map<absl::StatusCode, uint64_t> totals_;
  testing::SilentFences fences_;
  const base::UniqueFd camera_ = *base::MakeMemfd("camera", 4096);
  std::array<Client, 3> clients_;
  std::shared_ptr<Session> operator_;
  std::mt19937 random_;
  uint32_t sequence_ = UINT32_MAX - 500;  // comes around
};

TEST_P(LifecycleSimulation, EachSubmissionIsAnsweredOnceAndInTime) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  for (int step = 0; step < 10'000 && !HasFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    Step();
    Check();
  }
  // Nobody submits any more; fences come, cores and hung jobs come back.
  if (operator_ != nullptr) ToggleLease();
  while (!fences_.watched.empty()) {
    const uint64_t token = fences_.watched.begin()->first;
    fences_.watched.erase(token);
    service->runner().FenceReady(token, FenceState::kSignalled);
  }
  RunReady();
  while (device.Release()) RunReady();
  PassTime(options.scheduling.fence_timeout);  // the longest there is
  for (const Client& client : clients_) {
    EXPECT_EQ(client.sink->waiting(), 0U) << "never answered";
    EXPECT_LE(client.sink->told_drops(),
              client.sink->answers(absl::StatusCode::kAborted));
    Count(client);
  }
  // It is no history where this is missing.
  for (const auto code :
       {absl::StatusCode::kOk, absl::StatusCode::kAborted,
        absl::StatusCode::kCancelled, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kResourceExhausted, absl::StatusCode::kNotFound,
        absl::StatusCode::kInternal, absl::StatusCode::kFailedPrecondition}) {
    EXPECT_GT(totals_[code], 5U) << absl::StatusCodeToString(code);
  }
  EXPECT_GT(service->Status().jobs_hung, 0U);
  EXPECT_GT(service->Status().jobs_shared, 5U);
  EXPECT_EQ(service->Status().jobs_queued, 0U);
  EXPECT_EQ(service->Status().jobs_running, 0U);
  EXPECT_EQ(waker.alarm, kNever);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LifecycleSimulation, ::testing::Range(1U, 21U));

// The same with threads: what the sanitizer is to look at.
class LifecycleThreadsTest : public testing::CoreTest {};

TEST_F(LifecycleThreadsTest, WorkersAlarmAndDeviceMayMeetAtAnyJob) {
  constexpr uint32_t kJobs = 4000, kSlots = 24;
  options.scheduling.hang = 20 * kMs;
  StartService();
  const auto sink = std::make_shared<Ledgered>();
  auto opened =
      service->OpenSession({1, 1000, {}, "cam", false}, sink, nullptr);
  ASSERT_TRUE(opened.ok());
  const testing::TestSession session{*opened, nullptr, nullptr};
  for (uint32_t context = 1; context <= 3; ++context) {
    MakeReady(session, context, "bytes=16 internal=4096", 0,
              context == 3 ? 3 : 0);
  }
  ASSERT_TRUE(session->SetQueue({1, QueuePolicy::kNewest, 2, 8 * kMs}).ok());
  device.HoldJobs(true);

  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        service->runner().RunReady();
        service->runner().Expire();
        std::this_thread::yield();
      }
    });
  }
  threads.emplace_back([&] {
    while (!done) {
      clock.Advance(kMs / 4);
      device.Release();
      std::this_thread::yield();
    }
  });
  std::mt19937 random(5);
  for (uint32_t i = 1; i <= kJobs;) {
    const uint32_t slot = static_cast<uint32_t>(random() % kSlots);
    if (sink->Has(slot)) {
      std::this_thread::yield();
      continue;
    }
    JobSubmission job;
    job.context = 1 + i % 3;
    job.slot = slot;
    job.sequence = i;
    job.frame = i % 5;
    const bool cancel = i % 16 == 0;
    if (cancel) job.operation = JobSubmission::Operation::kCancel;
    if (i % 2 == 0) job.timeout_ms = 1 + random() % 4;
    if (i % 5 == 0) job.deadline = kMs;
    sink->Expect(slot, {i, job.frame, kNever, cancel});
    ASSERT_TRUE(session->gate()->Submit(job).ok());
    ++i;
  }
  while (sink->waiting() != 0) std::this_thread::yield();
  done = true;
  for (std::thread& thread : threads) thread.join();
  device.HoldJobs(false);
  while (device.Release()) {
  }
  EXPECT_EQ(service->Status().jobs_running, 0U);
  EXPECT_EQ(device.violations(), 0U);
}

// And with what several sessions may do to each other's jobs: they share runs,
// end, and an operator leases cores.
TEST_F(LifecycleThreadsTest, SharedRunsLeasesAndSessionsThatGoMayMeetThem) {
  constexpr uint32_t kSteps = 3000, kSlots = 8;
  options.scheduling.hang = 20 * kMs;
  StartService();
  device.HoldJobs(true);
  const base::UniqueFd camera = *base::MakeMemfd("camera", 4096);
  struct Client {
    std::shared_ptr<Session> session;
    std::shared_ptr<Ledgered> sink;
  };
  std::array<Client, 3> clients;
  int32_t pid = 1;
  const auto connect = [&](Client& client) {
    client.sink = std::make_shared<Ledgered>();
    auto opened = service->OpenSession({++pid, 1000, {}, "cam", false},
                                       client.sink, nullptr);
    ASSERT_TRUE(opened.ok());
    client.session = *std::move(opened);
    const testing::TestSession session{client.session, nullptr, nullptr};
    MakeReady(session, 1, "bytes=16 internal=4096", 0, pid % 3 == 0 ? 1 : 0);
    ASSERT_TRUE(ImportNow(session, 1, *base::Duplicate(camera.get()), 0).ok());
    ASSERT_TRUE(
        session->Bind(BindTo(1, driver::Direction::kInput, 0, 1, 4096)).ok());
  };
  for (Client& client : clients) connect(client);

  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        service->runner().RunReady();
        service->runner().Expire();
        std::this_thread::yield();
      }
    });
  }
  threads.emplace_back([&] {
    for (uint32_t i = 1; !done; ++i) {
      clock.Advance(kMs / 4);
      device.FailJobs(i % 7 == 0 ? absl::InternalError("the core stalled")
                                 : absl::OkStatus());
      device.Release();
      std::this_thread::yield();
    }
  });
  std::mt19937 random(7);
  std::shared_ptr<Session> lessee;
  // Threads decide when runs meet: it goes on until some have been shared.
  const auto goes_on = [&](uint32_t step) {
    return step <= kSteps ||
           (step <= 100 * kSteps && service->Status().jobs_shared == 0);
  };
  for (uint32_t i = 1; goes_on(i); ++i) {
    Client& client = clients[random() % clients.size()];
    if (i % 50 == 0 && lessee == nullptr) {
      auto opened = service->OpenSession({1, 0, {}, "rknnctl", true},
                                         std::make_shared<Ledgered>(), nullptr);
      ASSERT_TRUE(opened.ok());
      lessee = *std::move(opened);
      service->Lease(lessee->id(), 1 + static_cast<uint32_t>(random() % 7),
                     "bench", [](const absl::Status&) {});
    } else if (i % 50 == 0) {
      service->CloseSession(lessee->id());
      lessee = nullptr;
    } else if (i % 91 == 0) {
      // Threads may be at its last answers: each submission gets one at most.
      service->CloseSession(client.session->id());
      connect(client);
    }
    RunLoops();
    const uint32_t slot = static_cast<uint32_t>(random() % kSlots);
    if (client.sink->Has(slot)) {
      std::this_thread::yield();
      continue;
    }
    JobSubmission job;
    job.context = 1;
    job.slot = slot;
    job.sequence = i;
    job.frame = 1 + i / 8;
    job.shared = true;
    if (i % 3 == 0) job.timeout_ms = 1 + static_cast<uint32_t>(random() % 4);
    client.sink->Expect(slot, {i, job.frame});
    ASSERT_TRUE(client.session->gate()->Submit(job).ok());
  }
  if (lessee != nullptr) service->CloseSession(lessee->id());
  for (const Client& client : clients) {
    while (client.sink->waiting() != 0) std::this_thread::yield();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  device.HoldJobs(false);
  while (device.Release()) {
  }
  EXPECT_GT(service->Status().jobs_shared, 0U);
  EXPECT_EQ(service->Status().jobs_queued, 0U);
  EXPECT_EQ(service->Status().jobs_running, 0U);
  EXPECT_EQ(device.violations(), 0U);
}

}  // namespace
}  // namespace rknnd::core
