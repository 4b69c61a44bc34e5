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
#include "client/session/fork_cleanup.h"
#include "client/session/pending_runs.h"
#include "client/session/requests.h"

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

Expected<std::shared_ptr<RunNotice>> RunNotice::Make(NoticeTable& table,
                                                     PendingRuns& runs) {
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
  return std::shared_ptr<RunNotice>(new RunNotice(
      table, runs, std::move(epoll), *std::move(counter), std::move(timer)));
}

RunNotice::RunNotice(NoticeTable& table, PendingRuns& runs, UniqueFd epoll,
                     UniqueFd counter, UniqueFd timer)
    : table_(table),
      runs_(runs),
      epoll_(std::move(epoll)),
      counter_(std::move(counter)),
      timer_(std::move(timer)),
      number_(table.Add(*this)) {
  for (const int fd : {epoll_.get(), counter_.get(), timer_.get()}) {
    ForkCleanup::Get().AddFd(fd);
  }
}

RunNotice::~RunNotice() {
  table_.Remove(number_);
  for (const int fd : {epoll_.get(), counter_.get(), timer_.get()}) {
    ForkCleanup::Get().RemoveFd(fd);
  }
  const base::MutexLock lock(mutex_);
  Detach();
}

void RunNotice::Detach() {
  if (!socket_.valid()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
  ForkCleanup::Get().RemoveFd(socket_.get());
  socket_.reset();
}

void RunNotice::Attach(UniqueFd socket) {
  const base::MutexLock lock(mutex_);
  Detach();
  // A set that was closed by the program cannot watch: nobody looks at it.
  if (!Watch(epoll_.get(), socket.get()).ok()) return;
  ForkCleanup::Get().AddFd(socket.get());
  socket_ = std::move(socket);
  delay_ = 0;
}

bool RunNotice::attached() {
  const base::MutexLock lock(mutex_);
  return socket_.valid();
}

void RunNotice::Clear() {
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
  // Asked after the socket is gone, as a run that is started later is expected
  // after it (Expect): one of the two sees the other.
  if (gone && !table_.Restore(*this) && runs_.AnyNames(number_)) {
    Nanoseconds delay = 0;
    {
      const base::MutexLock lock(mutex_);
      delay_ =
          delay_ == 0 ? kFirstDelay : std::min(delay_ * 5 / 4, kLongestDelay);
      delay = delay_;
    }
    RemindIn(delay);
  }
  if (was_timed) runs_.Advance();
}

void RunNotice::Expect() {
  if (!attached()) RemindIn(kFirstDelay);
}

void RunNotice::Remind() {
  const base::MutexLock lock(mutex_);
  if (std::exchange(reminded_, true)) return;
  base::SignalEventFd(counter_.get());
}

void RunNotice::RemindIn(Nanoseconds delay) {
  const base::MutexLock lock(mutex_);
  itimerspec at = {};
  at.it_value.tv_sec = static_cast<time_t>(delay / base::kSecond);
  at.it_value.tv_nsec =
      static_cast<decltype(at.it_value.tv_nsec)>(delay % base::kSecond);
  timerfd_settime(timer_.get(), 0, &at, nullptr);
  timed_ = true;
}

// ---- the session's ----------------------------------------------------------

uint32_t NoticeTable::Add(RunNotice& notice) {
  const uint32_t number = fences_.Reserve();
  const base::MutexLock lock(mutex_);
  notices_[number] = &notice;
  return number;
}

void NoticeTable::Remove(uint32_t number) {
  {
    const base::MutexLock lock(mutex_);
    notices_.erase(number);
  }
  fences_.GiveBack(number);
}

Expected<void> NoticeTable::Attach(Connection& connection, uint32_t number) {
  auto ends = base::BytePair();
  if (!ends.ok()) return std::move(ends).error();
  Expected<void> done =
      RegisterFenceOn(connection, number, true, ends->second.get());
  if (!done.ok()) return done;
  // It may be gone meanwhile; then its number is given back.
  const base::MutexLock lock(mutex_);
  const auto notice = notices_.find(number);
  if (notice != notices_.end()) notice->second->Attach(std::move(ends->first));
  return {};
}

Expected<void> NoticeTable::Replay(Connection& connection, const Grace& grace) {
  std::vector<uint32_t> numbers;
  {
    const base::MutexLock lock(mutex_);
    for (const auto& [number, notice] : notices_) numbers.push_back(number);
  }
  for (const uint32_t number : numbers) {
    Expected<void> done = Attach(connection, number);
    if (!grace.GoesOn(connection, done, "a fence")) return done;
  }
  return {};
}

bool NoticeTable::Restore(RunNotice& notice) {
  const Expected<std::shared_ptr<Connection>> connection =
      link_.Recover(base::MonotonicClock().Now());
  if (!connection.ok()) return false;
  if (notice.attached()) return true;  // by the rebuild
  // The daemon is there and closed it: another one, then.
  const SocketAccess access(link_, 0);
  return access.granted() && Attach(**connection, notice.number()).ok();
}

void NoticeTable::Expect(uint32_t number) {
  const base::MutexLock lock(mutex_);
  const auto notice = notices_.find(number);
  if (notice != notices_.end()) notice->second->Expect();
}

void NoticeTable::Remind(uint32_t number) {
  const base::MutexLock lock(mutex_);
  const auto notice = notices_.find(number);
  if (notice != notices_.end()) notice->second->Remind();
}

void NoticeTable::RemindIn(uint32_t number, Nanoseconds delay) {
  const base::MutexLock lock(mutex_);
  const auto notice = notices_.find(number);
  if (notice != notices_.end()) notice->second->RemindIn(delay);
}

void NoticeTable::RemindAll() {
  const base::MutexLock lock(mutex_);
  for (const auto& [number, notice] : notices_) notice->Remind();
}

}  // namespace rknnd::client
