// See the header. Called on the program's threads.

#include "client/session/fence_table.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/posix/socket.h"
#include "client/session/requests.h"

namespace rknnd::client {

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

uint32_t FenceTable::NextNumber() {
  const base::MutexLock lock(mutex_);
  do {
    ++last_number_;
  } while (last_number_ == 0 || waited_.contains(last_number_) ||
           told_.contains(last_number_) || reserved_.contains(last_number_));
  return last_number_;
}

uint32_t FenceTable::Reserve() {
  const uint32_t number = NextNumber();
  const base::MutexLock lock(mutex_);
  reserved_.insert(number);
  return number;
}

Expected<uint32_t> FenceTable::Register(int fd) {
  Expected<UniqueFd> copy = base::Duplicate(fd);
  if (!copy.ok()) return std::move(copy).error();
  return link_.Ask([&](Connection& connection) -> Expected<uint32_t> {
    ReleaseStale(connection);
    Expected<UniqueFd> own = base::Duplicate(copy->get());
    if (!own.ok()) return std::move(own).error();
    Expected<Waited> fence = SourceOf(*std::move(own));
    if (!fence.ok()) return std::move(fence).error();
    const uint32_t number = NextNumber();
    Expected<void> done =
        RegisterFenceOn(connection, number, false, fence->fd.get());
    if (!done.ok()) return std::move(done).error();
    waited_[number] = *std::move(fence);
    return number;
  });
}

Expected<FenceTable::Waited> FenceTable::SourceOf(UniqueFd fd) const {
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return Waited{std::move(fd), 0};
  const auto made =
      std::find_if(made_.begin(), made_.end(), [&](const auto& numbered) {
        return numbered.second.device == status.st_dev &&
               numbered.second.inode == status.st_ino;
      });
  const uint32_t source = made == made_.end() ? 0 : made->first;
  // One whose run ended well, and which no daemon could tell.
  const bool ended =
      std::find(ended_.begin(), ended_.end(),
                std::pair(status.st_dev, status.st_ino)) != ended_.end();
  const bool renewed = source != 0 && made->second.renewed.valid();
  if (!ended && !renewed) return Waited{std::move(fd), source};
  Expected<UniqueFd> other =
      ended ? SignalledFence() : base::Duplicate(made->second.renewed.get());
  if (!other.ok()) return std::move(other).error();
  return Waited{*std::move(other), source};
}

void FenceTable::ForgetMade(uint32_t number, bool untold) {
  bool failed = false;
  {
    const base::MutexLock lock(mutex_);
    failed = failed_.erase(number) != 0;
  }
  const auto made = made_.find(number);
  if (made == made_.end()) return;
  if (untold && !failed) {
    ended_.emplace_back(made->second.device, made->second.inode);
    if (ended_.size() > kEndedFences) ended_.pop_front();
  }
  made_.erase(made);
}

Expected<FenceOut> FenceTable::Make() {
  return link_.Ask([&](Connection& connection) -> Expected<FenceOut> {
    ReleaseStale(connection);
    auto ends = base::BytePair();
    if (!ends.ok()) return std::move(ends).error();
    const uint32_t number = NextNumber();
    // The daemon has the only one of its end: when it dies, whoever waits at
    // ours is told, and asks how the run ended.
    Expected<void> done =
        RegisterFenceOn(connection, number, true, ends->second.get());
    if (!done.ok()) return std::move(done).error();
    struct stat status {};
    if (fstat(ends->first.get(), &status) == 0) {
      made_[number] = {status.st_dev, status.st_ino, UniqueFd()};
    }
    const base::MutexLock lock(mutex_);
    told_.insert(number);
    return FenceOut{number, std::move(ends->first)};
  });
}

// ---- giving back ------------------------------------------------------------

void FenceTable::Release(uint32_t fence) {
  if (fence == 0) return;
  GiveBack(fence);
  TryReleaseStale();
}

void FenceTable::GiveBack(uint32_t number) {
  const base::MutexLock lock(mutex_);
  stale_.push_back(number);
}

void FenceTable::GiveBackOf(const wire::Submission& job, base::Code code) {
  if (job.fence_in == 0 && job.fence_out == 0) return;
  const base::MutexLock lock(mutex_);
  for (const uint32_t fence : {job.fence_in, job.fence_out}) {
    if (fence != 0) stale_.push_back(fence);
  }
  if (job.fence_out != 0 && code != base::Code::kOk) {
    failed_.insert(job.fence_out);
  }
}

bool FenceTable::CanBeTold(uint32_t number) {
  const base::MutexLock lock(mutex_);
  return told_.contains(number);
}

void FenceTable::TryReleaseStale() {
  {
    const base::MutexLock lock(mutex_);
    if (stale_.empty()) return;
  }
  const SocketAccess access(link_, 0);
  if (!access.granted()) return;
  // A daemon may store its answer a moment before it says that it has taken the
  // entry.
  if (const auto connection = link_.Current()) {
    ReleaseStale(*connection, base::kMillisecond);
  }
}

void FenceTable::ReleaseStale(Connection& connection,
                              base::Nanoseconds patience) {
  std::vector<uint32_t> stale;
  {
    const base::MutexLock lock(mutex_);
    if (stale_.empty()) return;
    stale.swap(stale_);
    for (const uint32_t number : stale) {
      told_.erase(number);
      reserved_.erase(number);
    }
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
    waited_.erase(stale.back());
    const auto made = made_.find(stale.back());
    // Another daemon than the program's end leads to has told another end.
    ForgetMade(stale.back(),
               made != made_.end() && made->second.renewed.valid());
    stale.pop_back();
  }
  if (stale.empty()) return;
  const base::MutexLock lock(mutex_);
  stale_.insert(stale_.end(), stale.begin(), stale.end());
}

// ---- the next daemon --------------------------------------------------------

Expected<UniqueFd> FenceTable::Renew(Connection& connection, uint32_t source) {
  const auto made = made_.find(source);
  // Its run has ended, and perhaps nobody was there any more to tell.
  if (made == made_.end()) return SignalledFence();
  if (!made->second.renewed.valid()) {
    auto ends = base::BytePair();
    if (!ends.ok()) return std::move(ends).error();
    Expected<void> done =
        RegisterFenceOn(connection, source, true, ends->second.get());
    if (!done.ok()) return std::move(done).error();
    made->second.renewed = std::move(ends->first);
    const base::MutexLock lock(mutex_);
    told_.insert(source);
  }
  return base::Duplicate(made->second.renewed.get());
}

Expected<void> FenceTable::Replay(Connection& connection, const Grace& grace) {
  std::vector<uint32_t> ended;
  {
    const base::MutexLock lock(mutex_);
    ended.swap(stale_);
    for (const uint32_t number : ended) reserved_.erase(number);
    // Whoever waits at them was told of the last daemon's end already.
    told_.clear();
  }
  for (const uint32_t number : ended) {
    waited_.erase(number);
    ForgetMade(number, true);
  }
  for (auto& [number, made] : made_) made.renewed.reset();
  // Their runs are on their way still: whoever waits for one from now on, as
  // those that did before, waits for its other end.
  for (const auto& [number, made] : made_) {
    const Expected<UniqueFd> renewed = Renew(connection, number);
    if (renewed.ok()) continue;
    if (!grace.GoesOn(connection, renewed.error(), "a fence")) {
      return renewed.error();
    }
  }
  for (auto& [number, fence] : waited_) {
    if (fence.source != 0) {
      Expected<UniqueFd> renewed = Renew(connection, fence.source);
      if (!renewed.ok()) {
        if (!grace.GoesOn(connection, renewed.error(), "a fence")) {
          return std::move(renewed).error();
        }
        continue;
      }
      fence.fd = *std::move(renewed);
    }
    Expected<void> done =
        RegisterFenceOn(connection, number, false, fence.fd.get());
    if (!grace.GoesOn(connection, done, "a fence")) return done;
  }
  return {};
}

}  // namespace rknnd::client
