// Both ends of the submission ring (proto/wire/ring.h) in one process: many
// threads submit, wait and give up in an order that a seed chooses, a worker
// that is rung for or looks by itself takes the entries, and others answer them
// in any order. Each answer must be that of its job. A doorbell or a wake-up
// that was left out wrongly is a thread that sleeps for good: it shows as an
// answer that does not come in time.
//
// How many jobs (RKNND_RING_JOBS) and in which order (RKNND_RING_SEED) can be
// told: what CPUs reorder is found by many jobs, not by clever ones.

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/posix/clock.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/socket.h"
#include "base/posix/unique_fd.h"
#include "client/session/ring_client.h"
#include "daemon/core/running/job_gate.h"
#include "daemon/transport/session/ring/ring_endpoint.h"

namespace rknnd {
namespace {

using client::Answer;
using client::RingClient;
using client::RingPolicy;
using client::Ticket;
using core::JobCompletion;
using core::JobSubmission;
using transport::RingEndpoint;

constexpr base::Nanoseconds kPatience = 120 * base::kSecond;

uint64_t Number(const char* variable, uint64_t otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// What the fields of job `frame` and of its answer are made of.
uint64_t Mixed(uint64_t frame, uint64_t field) {
  uint64_t x = (frame + 1) * 0x9e3779b97f4a7c15 + field * 0xbf58476d1ce4e5b9;
  x ^= x >> 29;
  return x * 0x94d049bb133111eb >> 1;
}

bool Fails(uint64_t frame) { return Mixed(frame, 0) % 8 == 0; }

std::string Message(uint64_t frame) {
  return absl::StrCat("job ", frame, " failed",
                      std::string(Mixed(frame, 1) % 200, '!'));
}

wire::Submission Job(uint64_t frame) {
  wire::Submission job{};
  job.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
  job.context = static_cast<uint32_t>(Mixed(frame, 2));
  job.frame = frame;
  job.timeout_ms = static_cast<uint32_t>(Mixed(frame, 3) % 1000 + 1);
  job.deadline_ns = Mixed(frame, 4) % 1000000000 + 1;
  job.set = static_cast<uint32_t>(Mixed(frame, 5));
  return job;
}

// Takes jobs in, and gives them out to be answered in any order.
class Jobs final : public core::JobGate {
 public:
  explicit Jobs(uint64_t count) : seen_(count) {}

  absl::Status Submit(const JobSubmission& job) override {
    const wire::Submission wanted = Job(job.frame);
    const base::MutexLock lock(mutex_);
    if (job.frame >= seen_.size() || seen_[job.frame]) {
      return absl::FailedPreconditionError("came twice, or was never sent");
    }
    seen_[job.frame] = true;
    if (job.context != wanted.context || job.timeout_ms != wanted.timeout_ms ||
        job.deadline != static_cast<base::Nanoseconds>(wanted.deadline_ns) ||
        job.set != wanted.set) {
      return absl::FailedPreconditionError("fields of another job");
    }
    waiting_.push_back(job);
    changed_.notify_one();
    return absl::OkStatus();
  }

  // Waits until there is a job to be answered; empty: the end.
  std::optional<JobSubmission> Await(std::mt19937_64* random) {
    const base::MutexLock lock(mutex_);
    while (waiting_.empty() && !ended_) changed_.wait(mutex_);
    return TakeAny(random);
  }

  std::optional<JobSubmission> Take(std::mt19937_64* random) {
    const base::MutexLock lock(mutex_);
    return TakeAny(random);
  }

  void End() {
    const base::MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  std::optional<JobSubmission> TakeAny(std::mt19937_64* random)
      RKNND_REQUIRES(mutex_) {
    if (waiting_.empty()) return std::nullopt;
    std::swap(waiting_[(*random)() % waiting_.size()], waiting_.back());
    const JobSubmission job = waiting_.back();
    waiting_.pop_back();
    return job;
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<bool> seen_ RKNND_GUARDED_BY(mutex_);
  std::deque<JobSubmission> waiting_ RKNND_GUARDED_BY(mutex_);
  bool ended_ RKNND_GUARDED_BY(mutex_) = false;
};

struct Load {
  const char* name;
  // Each end says that it waits (kFeatureSpin).
  bool marks_waits;
  int submitters;
  size_t most_of_one;  // jobs of a submitter on their way
  [[nodiscard]] bool is_one_job() const {
    return submitters == 1 && most_of_one == 1;
  }
};

class RingTest : public testing::TestWithParam<Load> {
 protected:
  RingTest()
      : count_(Number("RKNND_RING_JOBS", 200000) /
               (load_.is_one_job() ? 10 : 1)),
        seed_(Number("RKNND_RING_SEED", 1)),
        random_(seed_),
        jobs_(std::make_shared<Jobs>(count_)) {
    // Both counters wrap on the way.
    auto created =
        RingEndpoint::Create(static_cast<uint32_t>(-(random_() % count_)));
    EXPECT_TRUE(created.ok());
    endpoint_ = *std::move(created);
    endpoint_->Open(jobs_, load_.marks_waits);
    auto mapping =
        base::Mapping::OfFd(endpoint_->memory_fd(), 0, wire::kRingBytes,
                            base::Mapping::Access::kReadWrite);
    EXPECT_TRUE(mapping.ok());
    memory_ = *std::move(mapping);
    RingPolicy policy;
    policy.marks_waits = load_.marks_waits;
    policy.spin = load_.marks_waits ? 100 * base::kMicrosecond : 0;
    policy.last_sequence = static_cast<uint32_t>(-(random_() % 50));
    client_.emplace(reinterpret_cast<wire::Ring*>(memory_.data()),
                    endpoint_->doorbell_fd(), policy);
  }

  // A thread of the client's process.
  void Submit(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::pair<Ticket, uint64_t>> open;
    while (!failed_.load()) {
      const bool submits = open.size() < load_.most_of_one && random() % 2 == 0;
      if (submits) {
        const uint64_t frame = next_.fetch_add(1);
        if (frame >= count_) break;
        std::optional<Ticket> ticket;
        while (!(ticket = client_->TrySubmit(Job(frame))).has_value()) {
          if (failed_.load()) return;
          if (open.empty()) {
            client_->AwaitSlot();
          } else {
            TakeOne(&random, &open);
          }
        }
        open.emplace_back(*ticket, frame);
      } else if (!open.empty()) {
        TakeOne(&random, &open);
      }
    }
    while (!open.empty() && !failed_.load()) TakeOne(&random, &open);
  }

  void TakeOne(std::mt19937_64* random,
               std::vector<std::pair<Ticket, uint64_t>>* open) {
    std::swap((*open)[(*random)() % open->size()], open->back());
    const auto [ticket, frame] = open->back();
    open->pop_back();
    const uint64_t how = (*random)() % 16;
    if (how == 0) {
      client_->Abandon(ticket);
      return;
    }
    // Some look first, or wait for a moment, and then again.
    const bool done =
        (how == 1 && client_->Wait(ticket, 0)) ||
        (how == 2 && client_->Wait(ticket, 50 * base::kMicrosecond)) ||
        Await(ticket);
    if (failed_.load()) return;
    if (!done) {
      failed_ = true;
      ADD_FAILURE() << "job " << frame << " was not answered; seed " << seed_;
      return;
    }
    const Answer answer = client_->Take(ticket);
    const bool right = answer.queue_ns == Mixed(frame, 6) &&
                       answer.run_ns == Mixed(frame, 7) &&
                       answer.total_ns == Mixed(frame, 8) &&
                       answer.core == static_cast<uint32_t>(Mixed(frame, 9)) &&
                       answer.text == (Fails(frame) ? Message(frame) : "");
    if (right) return;
    failed_ = true;
    ADD_FAILURE() << "job " << frame
                  << " got the answer of another: " << answer.text << "; seed "
                  << seed_;
  }

  // The wake-up of the slot's last job may come as late as this. One that is
  // missing is not made up for by looking from time to time.
  bool Await(const Ticket& ticket) {
    const base::Nanoseconds end = clock_.Now() + kPatience;
    bool done = false;
    while (!done && !failed_.load()) {
      const base::Nanoseconds now = clock_.Now();
      if (now >= end) break;
      done = client_->Wait(ticket, end - now);
    }
    return done;
  }

  // The daemon's worker, until `stop_` is signalled.
  void Work(uint64_t seed) {
    std::mt19937_64 random(seed);
    const base::UniqueFd set(epoll_create1(EPOLL_CLOEXEC));
    for (const int fd : {endpoint_->doorbell_fd(), stop_.get()}) {
      epoll_event event{};
      // The doorbell is never read: each ring is an event of its own.
      event.events = EPOLLIN | EPOLLET;
      event.data.fd = fd;
      ASSERT_EQ(epoll_ctl(set.get(), EPOLL_CTL_ADD, fd, &event), 0);
    }
    for (;;) {
      epoll_event event{};
      if (epoll_wait(set.get(), &event, 1, -1) == 1 &&
          event.data.fd == stop_.get()) {
        return;
      }
      bool more = true;
      while (more && !failed_.load()) {
        Drain(&random);
        more = false;
        // Without a client that knows of it, each entry is rung for.
        if (!load_.marks_waits || random() % 4 == 0) break;
        if (!endpoint_->BeginPolling()) break;
        for (uint64_t looks = random() % (2u << random() % 16); looks > 0;
             --looks) {
          if (endpoint_->HasEntries()) Drain(&random);
        }
        more = endpoint_->EndPolling();
      }
    }
  }

  void Drain(std::mt19937_64* random) {
    const absl::Status violation = endpoint_->Drain().violation;
    // A lone job is answered by the worker: its client submits the next one
    // while the worker is about to sleep.
    if (load_.is_one_job()) {
      while (const auto job = jobs_->Take(random)) AnswerOne(*job);
    }
    if (violation.ok()) return;
    failed_ = true;
    ADD_FAILURE() << violation << "; seed " << seed_;
  }

  void AnswerAll(uint64_t seed) {
    std::mt19937_64 random(seed);
    while (const std::optional<JobSubmission> job = jobs_->Await(&random)) {
      if (random() % 8 == 0) std::this_thread::yield();
      AnswerOne(*job);
    }
  }

  void AnswerOne(const JobSubmission& job) {
    JobCompletion answer;
    answer.slot = job.slot;
    answer.sequence = job.sequence;
    answer.frame = job.frame;
    answer.queue = static_cast<base::Nanoseconds>(Mixed(job.frame, 6));
    answer.run = static_cast<base::Nanoseconds>(Mixed(job.frame, 7));
    answer.total = static_cast<base::Nanoseconds>(Mixed(job.frame, 8));
    answer.core = static_cast<uint32_t>(Mixed(job.frame, 9));
    if (Fails(job.frame)) {
      answer.status = absl::InternalError(Message(job.frame));
    }
    endpoint_->Complete(answer);
  }

  const Load load_ = GetParam();
  const uint64_t count_;
  const uint64_t seed_;
  const base::MonotonicClock clock_;
  std::mt19937_64 random_;
  const std::shared_ptr<Jobs> jobs_;
  std::shared_ptr<RingEndpoint> endpoint_;
  base::Mapping memory_;
  std::optional<RingClient> client_;
  const base::UniqueFd stop_ = *base::MakeEventFd();
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> failed_{false};
};

TEST_P(RingTest, EachJobGetsItsAnswer) {
  std::vector<std::thread> answerers, submitters;
  std::thread worker([this, seed = random_()] { Work(seed); });
  for (int i = 0; i < 2 && !load_.is_one_job(); ++i) {
    answerers.emplace_back([this, seed = random_()] { AnswerAll(seed); });
  }
  for (int i = 0; i < load_.submitters; ++i) {
    submitters.emplace_back([this, seed = random_()] { Submit(seed); });
  }
  for (std::thread& thread : submitters) thread.join();
  base::SignalEventFd(stop_.get());
  worker.join();
  jobs_->End();
  for (std::thread& thread : answerers) thread.join();
}

// With many jobs on their way, the next ring or answer wakes who was missed:
// that shows with one at a time.
INSTANTIATE_TEST_SUITE_P(
    Loads, RingTest,
    testing::Values(Load{"AllSlots", true, 4, 40}, Load{"OneJob", true, 1, 1},
                    Load{"AllSlotsOfAnOldClient", false, 4, 40},
                    Load{"OneJobOfAnOldClient", false, 1, 1}),
    [](const testing::TestParamInfo<Load>& load) { return load.param.name; });

}  // namespace
}  // namespace rknnd
