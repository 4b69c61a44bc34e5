// Workers with everybody around them counted: the clients' rings in a test's
// hand, gates, runner and fences that only note what reaches them.

#ifndef DAEMON_TRANSPORT_SESSION_TESTING_WORKERS_FIXTURE_H_
#define DAEMON_TRANSPORT_SESSION_TESTING_WORKERS_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/socket.h"
#include "daemon/transport/session/ring/workers.h"

namespace rknnd::transport::testing {

// Counts what reaches it and lets a test wait for a count.
class Counter {
 public:
  void Add() {
    base::MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void WaitFor(uint64_t count) {
    base::MutexLock lock(mutex_);
    while (count_ < count) changed_.wait(mutex_);
  }
  uint64_t count() {
    base::MutexLock lock(mutex_);
    return count_;
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  uint64_t count_ RKNND_GUARDED_BY(mutex_) = 0;
};

class CountingGate final : public core::JobGate {
 public:
  absl::Status Submit(const core::JobSubmission&) override {
    jobs.Add();
    return absl::OkStatus();
  }
  Counter jobs;
};

class CountingRunner final : public core::Runner {
 public:
  void EnterWorker() override { entered.Add(); }
  void RunReady() override { runs.Add(); }
  void ClearIdle() override { rests.Add(); }
  void Expire() override { looks.Add(); }
  Counter entered, runs, rests, looks;
};

class CountingFences final : public FenceEvents {
 public:
  void EnterWorker(int /*epoll*/) override {}
  void OnFenceEvent(uint64_t number) override {
    last.store(number);
    events.Add();
  }
  Counter events;
  std::atomic<uint64_t> last{0};
};

// One client of kFeatureSpin: its end of a ring.
class Client {
 public:
  Client() {
    auto created = RingEndpoint::Create();
    EXPECT_TRUE(created.ok());
    endpoint = *std::move(created);
    endpoint->Open(gate, /*marks_sleepers=*/true);
    auto mapped =
        base::Mapping::OfFd(endpoint->memory_fd(), 0, wire::kRingBytes,
                            base::Mapping::Access::kReadWrite);
    EXPECT_TRUE(mapped.ok());
    mapping = *std::move(mapped);
    ring = reinterpret_cast<wire::Ring*>(mapping.data());
  }

  void Ring() const { base::SignalEventFd(endpoint->doorbell_fd()); }
  // After each entry.
  void RingIfNeeded() const {
    if (ring->header.polled.load() == 0) Ring();
  }
  void Push(uint32_t operation = 1) const {
    const uint32_t tail = ring->header.tail.load();
    wire::Submission& entry = ring->submissions[tail % wire::kRingEntries];
    entry = {};
    entry.operation = operation;
    entry.slot = tail % wire::kRingEntries;
    entry.sequence = tail + 1;
    ring->header.tail.store(tail + 1);
  }

  std::shared_ptr<CountingGate> gate = std::make_shared<CountingGate>();
  std::shared_ptr<RingEndpoint> endpoint;
  base::Mapping mapping;
  wire::Ring* ring = nullptr;
};

class WorkersFixture : public ::testing::Test {
 protected:
  void SetUp() override { Start({}); }
  void Start(const WorkersOptions& options) {
    auto loop = base::EventLoop::Create(&clock_);
    ASSERT_TRUE(loop.ok());
    loop_ = *std::move(loop);
    auto workers = Workers::Create(loop_.get(), options);
    ASSERT_TRUE(workers.ok());
    workers_ = *std::move(workers);
    workers_->set_fences(&fences_);
    workers_->Start(2, &runner_,
                    [this](core::SessionId session, const absl::Status& why) {
                      violators_.push_back(session);
                      reason_ = why;
                      loop_->Quit();
                    });
  }
  void TearDown() override {
    workers_.reset();
    loop_.reset();
  }

  base::MonotonicClock clock_;
  std::unique_ptr<base::EventLoop> loop_;
  CountingRunner runner_;
  CountingFences fences_;
  std::unique_ptr<Workers> workers_;
  std::vector<core::SessionId> violators_;
  absl::Status reason_;
};

}  // namespace rknnd::transport::testing

#endif  // DAEMON_TRANSPORT_SESSION_TESTING_WORKERS_FIXTURE_H_
