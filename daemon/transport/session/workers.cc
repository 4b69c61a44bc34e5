// The hot path of the transport. What is read here from clients is read by
// RingEndpoint, which trusts none of it; a doorbell's rate is the other thing
// a client controls.

#include "daemon/transport/session/workers.h"

#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/posix/blocked_signals.h"
#include "base/posix/socket.h"
#include "base/status/status.h"

namespace rknnd::transport {
namespace {

// epoll data that are no session (sessions count from 1).
constexpr uint64_t kKick = 0;
constexpr uint64_t kStop = ~uint64_t{0};

// Free wake-ups that find nothing. A client with many threads submits bursts
// that one drain takes; each entry earns its doorbell back.
constexpr uint32_t kBudget = 64;
// After a penalty a session is on probation.
constexpr uint32_t kProbationBudget = 8;
constexpr base::Nanoseconds kPollPeriod = base::kMillisecond;
constexpr base::Nanoseconds kFirstPenalty = 100 * base::kMillisecond;
// A session that floods for ever wakes workers eight times a second.
constexpr base::Nanoseconds kLongestPenalty = base::kSecond;

bool AddToSet(int epoll, int fd, uint32_t events, uint64_t data) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workers>> Workers::Create(
    base::EventLoop* loop) {
  base::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) {
    return base::ToStatus(base::ErrnoError(errno, "epoll_create1"));
  }
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd kick,
                         base::ToStatusOr(base::MakeEventFd()));
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd stop,
                         base::ToStatusOr(base::MakeEventFd()));
  // `stop` is level-triggered: one signal ends every worker.
  if (!AddToSet(epoll.get(), kick.get(), EPOLLIN | EPOLLET, kKick) ||
      !AddToSet(epoll.get(), stop.get(), EPOLLIN, kStop)) {
    return base::ToStatus(base::ErrnoError(errno, "epoll_ctl"));
  }
  return std::unique_ptr<Workers>(
      new Workers(loop, std::move(epoll), std::move(kick), std::move(stop)));
}

Workers::Workers(base::EventLoop* loop, base::UniqueFd epoll,
                 base::UniqueFd kick, base::UniqueFd stop)
    : loop_(loop),
      epoll_(std::move(epoll)),
      kick_(std::move(kick)),
      stop_(std::move(stop)),
      self_(std::make_shared<Workers*>(this)) {}

Workers::~Workers() {
  Stop();
  if (timer_ != 0) loop_->CancelTimer(timer_);
}

void Workers::Start(uint32_t count, core::Runner* runner,
                    ViolationHandler violation) {
  runner_ = runner;
  violation_ = std::move(violation);
  const base::BlockedSignals blocked;
  for (uint32_t i = 0; i < count; ++i) {
    threads_.emplace_back([this] { RunWorker(); });
  }
}

void Workers::Stop() {
  base::SignalEventFd(stop_.get());
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

bool Workers::WatchDoorbell(core::SessionId session, int doorbell) const {
  return AddToSet(epoll_.get(), doorbell, EPOLLIN | EPOLLET, session);
}

absl::Status Workers::Add(core::SessionId session,
                          std::shared_ptr<RingEndpoint> ring) {
  const int doorbell = ring->doorbell_fd();
  {
    base::MutexLock lock(mutex_);
    Registration& registration = sessions_[session];
    registration.ring = std::move(ring);
    registration.budget = kBudget;
  }
  if (!WatchDoorbell(session, doorbell)) {
    const absl::Status status =
        base::ToStatus(base::ErrnoError(errno, "watch a session's doorbell"));
    base::MutexLock lock(mutex_);
    sessions_.erase(session);
    return status;
  }
  return absl::OkStatus();
}

void Workers::Remove(core::SessionId session) {
  std::shared_ptr<RingEndpoint> ring;
  {
    base::MutexLock lock(mutex_);
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return;
    ring = std::move(found->second.ring);
    sessions_.erase(found);
    // Under the lock: a worker that is about to move the session to the timer
    // finds it gone. Fails when it is there already.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ring->doorbell_fd(), nullptr);
  }
  ring->Close();
}

void Workers::WakeOne() { base::SignalEventFd(kick_.get()); }

void Workers::RunWorker() {
  pthread_setname_np(pthread_self(), "rknnd-worker");
  runner_->EnterWorker();
  for (;;) {
    // One at a time: the other doorbells are for the other workers.
    epoll_event event{};
    const int count = epoll_wait(epoll_.get(), &event, 1, -1);
    if (count <= 0) continue;
    if (event.data.u64 == kStop) return;
    counters_.wakes.fetch_add(1, std::memory_order_relaxed);
    if (event.data.u64 == kKick) {
      ServePending();
      runner_->RunReady();
    } else {
      Serve(event.data.u64);
    }
  }
}

void Workers::Serve(core::SessionId session) {
  std::shared_ptr<RingEndpoint> ring;
  {
    base::MutexLock lock(mutex_);
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return;
    ring = found->second.ring;
  }
  const RingEndpoint::Drained drained = ring->Drain();
  if (!drained.violation.ok()) {
    // As an Error: a Status shared by two threads counts its users inside a
    // library that the thread sanitizer cannot see into.
    loop_->Post([self = std::weak_ptr<Workers*>(self_), session,
                 reason = base::ToError(drained.violation)] {
      const auto workers = self.lock();
      if (workers == nullptr) return;
      (*workers)->violation_(session, base::ToStatus(reason));
    });
  }
  if (Charge(session, drained.entries)) {
    loop_->Post([self = std::weak_ptr<Workers*>(self_)] {
      const auto workers = self.lock();
      if (workers != nullptr) (*workers)->PollFlooders();
    });
  }
  if (drained.entries > 0) runner_->RunReady();
}

bool Workers::Charge(core::SessionId session, uint32_t entries) {
  base::MutexLock lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return false;
  Registration& registration = found->second;
  if (entries > 0) {
    registration.budget = std::min(kBudget, registration.budget + entries);
    // Paid back in full: the next flood is a first one again.
    if (registration.budget == kBudget) registration.penalty = 0;
    return false;
  }
  counters_.empty.fetch_add(1, std::memory_order_relaxed);
  if (registration.state == State::kTimer) return false;
  if (registration.budget > 0) {
    --registration.budget;
    return false;
  }
  registration.state = State::kTimer;
  registration.penalty =
      registration.penalty == 0
          ? kFirstPenalty
          : std::min(kLongestPenalty, registration.penalty * 2);
  registration.ticks_left =
      static_cast<uint32_t>(registration.penalty / kPollPeriod);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, registration.ring->doorbell_fd(),
            nullptr);
  counters_.penalties.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Workers::ServePending() {
  std::vector<core::SessionId> sessions;
  {
    base::MutexLock lock(mutex_);
    sessions.swap(pending_);
    for (const core::SessionId session : sessions) {
      const auto found = sessions_.find(session);
      if (found != sessions_.end()) found->second.pending = false;
    }
  }
  for (const core::SessionId session : sessions) Serve(session);
}

void Workers::PollFlooders() {
  if (timer_ != 0) loop_->CancelTimer(timer_);
  timer_ = 0;
  bool anybody = false;
  bool found_entries = false;
  {
    base::MutexLock lock(mutex_);
    for (auto& [session, registration] : sessions_) {
      if (registration.state != State::kTimer) continue;
      if (registration.ticks_left > 0) {
        --registration.ticks_left;
        anybody = true;
        if (!registration.pending && registration.ring->HasEntries()) {
          registration.pending = true;
          pending_.push_back(session);
          found_entries = true;
        }
        continue;
      }
      registration.state = State::kDoorbell;
      registration.budget = kProbationBudget;
      // Adding a doorbell that has rung wakes a worker at once, so that no
      // entry of the last period is missed.
      WatchDoorbell(session, registration.ring->doorbell_fd());
    }
  }
  if (found_entries) WakeOne();
  if (anybody) {
    timer_ = loop_->RunAfter(kPollPeriod, [this] {
      timer_ = 0;
      PollFlooders();
    });
  }
}

}  // namespace rknnd::transport
