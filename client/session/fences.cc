// What runs wait for and what they tell: numbers for descriptors, which the
// daemon gets over the socket before an entry of the ring may name them. Called
// on the program's threads. A number is given back when its run has ended, with
// the next request if the socket is busy.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/socket.h"
#include "client/rknnrt/log.h"
#include "client/session/requests.h"
#include "proto/wire/features.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;
using base::UniqueFd;

namespace {

// As many as a program is taken to have yet to wait for.
constexpr size_t kEndedFences = 256;

// One that can be read.
Expected<UniqueFd> SignalledFence() {
  auto ends = base::BytePair();
  if (!ends.ok()) return std::move(ends).error();
  const char byte = 1;
  if (write(ends->second.get(), &byte, sizeof byte) != sizeof byte) {
    return base::ErrnoError(errno, "signal a fence");
  }
  return std::move(ends->first);
}

}  // namespace

uint32_t SessionTarget::NextFenceNumber() {
  const base::MutexLock lock(flights_mutex_);
  do {
    ++last_fence_;
  } while (last_fence_ == 0 || fences_.contains(last_fence_) ||
           fences_out_.contains(last_fence_) || notices_.contains(last_fence_));
  return last_fence_;
}

Expected<void> SessionTarget::RegisterFenceOn(Connection& connection,
                                              uint32_t number, bool out,
                                              int fd) {
  if ((connection.welcome().features & wire::kFeatureScheduling) == 0) {
    return Error{Code::kUnimplemented,
                 "rknnd is older than this client and has no fences: update "
                 "it"};
  }
  wire::RegisterFence request{};
  request.fence = number;
  request.out = out;
  return Done(Send(connection, wire::Verb::kRegisterFence, request, {fd}));
}

Expected<uint32_t> SessionTarget::RegisterFence(int fd) {
  Expected<UniqueFd> copy = base::Duplicate(fd);
  if (!copy.ok()) return std::move(copy).error();
  return Ask([&](Connection& connection) -> Expected<uint32_t> {
    ReleaseStaleFences(connection);
    FenceRecord fence;
    fence.source = SourceOf(copy->get());
    const auto made = made_fences_.find(fence.source);
    const bool renewed =
        made != made_fences_.end() && made->second.renewed.valid();
    Expected<UniqueFd> own =
        IsOfEndedRun(copy->get())
            ? SignalledFence()
            : base::Duplicate(renewed ? made->second.renewed.get()
                                      : copy->get());
    if (!own.ok()) return std::move(own).error();
    fence.fd = *std::move(own);
    const uint32_t number = NextFenceNumber();
    Expected<void> done =
        RegisterFenceOn(connection, number, false, fence.fd.get());
    if (!done.ok()) return std::move(done).error();
    fences_[number] = std::move(fence);
    return number;
  });
}

uint32_t SessionTarget::SourceOf(int fd) const {
  struct stat status {};
  if (made_fences_.empty() || fstat(fd, &status) != 0) return 0;
  for (const auto& [number, made] : made_fences_) {
    if (made.device == status.st_dev && made.inode == status.st_ino) {
      return number;
    }
  }
  return 0;
}

bool SessionTarget::IsOfEndedRun(int fd) const {
  struct stat status {};
  if (ended_fences_.empty() || fstat(fd, &status) != 0) return false;
  const std::pair identity(status.st_dev, status.st_ino);
  return std::find(ended_fences_.begin(), ended_fences_.end(), identity) !=
         ended_fences_.end();
}

void SessionTarget::ForgetMadeFence(uint32_t number, bool untold) {
  bool failed = false;
  {
    const base::MutexLock lock(flights_mutex_);
    failed = failed_fences_.erase(number) != 0;
  }
  const auto made = made_fences_.find(number);
  if (made == made_fences_.end()) return;
  if (untold && !failed) {
    ended_fences_.emplace_back(made->second.device, made->second.inode);
    if (ended_fences_.size() > kEndedFences) ended_fences_.pop_front();
  }
  made_fences_.erase(made);
}

Expected<Target::FenceOut> SessionTarget::MakeFence() {
  return Ask([&](Connection& connection) -> Expected<FenceOut> {
    ReleaseStaleFences(connection);
    auto ends = base::BytePair();
    if (!ends.ok()) return std::move(ends).error();
    const uint32_t number = NextFenceNumber();
    // The daemon has the only one of its end: when it dies, whoever waits at
    // ours is told, and asks how the run ended.
    Expected<void> done =
        RegisterFenceOn(connection, number, true, ends->second.get());
    if (!done.ok()) return std::move(done).error();
    struct stat status {};
    if (fstat(ends->first.get(), &status) == 0) {
      made_fences_[number] = {status.st_dev, status.st_ino, UniqueFd()};
    }
    const base::MutexLock lock(flights_mutex_);
    fences_out_.insert(number);
    return FenceOut{number, std::move(ends->first)};
  });
}

void SessionTarget::ReleaseFence(uint32_t fence) {
  if (fence == 0) return;
  {
    const base::MutexLock lock(flights_mutex_);
    stale_fences_.push_back(fence);
  }
  TryReleaseStaleFences();
}

void SessionTarget::TryReleaseStaleFences() {
  {
    const base::MutexLock lock(flights_mutex_);
    if (stale_fences_.empty()) return;
  }
  if (!TakeTurn(0)) return;
  // A daemon may store its answer a moment before it says that it has taken the
  // entry.
  if (const auto connection = Current()) {
    ReleaseStaleFences(*connection, base::kMillisecond);
  }
  GiveTurn();
}

void SessionTarget::ReleaseStaleFences(Connection& connection,
                                       base::Nanoseconds patience) {
  std::vector<uint32_t> stale;
  {
    const base::MutexLock lock(flights_mutex_);
    if (stale_fences_.empty()) return;
    stale.swap(stale_fences_);
    for (const uint32_t number : stale) fences_out_.erase(number);
  }
  // Answers to those that were given back before: nobody else may read them.
  connection.ReadEvents();
  while (!stale.empty()) {
    wire::ReleaseFence request{};
    request.fence = stale.back();
    auto body = wire::Encode(request);
    if (body.ok() && !connection.Notify(wire::Verb::kReleaseFence,
                                        *std::move(body), patience)) {
      break;
    }
    fences_.erase(stale.back());
    const auto made = made_fences_.find(stale.back());
    // Another daemon than the program's end leads to has told another end.
    ForgetMadeFence(stale.back(),
                    made != made_fences_.end() && made->second.renewed.valid());
    stale.pop_back();
  }
  if (stale.empty()) return;
  const base::MutexLock lock(flights_mutex_);
  stale_fences_.insert(stale_fences_.end(), stale.begin(), stale.end());
}

// ---- notices ----------------------------------------------------------------

Expected<void> SessionTarget::AttachNotice(Connection& connection,
                                           uint32_t number) {
  auto ends = base::BytePair();
  if (!ends.ok()) return std::move(ends).error();
  Expected<void> done =
      RegisterFenceOn(connection, number, true, ends->second.get());
  if (!done.ok()) return done;
  // It may be gone meanwhile; then its number is given back.
  const base::MutexLock lock(flights_mutex_);
  const auto notice = notices_.find(number);
  if (notice != notices_.end()) notice->second->Attach(std::move(ends->first));
  return {};
}

Expected<std::shared_ptr<RunNotice>> SessionTarget::MakeNotice() {
  return Ask(
      [&](Connection& connection) -> Expected<std::shared_ptr<RunNotice>> {
        ReleaseStaleFences(connection);
        const uint32_t number = NextFenceNumber();
        Expected<std::shared_ptr<SessionNotice>> notice =
            SessionNotice::Make(*this, number);
        if (!notice.ok()) return std::move(notice).error();
        {
          const base::MutexLock lock(flights_mutex_);
          notices_[number] = notice->get();
        }
        Expected<void> attached = AttachNotice(connection, number);
        if (!attached.ok()) return std::move(attached).error();
        return std::shared_ptr<RunNotice>(*std::move(notice));
      });
}

void SessionTarget::ForgetNotice(uint32_t number) {
  const base::MutexLock lock(flights_mutex_);
  if (notices_.erase(number) != 0) stale_fences_.push_back(number);
}

bool SessionTarget::RestoreNotice(SessionNotice& notice) {
  const Expected<std::shared_ptr<Connection>> connection =
      Recover(clock_.Now());
  if (!connection.ok()) return false;
  if (notice.attached()) return true;  // by the rebuild
  // The daemon is there and closed it: another one, then.
  if (!TakeTurn(clock_.Now())) return false;
  const Expected<void> done = AttachNotice(**connection, notice.number());
  GiveTurn();
  return done.ok();
}

Expected<UniqueFd> SessionTarget::RenewFence(Connection& connection,
                                             uint32_t source) {
  const auto made = made_fences_.find(source);
  if (made != made_fences_.end() && made->second.renewed.valid()) {
    return base::Duplicate(made->second.renewed.get());
  }
  // Its run has ended, and perhaps nobody was there any more to tell.
  if (made == made_fences_.end()) return SignalledFence();
  auto ends = base::BytePair();
  if (!ends.ok()) return std::move(ends).error();
  Expected<void> done =
      RegisterFenceOn(connection, source, true, ends->second.get());
  if (!done.ok()) return std::move(done).error();
  made->second.renewed = std::move(ends->first);
  {
    const base::MutexLock lock(flights_mutex_);
    fences_out_.insert(source);
  }
  return base::Duplicate(made->second.renewed.get());
}

Expected<void> SessionTarget::ReplayFences(Connection& connection) {
  std::vector<uint32_t> notices;
  std::vector<uint32_t> ended;
  {
    const base::MutexLock lock(flights_mutex_);
    // Fences of runs that have ended need not be there again.
    LandAll();
    ended.swap(stale_fences_);
    // Whoever waits at them was told of the last daemon's end already.
    fences_out_.clear();
    for (const auto& [number, notice] : notices_) notices.push_back(number);
  }
  for (const uint32_t number : ended) {
    fences_.erase(number);
    ForgetMadeFence(number, true);
  }
  for (auto& [number, made] : made_fences_) made.renewed.reset();
  // Their runs are on their way still: whoever waits for one from now on, as
  // those that did before, waits for its other end.
  std::vector<uint32_t> made;
  made.reserve(made_fences_.size());
  for (const auto& [number, fence] : made_fences_) made.push_back(number);
  // Whether the rest may go on without it.
  const auto give = [&](const Expected<void>& done) {
    if (done.ok()) return true;
    if (IsPassing(connection, done.error())) return false;
    Log(LogLevel::kError,
        "the restarted rknnd refused a fence: " + done.error().message);
    return true;
  };
  for (const uint32_t number : made) {
    const Expected<UniqueFd> renewed = RenewFence(connection, number);
    if (!renewed.ok() && !give(renewed.error())) return renewed.error();
  }
  for (auto& [number, fence] : fences_) {
    if (fence.source != 0) {
      Expected<UniqueFd> renewed = RenewFence(connection, fence.source);
      if (!renewed.ok()) {
        if (!give(renewed.error())) return renewed.error();
        continue;
      }
      fence.fd = *std::move(renewed);
    }
    Expected<void> done =
        RegisterFenceOn(connection, number, false, fence.fd.get());
    if (!give(done)) return done;
  }
  for (const uint32_t number : notices) {
    Expected<void> done = AttachNotice(connection, number);
    if (!give(done)) return done;
  }
  return {};
}

}  // namespace rknnd::client
