// Called on the program's threads. A program may close the descriptor or read
// from it against the rules: then it hears nothing, and nobody else is harmed.

#include "client/session/notice.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/posix/socket.h"
#include "client/session/fork_shelf.h"
#include "client/session/session_target.h"

namespace rknnd::client {
namespace {

using base::Expected;
using base::Nanoseconds;
using base::UniqueFd;

// Between two looks for a daemon that is away: soon at first, then as often as
// a rebuild that is waited for tries.
constexpr Nanoseconds kFirstDelay = 4 * base::kMillisecond;
constexpr Nanoseconds kLongestDelay = 500 * base::kMillisecond;

Expected<void> Watch(int epoll, int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return base::ErrnoError(errno, "watch for completions");
}

// Counters and clocks: their number is of no interest.
void Drain(int fd) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(fd, &count, sizeof count);
}

}  // namespace

Expected<std::shared_ptr<SessionNotice>> SessionNotice::Make(
    SessionTarget& target, uint32_t number) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return base::ErrnoError(errno, "make an epoll set");
  Expected<UniqueFd> counter = base::MakeEventFd();
  if (!counter.ok()) return std::move(counter).error();
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) return base::ErrnoError(errno, "make a timer");
  for (const int fd : {counter->get(), timer.get()}) {
    if (Expected<void> watched = Watch(epoll.get(), fd); !watched.ok()) {
      return std::move(watched).error();
    }
  }
  return std::shared_ptr<SessionNotice>(new SessionNotice(
      target, number, std::move(epoll), *std::move(counter), std::move(timer)));
}

SessionNotice::SessionNotice(SessionTarget& target, uint32_t number,
                             UniqueFd epoll, UniqueFd counter, UniqueFd timer)
    : target_(target),
      number_(number),
      epoll_(std::move(epoll)),
      counter_(std::move(counter)),
      timer_(std::move(timer)) {
  for (const int fd : {epoll_.get(), counter_.get(), timer_.get()}) {
    ForkShelf::Get().AddFd(fd);
  }
}

SessionNotice::~SessionNotice() {
  target_.ForgetNotice(number_);
  for (const int fd : {epoll_.get(), counter_.get(), timer_.get()}) {
    ForkShelf::Get().RemoveFd(fd);
  }
  const base::MutexLock lock(mutex_);
  Detach();
}

void SessionNotice::Detach() {
  if (!socket_.valid()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
  ForkShelf::Get().RemoveFd(socket_.get());
  socket_.reset();
}

void SessionNotice::Attach(UniqueFd socket) {
  const base::MutexLock lock(mutex_);
  Detach();
  // A set that was closed by the program cannot watch: nobody looks at it.
  if (!Watch(epoll_.get(), socket.get()).ok()) return;
  ForkShelf::Get().AddFd(socket.get());
  socket_ = std::move(socket);
  delay_ = 0;
}

bool SessionNotice::attached() {
  const base::MutexLock lock(mutex_);
  return socket_.valid();
}

void SessionNotice::Clear(bool runs) {
  bool was_timed = false;
  bool gone = false;
  {
    const base::MutexLock lock(mutex_);
    if (std::exchange(reminded_, false)) Drain(counter_.get());
    was_timed = std::exchange(timed_, false);
    if (was_timed) {
      // Off, too, where it has not come yet.
      const itimerspec off = {};
      timerfd_settime(timer_.get(), 0, &off, nullptr);
    }
    if (socket_.valid()) {
      std::array<char, 256> bytes{};
      ssize_t got = 0;
      do {
        got = read(socket_.get(), bytes.data(), bytes.size());
      } while (got == static_cast<ssize_t>(bytes.size()) ||
               (got < 0 && errno == EINTR));
      if (got == 0 || (got < 0 && errno != EAGAIN)) Detach();
    }
    gone = !socket_.valid();
  }
  if (gone && !target_.RestoreNotice(*this) && runs) {
    Nanoseconds delay = 0;
    {
      const base::MutexLock lock(mutex_);
      delay_ =
          delay_ == 0 ? kFirstDelay : std::min(delay_ * 5 / 4, kLongestDelay);
      delay = delay_;
    }
    RemindIn(delay);
  }
  if (was_timed) target_.TendFlights();
}

void SessionNotice::Remind() {
  const base::MutexLock lock(mutex_);
  if (std::exchange(reminded_, true)) return;
  base::SignalEventFd(counter_.get());
}

void SessionNotice::RemindIn(Nanoseconds delay) {
  const base::MutexLock lock(mutex_);
  itimerspec at = {};
  at.it_value.tv_sec = static_cast<time_t>(delay / base::kSecond);
  at.it_value.tv_nsec =
      static_cast<decltype(at.it_value.tv_nsec)>(delay % base::kSecond);
  timerfd_settime(timer_.get(), 0, &at, nullptr);
  timed_ = true;
}

}  // namespace rknnd::client
