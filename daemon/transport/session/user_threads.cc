// See the header. Called by the loop, for messages of whoever may connect.

#include "daemon/transport/session/user_threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "base/posix/blocked_signals.h"
#include "base/posix/close_hook.h"
#include "base/posix/mutex.h"

namespace rknnd::transport {
namespace {

// Owners who hold up a thread at one time.
constexpr size_t kMostThreads = 32;
// Below what the loop and workers have.
constexpr int kNiceness = 10;
// For those that do not wait for anybody, at the end.
constexpr std::chrono::seconds kLastCloses{1};

// Of this thread's ClosesElsewhere.
thread_local std::vector<base::UniqueFd>* left_to_close = nullptr;

// Freeing a mebibyte of pages takes up to 0.2 ms.
constexpr uint64_t kLittleMemory = uint64_t{1} << 20;

// Of files in memory, which alone have seals: what they hold now, as asked
// without waiting for anybody.
bool IsLittleMemory(int fd) {
  constexpr uint64_t kBlock = 512;  // stat's
  struct stat file {};
  return fcntl(fd, F_GET_SEALS) >= 0 && fstat(fd, &file) == 0 &&
         static_cast<uint64_t>(file.st_blocks) * kBlock <= kLittleMemory;
}

bool LeaveOpen(int fd) {
  if (left_to_close == nullptr || IsLittleMemory(fd)) return false;
  left_to_close->emplace_back(fd);
  return true;
}

}  // namespace

struct UserThreads::State : std::enable_shared_from_this<State> {
  using Time = std::chrono::steady_clock::time_point;
  // One of both.
  struct Errand {
    base::UniqueFd fd;
    std::function<base::Nanoseconds()> work;
  };
  struct Owner {
    std::deque<Errand> errands;
    bool served = false;  // by a thread, which has one beside these
    Time rests_until{};
    [[nodiscard]] bool waits() const { return !served && !errands.empty(); }
  };

  std::map<std::string, Owner>::iterator FindWork() RKNND_REQUIRES(mutex) {
    const Time now = std::chrono::steady_clock::now();
    return std::find_if(owners.begin(), owners.end(), [now](const auto& one) {
      return one.second.waits() && one.second.rests_until <= now;
    });
  }
  // When the first of those that rest has work again; none: the end of time.
  [[nodiscard]] Time NextWork() const RKNND_REQUIRES(mutex) {
    Time next = Time::max();
    for (const auto& [name, owner] : owners) {
      if (owner.waits()) next = std::min(next, owner.rests_until);
    }
    return next;
  }

  void AddThread() RKNND_REQUIRES(mutex) {
    if (threads == kMostThreads) return;
    const base::BlockedSignals blocked;
    try {
      std::thread([self = shared_from_this()] { self->Run(); }).detach();
      ++threads;
    } catch (const std::system_error&) {
      // Those that there are do it, later.
    }
  }

  void Run() {
    pthread_setname_np(pthread_self(), "rknnd-close");
    // What a client makes last is to cost others no CPU either.
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kNiceness);
    base::MutexLock lock(mutex);
    for (;;) {
      const auto found = FindWork();
      if (found == owners.end()) {
        // One stays, and waits for what rests.
        const Time next = NextWork();
        if (ended || (threads > 1 && (idle > 0 || next == Time::max()))) break;
        ++idle;
        if (next == Time::max()) {
          changed.wait(mutex);
        } else {
          changed.wait_until(mutex, next);
        }
        --idle;
        continue;
      }
      Owner& owner = found->second;
      owner.served = true;
      Errand errand = std::move(owner.errands.front());
      owner.errands.pop_front();
      // This one may last.
      if (idle == 0 && NextWork() != Time::max()) AddThread();
      mutex.unlock();
      base::Nanoseconds rest = 0;
      if (errand.work != nullptr) rest = errand.work();
      errand = {};
      mutex.lock();
      owner.served = false;
      if (rest > 0) {
        owner.rests_until =
            std::chrono::steady_clock::now() + std::chrono::nanoseconds(rest);
      } else if (owner.errands.empty()) {
        owners.erase(found);
      }
    }
    --threads;
    changed.notify_all();
  }

  // After errands were added.
  void Wake(const Owner& owner) RKNND_REQUIRES(mutex) {
    if (owner.served) return;
    if (idle > 0) {
      changed.notify_one();
    } else {
      AddThread();
    }
  }

  mutable base::Mutex mutex;
  base::CondVar changed;
  std::map<std::string, Owner> owners RKNND_GUARDED_BY(mutex);
  size_t threads RKNND_GUARDED_BY(mutex) = 0;
  size_t idle RKNND_GUARDED_BY(mutex) = 0;
  bool started RKNND_GUARDED_BY(mutex) = false;
  bool ended RKNND_GUARDED_BY(mutex) = false;
};

UserThreads::UserThreads() : state_(std::make_shared<State>()) {}

UserThreads::~UserThreads() {
  State& state = *state_;
  const auto until = std::chrono::steady_clock::now() + kLastCloses;
  base::MutexLock lock(state.mutex);
  state.ended = true;
  state.changed.notify_all();
  while (state.threads != 0 && state.changed.wait_until(state.mutex, until) ==
                                   std::cv_status::no_timeout) {
  }
}

void UserThreads::Start() {
  State& state = *state_;
  base::MutexLock lock(state.mutex);
  if (state.started) return;
  state.started = true;
  state.AddThread();
}

void UserThreads::Close(const std::string& owner,
                        std::vector<base::UniqueFd> fds) {
  if (fds.empty()) return;
  State& state = *state_;
  base::MutexLock lock(state.mutex);
  if (!state.started) return;  // they go with `fds`
  // None could be had at the start: perhaps now. Else likewise.
  if (state.threads == 0) state.AddThread();
  if (state.threads == 0) return;
  State::Owner& queue = state.owners[owner];
  for (base::UniqueFd& fd : fds) {
    queue.errands.push_back({std::move(fd), nullptr});
  }
  state.Wake(queue);
}

bool UserThreads::Do(const std::string& owner,
                     std::function<base::Nanoseconds()> work) {
  State& state = *state_;
  base::MutexLock lock(state.mutex);
  if (!state.started || state.ended) return false;
  if (state.threads == 0) state.AddThread();
  if (state.threads == 0) return false;
  State::Owner& queue = state.owners[owner];
  if (queue.errands.size() >= kMostOfOwner) return false;
  queue.errands.push_back({base::UniqueFd(), std::move(work)});
  state.Wake(queue);
  return true;
}

bool UserThreads::HasRoom(const std::string& owner) const {
  const State& state = *state_;
  base::MutexLock lock(state.mutex);
  const auto found = state.owners.find(owner);
  return found == state.owners.end() ||
         found->second.errands.size() < kMostOfOwner;
}

ClosesElsewhere::ClosesElsewhere(std::vector<base::UniqueFd>* left)
    : outer_(std::exchange(left_to_close, left)) {
  base::SetCloseHook(LeaveOpen);
}

ClosesElsewhere::~ClosesElsewhere() { left_to_close = outer_; }

}  // namespace rknnd::transport
