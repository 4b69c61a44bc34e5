// Tests of the whole: reports that add up, draining, and many threads at once.

#include "daemon/core/service.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

class ServiceTest : public testing::CoreTest {};

TEST_F(ServiceTest, MissingPartIsRefused) {
  ServiceOptions broken = options;
  broken.waker = nullptr;
  EXPECT_FALSE(Service::Create(broken).ok());
}

TEST_F(ServiceTest, SessionNumbersAreNotReused) {
  const TestSession first = Open();
  service->CloseSession(first->id());
  EXPECT_NE(Open()->id(), first->id());
}

TEST_F(ServiceTest, OtherMachinesLeaveRoomForLocalPrograms) {
  options.sessions = 4;
  service.reset();
  service = *Service::Create(options);
  SessionPeer remote;
  remote.address = "192.0.2.7:40112";
  std::vector<SessionId> ids;
  for (int i = 0; i < 3; ++i) {
    const auto opened = service->OpenSession(remote, nullptr, nullptr);
    ASSERT_TRUE(opened.ok()) << opened.status();
    ids.push_back((*opened)->id());
  }
  const auto refused = service->OpenSession(remote, nullptr, nullptr);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  const auto local = service->OpenSession({}, nullptr, nullptr);
  ASSERT_TRUE(local.ok()) << local.status();
  ids.push_back((*local)->id());
  for (const SessionId id : ids) service->CloseSession(id);
}

TEST_F(ServiceTest, MemoryWithoutSharingCountsModelsPerContext) {
  const TestSession first = Open(1);
  const TestSession second = Open(2);
  MakeReady(first, 1, "weight=1000 internal=4096");
  MakeReady(second, 1, "weight=1000 internal=4096");
  const MemoryReport report = service->Memory();
  EXPECT_EQ(report.kinds.weight, 1000U);
  EXPECT_EQ(report.kinds.internal, 3 * 4096U);
  EXPECT_EQ(report.kinds.io, 4 * 4096U);
  EXPECT_EQ(report.unshared_total, 2 * (1000U + 4096U) + 4 * 4096U);
}

TEST_F(ServiceTest, StatusCountsWhatThereIs) {
  const TestSession session = Open();
  MakeReady(session, 1, "weight=1000");
  clock.Advance(5 * base::kSecond);
  const StatusReport status = service->Status();
  EXPECT_EQ(status.uptime, 5 * base::kSecond);
  EXPECT_EQ(status.sessions, 1U);
  EXPECT_EQ(status.models, 1U);
  EXPECT_EQ(status.contexts, 1U);
  EXPECT_EQ(status.buffers, 2U);
  EXPECT_EQ(status.memory.total(), 1000U + 2 * 4096U);
}

TEST_F(ServiceTest, DrainFinishesQueuedJobsAndThenTells) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  ASSERT_TRUE(Submit(session, 1, 1).ok());
  RunReady();
  bool drained = false;
  DrainService([&] { drained = true; });
  RunLoops();
  EXPECT_FALSE(drained);

  ASSERT_TRUE(device.Release());
  RunReady();
  RunLoops();
  EXPECT_FALSE(drained);
  ASSERT_TRUE(device.Release());
  RunLoops();

  EXPECT_TRUE(drained);
  EXPECT_EQ(session.sink->count(), 2U);
}

TEST_F(ServiceTest, DrainOfAnIdleServiceIsDoneAtOnce) {
  int drained = 0;
  DrainService([&] { ++drained; });
  DrainService([&] { ++drained; });
  RunLoops();
  EXPECT_EQ(drained, 2);
}

TEST_F(ServiceTest, UndoneDrainTakesWorkAgain) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  std::vector<bool> told;
  service->set_draining([&](bool draining) { told.push_back(draining); });
  DrainService();
  const TestSession late = Open();
  EXPECT_EQ(Create(late, 1, "bytes=16")->code(),
            absl::StatusCode::kUnavailable);

  EXPECT_TRUE(service->UndoDrain().ok());

  EXPECT_FALSE(service->Status().draining);
  MakeReady(late, 1, "bytes=16");
  ASSERT_TRUE(Submit(late, 1, 0).ok());
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_TRUE(late.sink->last().status.ok()) << late.sink->last().status;
  EXPECT_TRUE(session.sink->last().status.ok()) << session.sink->last().status;
  EXPECT_EQ(told, (std::vector<bool>{true, false}));
}

TEST_F(ServiceTest, WhoWaitsForADrainHearsThatItWasUndone) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  std::vector<absl::Status> heard;
  service->BeginDrain(
      Drain::Reason::kOperator,
      [&](const absl::Status& status) { heard.push_back(status); });
  EXPECT_TRUE(service->UndoDrain().ok());
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].code(), absl::StatusCode::kAborted);
  RunReady();
  RunLoops();
  EXPECT_EQ(heard.size(), 1U);
}

// The last job has ended, which is on its way to the loop, as the drain is
// undone and begun anew behind another job.
TEST_F(ServiceTest, AnEarlierDrainsEndIsNoEndOfTheNext) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  service->BeginDrain(Drain::Reason::kOperator, [](const absl::Status&) {});
  EXPECT_TRUE(service->UndoDrain().ok());
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  bool drained = false;
  DrainService([&] { drained = true; });
  RunLoops();
  EXPECT_FALSE(drained);
  RunReady();
  RunLoops();
  EXPECT_TRUE(drained);
}

TEST_F(ServiceTest, OnlyADrainThatEndsNotInAStopCanBeUndone) {
  const absl::Status none = service->UndoDrain();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()),
              ::testing::HasSubstr("not draining"));
  DrainService();
  service->BeginDrain(Drain::Reason::kStop, [](const absl::Status&) {});
  const absl::Status stops = service->UndoDrain();
  EXPECT_EQ(stops.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(stops.message()),
              ::testing::HasSubstr("being stopped"));
  EXPECT_TRUE(service->Status().draining);
}

TEST_F(ServiceTest, DrainEndsWhenTheLastSessionVanishes) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  bool drained = false;
  DrainService([&] { drained = true; });
  RunLoops();
  EXPECT_FALSE(drained);
  service->CloseSession(session->id());
  RunLoops();
  EXPECT_TRUE(drained);
}

TEST_F(ServiceTest, DrainingServiceRefusesNewWork) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  EXPECT_FALSE(service->Status().draining);
  DrainService();
  EXPECT_TRUE(service->Status().draining);
  EXPECT_EQ(Create(session, 2, "bytes=16")->code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(Upload(session, "x")->code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  EXPECT_EQ(session.sink->last().status.code(), absl::StatusCode::kUnavailable);
}

// Counts answers per slot, so that a submitter knows when its slot is free.
class CountingSink final : public CompletionSink {
 public:
  void Complete(const JobCompletion& completion) override {
    ok += completion.status.ok() ? 1 : 0;
    answers[completion.slot].fetch_add(1, std::memory_order_release);
  }
  std::atomic<uint64_t> ok{0};
  std::array<std::atomic<uint32_t>, kJobSlots> answers{};
};

// Four workers run what four clients submit, while the loop binds, destroys and
// closes: every job is answered, no core runs two, nothing is left.
TEST_F(ServiceTest, WorkersAndLoopWorkAtOnce) {
  constexpr uint32_t kClients = 4;
  constexpr uint32_t kRounds = 300;
  const std::string model = "bytes=64 internal=4096";
  std::vector<TestSession> sessions;
  std::vector<std::shared_ptr<CountingSink>> sinks;
  for (uint32_t i = 0; i < kClients; ++i) {
    sinks.push_back(std::make_shared<CountingSink>());
    auto opened = service->OpenSession({static_cast<int32_t>(i), 0, {}, "c"},
                                       sinks.back(), nullptr);
    ASSERT_TRUE(opened.ok());
    sessions.push_back({*opened, nullptr, nullptr});
    MakeReady(sessions[i], 1, model);
    MakeReady(sessions[i], 2, model);
  }

  std::vector<std::thread> workers;
  workers.reserve(kClients);
  for (uint32_t i = 0; i < kClients; ++i) {
    workers.emplace_back([&, i] {
      const auto gate = sessions[i]->gate();
      Runner& runner = service->runner();
      for (uint32_t round = 1; round <= kRounds; ++round) {
        for (uint32_t slot = 0; slot < 4; ++slot) {
          JobSubmission submission;
          submission.context = 1 + slot % 2;
          submission.slot = slot;
          submission.sequence = round;
          ASSERT_TRUE(gate->Submit(submission).ok());
        }
        runner.RunReady();
        for (uint32_t slot = 0; slot < 4; ++slot) {
          // Another worker may have it in hand.
          while (sinks[i]->answers[slot].load(std::memory_order_acquire) <
                 round) {
            runner.RunReady();
          }
        }
      }
    });
  }
  for (uint32_t round = 0; round < 100; ++round) {
    const TestSession& session = sessions[round % kClients];
    ASSERT_TRUE(AllocateNow(session, 999, 4096, 0).ok());
    ASSERT_TRUE(session
                    ->Bind(BindTo(1 + round % 2, driver::Direction::kOutput, 0,
                                  999, 4096))
                    .ok());
    ASSERT_TRUE(session->ReleaseBuffer(999).ok());
    ASSERT_TRUE(SetCoreMaskNow(session, 1, round % 3).ok());
    (void)service->Memory();
    (void)service->Status();
  }
  for (auto& worker : workers) worker.join();

  for (const auto& sink : sinks) EXPECT_EQ(sink->ok, 4 * kRounds);
  EXPECT_EQ(device.violations(), 0U);
  for (const auto& session : sessions) service->CloseSession(session->id());
  EXPECT_EQ(memory().io, 0U);
}

TEST_F(ServiceTest, SessionsCloseWhileTheirJobsRun) {
  for (int round = 0; round < 50; ++round) {
    const TestSession session = Open();
    MakeReady(session, 1, "bytes=64 internal=4096");
    std::thread worker([&] {
      const auto gate = session->gate();
      for (uint32_t slot = 0; slot < 20; ++slot) {
        JobSubmission submission;
        submission.context = 1;
        submission.slot = slot;
        if (!gate->Submit(submission).ok()) break;
        service->runner().RunReady();
      }
    });
    service->CloseSession(session->id());
    worker.join();
    service->runner().RunReady();
    EXPECT_EQ(memory().io, 0U);
  }
}

}  // namespace
}  // namespace rknnd::core
