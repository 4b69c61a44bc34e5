// The hot path of the transport. What is read here from clients is read by
// RingEndpoint, which trusts none of it; a doorbell's rate is the other thing
// a client controls, and RingTable sees to it.

#include "daemon/transport/session/ring/workers.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/posix/blocked_signals.h"
#include "base/posix/hot_path.h"
#include "base/posix/socket.h"
#include "base/posix/spinning.h"
#include "base/posix/time_slice.h"
#include "base/status/status.h"

namespace rknnd::transport {
namespace {

bool AddToSet(int epoll, int fd, uint32_t events, WorkerEvent kind) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = EventTag(kind);
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

const base::Clock* OrMonotonic(const base::Clock* clock) {
  static const base::MonotonicClock monotonic;
  return clock != nullptr ? clock : &monotonic;
}

// One thread adds, others read.
void Count(std::atomic<uint64_t>& counter, uint64_t more = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + more,
                std::memory_order_relaxed);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workers>> Workers::Create(
    base::EventLoop* loop, const WorkersOptions& options) {
  base::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  base::UniqueFd busy_epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid() || !busy_epoll.valid()) {
    return base::ToStatus(base::ErrnoError(errno, "epoll_create1"));
  }
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd kick,
                         base::ToStatusOr(base::MakeEventFd()));
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd stop,
                         base::ToStatusOr(base::MakeEventFd()));
  base::UniqueFd timer(
      timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer.valid()) {
    return base::ToStatus(base::ErrnoError(errno, "timerfd_create"));
  }
  // `stop` is level-triggered: one signal ends every worker. The timer is never
  // read: each of its expiries is an edge.
  if (!AddToSet(epoll.get(), kick.get(), EPOLLIN | EPOLLET,
                WorkerEvent::kKick) ||
      !AddToSet(epoll.get(), timer.get(), EPOLLIN | EPOLLET,
                WorkerEvent::kTimer) ||
      !AddToSet(epoll.get(), stop.get(), EPOLLIN, WorkerEvent::kStop) ||
      !AddToSet(busy_epoll.get(), stop.get(), EPOLLIN, WorkerEvent::kStop)) {
    return base::ToStatus(base::ErrnoError(errno, "epoll_ctl"));
  }
  return std::unique_ptr<Workers>(
      new Workers(loop, options, std::move(epoll), std::move(busy_epoll),
                  std::move(kick), std::move(timer), std::move(stop)));
}

Workers::Workers(base::EventLoop* loop, const WorkersOptions& options,
                 base::UniqueFd epoll, base::UniqueFd busy_epoll,
                 base::UniqueFd kick, base::UniqueFd timer, base::UniqueFd stop)
    : loop_(loop),
      clock_(options.clock),
      prompt_{std::move(epoll), Spin(options.spin, base::UsableCpus() == 1),
              true},
      busy_{std::move(busy_epoll), Spin(0, false), false},
      kick_(std::move(kick)),
      timer_(std::move(timer)),
      stop_(std::move(stop)),
      self_(std::make_shared<Workers*>(this)),
      rings_(prompt_.epoll.get(), busy_.epoll.get(), OrMonotonic(clock_)) {}

Workers::~Workers() {
  Stop();
  if (flood_timer_ != 0) loop_->CancelTimer(flood_timer_);
}

void Workers::Start(uint32_t count, core::Runner* runner,
                    ViolationHandler violation) {
  runner_ = runner;
  violation_ = std::move(violation);
  const base::BlockedSignals blocked;
  for (uint32_t i = 0; i < count; ++i) StartWorker(&prompt_);
  for (uint32_t i = 0; i < count; ++i) StartWorker(&busy_);
}

void Workers::StartWorker(Crew* crew) {
  workers_.push_back(std::make_unique<Worker>(crew));
  Worker& worker = *workers_.back();
  worker.thread = std::thread([this, &worker] { RunWorker(worker); });
  pthread_setname_np(worker.thread.native_handle(), "rknnd-worker");
}

void Workers::Stop() {
  prompt_.spin.Stop();
  busy_.spin.Stop();
  base::SignalEventFd(stop_.get());
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

absl::Status Workers::Add(core::SessionId session,
                          std::shared_ptr<RingEndpoint> ring,
                          const std::string& user) {
  return rings_.Add(session, std::move(ring), user);
}

void Workers::Remove(core::SessionId session) { rings_.Remove(session); }

void Workers::WakeOne() { base::SignalEventFd(kick_.get()); }

void Workers::ExpireBy(base::Nanoseconds when) {
  // The usual case, without a lock: something is due before. Who looks for what
  // has expired says first that nothing is armed (RunWorker), and its look
  // finds what was there before this call.
  if (expire_by_.load() <= when) return;
  base::MutexLock lock(timer_mutex_);
  if (expire_by_.load() <= when) return;
  expire_by_.store(when);
  // An expiry in the past is one at once; none at all would be 0.
  base::Nanoseconds at = when;
  int flags = TFD_TIMER_ABSTIME;
  if (clock_ != nullptr) {
    at = when - clock_->Now();
    flags = 0;
  }
  at = std::max<base::Nanoseconds>(at, 1);
  itimerspec timer{};
  timer.it_value.tv_sec = static_cast<time_t>(at / base::kSecond);
  timer.it_value.tv_nsec = static_cast<long>(at % base::kSecond);  // NOLINT
  timerfd_settime(timer_.get(), flags, &timer, nullptr);
}

WorkerCounts Workers::counts() const {
  WorkerCounts counts;
  for (const auto& worker : workers_) {
    const uint64_t wakes = worker->wakes.load(std::memory_order_relaxed);
    counts.wakes += wakes;
    if (worker->crew == &busy_) counts.busy_wakes += wakes;
    counts.empty += worker->empty.load(std::memory_order_relaxed);
    counts.penalties += worker->penalties.load(std::memory_order_relaxed);
    counts.spins += worker->spins.load(std::memory_order_relaxed);
    counts.caught += worker->caught.load(std::memory_order_relaxed);
  }
  return counts;
}

bool Workers::HasEvent(const Crew& crew) {
  // A set of fds can itself be polled.
  pollfd set{crew.epoll.get(), POLLIN, 0};
  return poll(&set, 1, 0) > 0;
}

RKNND_HOT_PATH uint64_t Workers::Sleep(Worker& self) {
  Crew& crew = *self.crew;
  // One at a time: the other events are for the other workers.
  epoll_event event{};
  crew.spin.BeginSleep();
  self.pulse.Step(core::WorkerPulse::At::kAsleep);
  const base::MonotonicClock clock;
  const base::Nanoseconds since = clock.Now();
  const int count = epoll_wait(crew.epoll.get(), &event, 1, -1);
  if (clock.Now() - since >= base::kColdAfter) base::FetchHotPath();
  self.pulse.Step(core::WorkerPulse::At::kWork);
  crew.spin.EndSleep();
  return count > 0 ? event.data.u64 : 0;
}

RKNND_HOT_PATH void Workers::RunWorker(Worker& self) {
  core::WorkerPulse::SetOfThread(&self.pulse);
  // On a busy CPU a program's frame would wait for the end of somebody's turn
  // before its worker even looks at it.
  if (self.crew->short_turns) base::AskForSlice(base::kShortestSlice);
  runner_->EnterWorker();
  fences_->EnterWorker(self.crew->epoll.get());
  RingWakes wakes(prompt_.spin.one_cpu());
  for (;;) {
    const uint64_t tag = Sleep(self);
    if (tag == 0) continue;
    if (EventKind(tag) == WorkerEvent::kStop) return;
    Count(self.wakes);
    switch (EventKind(tag)) {
      case WorkerEvent::kDoorbell:
        Serve(self, EventNumber(tag));
        break;
      case WorkerEvent::kKick:
        for (const RingTable::Number number : rings_.TakeFound()) {
          Serve(self, number);
        }
        runner_->RunReady();
        break;
      case WorkerEvent::kTimer:
        // Before the look, which may arm it anew.
        expire_by_.store(kNever);
        runner_->Expire();
        runner_->RunReady();
        break;
      case WorkerEvent::kFence:
        fences_->OnFenceEvent(EventNumber(tag));
        runner_->RunReady();
        break;
      case WorkerEvent::kStop:
        break;
    }
    // A client that goes on submitting may keep this worker as long as another
    // one sleeps and takes what else there is; the core goes to whose turn it
    // is.
    while (WakeAndServe(self, wakes) || SpinAndServe(self)) {
    }
    runner_->ClearIdle();
  }
}

RKNND_HOT_PATH void Workers::Serve(Worker& self, RingTable::Number number,
                                   std::optional<uint32_t> seen) {
  // It may go from ring to ring for as long as clients are quick.
  self.pulse.Step(core::WorkerPulse::At::kWork);
  const RingTable::Served served = rings_.Serve(number, seen);
  if (served.entries > 0) {
    self.recent.Note(number);
  } else if (served.session != 0) {
    Count(self.empty);
  }
  if (!served.violation.ok()) {
    // As an Error: a Status shared by two threads counts its users inside a
    // library that the thread sanitizer cannot see into.
    loop_->Post([self = std::weak_ptr<Workers*>(self_),
                 session = served.session,
                 reason = base::ToError(served.violation)] {
      const auto workers = self.lock();
      if (workers == nullptr) return;
      (*workers)->violation_(session, base::ToStatus(reason));
    });
  }
  if (served.floods) {
    Count(self.penalties);
    loop_->Post([self = std::weak_ptr<Workers*>(self_), number] {
      const auto workers = self.lock();
      if (workers == nullptr) return;
      (*workers)->rings_.Punish(number);
      (*workers)->PollFlooders();
    });
  }
  if (served.entries > 0) runner_->RunReady();
}

RKNND_HOT_PATH bool Workers::WakeAndServe(Worker& self, RingWakes& wakes) {
  if (!self.crew->spin.MayGoOn()) {
    wakes.WakeAll();
    return false;
  }
  struct Found {
    RingTable::Number number = 0;
    uint32_t seen = 0;
  };
  std::array<Found, RingWakes::kMost> found;
  size_t count = 0;
  wakes.WakeAllAndLook([&](RingTable::Number number, uint32_t seen) {
    // Several of one ring are one look.
    for (size_t i = 0; i < count; ++i) {
      if (found[i].number == number) return;
    }
    found[count++] = {number, seen};
  });
  for (size_t i = 0; i < count; ++i) {
    Serve(self, found[i].number, found[i].seen);
  }
  return count > 0;
}

RKNND_HOT_PATH bool Workers::SpinAndServe(Worker& self) {
  Spin& spin = self.crew->spin;
  if (!spin.Begin()) return false;
  struct Held {
    RingTable::Number number = 0;
    std::shared_ptr<RingEndpoint> ring;
    uint32_t seen = 0;
  };
  std::array<Held, RecentRings::kRings> held;
  size_t count = 0;
  for (const RingTable::Number number : self.recent.rings()) {
    if (number == 0) break;
    held[count].ring = rings_.Hold(number);
    if (held[count].ring == nullptr || !held[count].ring->BeginPolling()) {
      continue;
    }
    held[count].number = number;
    ++count;
  }
  Count(self.spins);
  base::Nanoseconds late = 0;
  const auto ready = [&] {
    for (size_t i = 0; i < count; ++i) {
      if (held[i].ring->HasEntries()) return true;
    }
    return !spin.MayGoOn();
  };
  if (spin.one_cpu()) {
    const base::MonotonicClock clock;
    const base::Nanoseconds begun = clock.Now();
    if (count > 0) base::YieldFor(ready);
    const base::Nanoseconds took = clock.Now() - begun;
    if (took >= base::kLongYield) late = took;
  } else if (count > 0) {
    base::SpinFor(base::MonotonicClock(), spin.longest(), ready);
  }
  bool caught = false;
  for (size_t i = 0; i < count; ++i) {
    held[i].seen = held[i].ring->taken();
    // From here on each of them rings again.
    if (held[i].ring->EndPolling()) {
      caught = true;
    } else {
      held[i].number = 0;
    }
    held[i].ring.reset();
  }
  // Before the jobs: another worker may wait awake while this one runs them.
  // However long the CPU was gone, nobody lost by it who had submitted nothing.
  spin.End(caught, caught ? late : 0);
  if (!caught) return false;
  Count(self.caught);
  for (size_t i = 0; i < count; ++i) {
    if (held[i].number != 0) Serve(self, held[i].number, held[i].seen);
  }
  return true;
}

void Workers::PollFlooders() {
  if (flood_timer_ != 0) loop_->CancelTimer(flood_timer_);
  flood_timer_ = 0;
  bool found = false;
  const bool anybody = rings_.PollFlooders(&found);
  if (found) WakeOne();
  if (anybody) {
    flood_timer_ = loop_->RunAfter(kFloodPoll, [this] {
      flood_timer_ = 0;
      PollFlooders();
    });
  }
}

}  // namespace rknnd::transport
