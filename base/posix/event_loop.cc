// The loop of the control plane. Its owner calls Run on the thread that is
// then "the loop"; others reach it by Post. Watched fds belong to clients that
// may do anything with the other end; here only their readiness is looked at.

#include "base/posix/event_loop.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <limits>
#include <string>
#include <utility>

#include "base/posix/socket.h"

namespace rknnd::base {
namespace {

// Of the wake-up eventfd; watches and timers count from 1.
constexpr uint64_t kWakeupId = 0;
// Ready fds taken from the kernel at a time: what is not taken is still ready.
constexpr int kEventsPerWait = 64;

uint64_t ThisThread() { return static_cast<uint64_t>(pthread_self()); }

epoll_event EventFor(uint64_t id, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  return event;
}

}  // namespace

Expected<std::unique_ptr<EventLoop>> EventLoop::Create(const Clock* clock) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoError(errno, "create an epoll set");
  Expected<UniqueFd> wakeup = MakeEventFd();
  if (!wakeup.ok()) return std::move(wakeup).error();
  epoll_event event = EventFor(kWakeupId, EPOLLIN);
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wakeup->get(), &event) != 0) {
    return ErrnoError(errno, "watch the loop's own eventfd");
  }
  return std::unique_ptr<EventLoop>(
      new EventLoop(clock, std::move(epoll), *std::move(wakeup)));
}

EventLoop::EventLoop(const Clock* clock, UniqueFd epoll, UniqueFd wakeup)
    : clock_(clock), epoll_(std::move(epoll)), wakeup_(std::move(wakeup)) {}

EventLoop::~EventLoop() {
  assert(thread_.load() == 0);
  // What a callback owns may post or unwatch when it goes: everything here is
  // still whole while it does.
  while (!timers_.empty()) timers_.extract(timers_.begin());
  while (!watches_.empty()) watches_.extract(watches_.begin());
  for (;;) {
    std::vector<std::function<void()>> tasks;
    {
      MutexLock lock(mutex_);
      tasks.swap(posted_);
    }
    if (tasks.empty()) break;
  }
}

void EventLoop::Run() {
  assert(thread_.load() == 0);
  thread_.store(ThisThread());
  for (bool quit = false; !quit;) {
    std::array<epoll_event, kEventsPerWait> events;
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsPerWait,
                                 MillisecondsToNextTimer());
    for (int i = 0; i < count; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kWakeupId) {
        uint64_t signals = 0;
        // Non-blocking, and of no interest beyond being reset.
        static_cast<void>(read(wakeup_.get(), &signals, sizeof(signals)) == 0);
        continue;
      }
      // A callback earlier in this batch may have removed this watch.
      const auto watch = watches_.find(id);
      if (watch == watches_.end()) continue;
      // Held, so that a callback may remove its own watch.
      const auto ready = watch->second.ready;
      (*ready)(events[i].events);
    }
    RunDueTimers();
    RunPosted();
    MutexLock lock(mutex_);
    quit = std::exchange(quit_, false);
  }
  thread_.store(0);
}

void EventLoop::Quit() {
  {
    MutexLock lock(mutex_);
    quit_ = true;
  }
  SignalEventFd(wakeup_.get());
}

void EventLoop::Post(std::function<void()> task) {
  bool was_empty = false;
  {
    MutexLock lock(mutex_);
    was_empty = posted_.empty();
    posted_.push_back(std::move(task));
  }
  // Whoever found the mailbox empty wakes the loop, which empties it whole.
  if (was_empty) SignalEventFd(wakeup_.get());
}

Expected<EventLoop::WatchId> EventLoop::Watch(
    int fd, uint32_t events, std::function<void(uint32_t)> ready) {
  const WatchId id = next_id_++;
  epoll_event event = EventFor(id, events);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return ErrnoError(errno, "watch fd '" + std::to_string(fd) + "'");
  }
  watches_[id] = {
      fd, std::make_shared<std::function<void(uint32_t)>>(std::move(ready))};
  return id;
}

void EventLoop::ChangeEvents(WatchId watch, uint32_t events) {
  const auto found = watches_.find(watch);
  if (found == watches_.end()) return;
  epoll_event event = EventFor(watch, events);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second.fd, &event);
}

void EventLoop::Unwatch(WatchId watch) {
  const auto node = watches_.extract(watch);
  if (node.empty()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, node.mapped().fd, nullptr);
}

EventLoop::TimerId EventLoop::RunAfter(Nanoseconds delay,
                                       std::function<void()> task) {
  const TimerId id = next_id_++;
  const Nanoseconds now = clock_->Now();
  Nanoseconds due = now;
  if (delay > 0 && __builtin_add_overflow(now, delay, &due)) {
    due = std::numeric_limits<Nanoseconds>::max();
  }
  timers_.emplace(std::pair(due, id), std::move(task));
  return id;
}

void EventLoop::CancelTimer(TimerId timer) {
  for (auto at = timers_.begin(); at != timers_.end(); ++at) {
    if (at->first.second != timer) continue;
    // Extracted first: what the task owns may set or cancel timers.
    const auto node = timers_.extract(at);
    return;
  }
}

bool EventLoop::InLoopThread() const { return thread_.load() == ThisThread(); }

void EventLoop::RunPosted() {
  std::vector<std::function<void()>> tasks;
  {
    MutexLock lock(mutex_);
    tasks.swap(posted_);
  }
  // What these post comes in the next round, after the fds have had their turn.
  for (std::function<void()>& task : tasks) {
    const std::function<void()> running = std::move(task);
    running();
  }
}

void EventLoop::RunDueTimers() {
  if (timers_.empty()) return;
  // Timers that these set come in the next round, even without a delay.
  const Nanoseconds now = clock_->Now();
  const TimerId first_new = next_id_;
  auto at = timers_.begin();
  while (at != timers_.end() && at->first.first <= now) {
    if (at->first.second >= first_new) {
      ++at;
      continue;
    }
    const auto node = timers_.extract(at);
    node.mapped()();
    at = timers_.begin();
  }
}

int EventLoop::MillisecondsToNextTimer() const {
  if (timers_.empty()) return -1;
  const Nanoseconds due = timers_.begin()->first.first;
  const Nanoseconds now = clock_->Now();
  if (due <= now) return 0;
  // Rounded up: to wake early would be to wake twice.
  const Nanoseconds milliseconds = (due - now - 1) / kMillisecond + 1;
  return milliseconds > std::numeric_limits<int>::max()
             ? std::numeric_limits<int>::max()
             : static_cast<int>(milliseconds);
}

}  // namespace rknnd::base
