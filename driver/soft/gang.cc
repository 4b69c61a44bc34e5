// See gang.h.

#include "driver/soft/gang.h"

#include <pthread.h>

#include <csignal>
#include <exception>
#include <limits>
#include <string>

#include "base/posix/blocked_signals.h"
#include "base/posix/clock.h"
#include "base/posix/futex.h"
#include "base/posix/spinning.h"
#include "driver/soft/kernels/threads.h"

namespace rknnd::soft {
namespace {

// How long somebody looks before it sleeps: longer than most runs of layers
// that are not shared take, and than waking a thread on another CPU does (some
// 70 us).
constexpr base::Nanoseconds kPatience = 500 * base::kMicrosecond;
constexpr int kLooksBetweenClocks = 64;
constexpr base::Nanoseconds kForever =
    std::numeric_limits<base::Nanoseconds>::max();

// Until `word` is no longer `seen` or patience ends; its value then.
uint32_t LookFor(const std::atomic<uint32_t>& word, uint32_t seen) {
  uint32_t now = word.load(std::memory_order_acquire);
  if (now != seen) return now;
  const base::MonotonicClock clock;
  const base::Nanoseconds end = clock.Now() + kPatience;
  do {
    for (int i = 0; i < kLooksBetweenClocks && now == seen; ++i) {
      base::Relax();
      now = word.load(std::memory_order_acquire);
    }
  } while (now == seen && clock.Now() < end);
  return now;
}

// Until `word` is no longer `seen`; its value then. `sleeps` says to the other
// end that it must wake this one: it looks there after it has changed `word`,
// and this end looks at `word` after it has said so (both in one order of all
// such accesses, so one of them sees the other).
uint32_t Await(const std::atomic<uint32_t>& word, uint32_t seen,
               std::atomic<uint32_t>& sleeps) {
  for (;;) {
    uint32_t now = LookFor(word, seen);
    if (now != seen) return now;
    base::StoreBeforeLook(sleeps, 1U);
    now = word.load(std::memory_order_seq_cst);
    if (now == seen) base::FutexWait(&word, seen, kForever);
    sleeps.store(0, std::memory_order_relaxed);
    // Woken without a reason: roused. It looks again for a while.
  }
}

void Store(std::atomic<uint32_t>& word, uint32_t value,
           const std::atomic<uint32_t>& sleeps) {
  base::StoreBeforeLook(word, value);
  if (sleeps.load(std::memory_order_seq_cst) != 0) base::FutexWakeOne(&word);
}

absl::Status DoPart(const PartWork& work, Part part, std::byte* scratch) {
  try {
    return work(part, scratch);
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace

CoreThread::CoreThread(uint32_t core) {
  CPU_ZERO(&cpus_);
  sched_getaffinity(0, sizeof cpus_, &cpus_);
  const base::BlockedSignals for_the_thread;
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(),
                     ("rknnd-core" + std::to_string(core)).c_str());
}

CoreThread::~CoreThread() {
  stop_.store(true, std::memory_order_release);
  Store(offers_, offers_.load(std::memory_order_relaxed) + 1, thread_sleeps_);
  thread_.join();
}

void CoreThread::Run() {
  SingleThreaded::Forever();
  uint32_t seen = 0;
  for (;;) {
    seen = Await(offers_, seen, thread_sleeps_);
    uint32_t offered = kOffered;
    if (state_.compare_exchange_strong(offered, kTaken,
                                       std::memory_order_acq_rel)) {
      // Perhaps a later one than was seen.
      status_ = DoPart(*work_, part_, scratch_);
      Store(state_, kDone, caller_sleeps_);
    } else if (stop_.load(std::memory_order_acquire)) {
      return;
    }
  }
}

void CoreThread::Rouse(int cpu) {
  if (cpu != left_out_ && cpu >= 0 && CPU_COUNT(&cpus_) > 1) {
    cpu_set_t others = cpus_;
    CPU_CLR(static_cast<size_t>(cpu), &others);
    // Where that is not allowed any more, it stays where it may be.
    pthread_setaffinity_np(thread_.native_handle(), sizeof others, &others);
    left_out_ = cpu;
  }
  // Where it is about to fall asleep it misses this, and is woken by Start.
  if (thread_sleeps_.load(std::memory_order_relaxed) != 0) {
    base::FutexWakeOne(&offers_);
  }
}

void CoreThread::Start(const PartWork& work, Part part, std::byte* scratch) {
  work_ = &work;
  part_ = part;
  scratch_ = scratch;
  state_.store(kOffered, std::memory_order_release);
  Store(offers_, offers_.load(std::memory_order_relaxed) + 1, thread_sleeps_);
}

absl::Status CoreThread::Finish() {
  uint32_t state = kOffered;
  if (state_.compare_exchange_strong(state, kIdle, std::memory_order_acq_rel)) {
    return DoPart(*work_, part_, scratch_);
  }
  while (state != kDone) state = Await(state_, kTaken, caller_sleeps_);
  state_.store(kIdle, std::memory_order_relaxed);
  return std::move(status_);
}

void Gang::Join(CoreThread* thread, std::byte* scratch) {
  threads_[size_] = thread;
  scratch_[size_] = scratch;
  ++size_;
}

void Gang::Rouse() {
  const int cpu = sched_getcpu();
  for (uint32_t i = 1; i < size_; ++i) threads_[i]->Rouse(cpu);
}

absl::Status Gang::Share(uint32_t parts, PartWork work) {
  for (uint32_t i = 1; i < parts; ++i) {
    threads_[i]->Start(work, {i, parts}, scratch_[i]);
  }
  // All of them have ended before this returns: they use the caller's stack.
  absl::Status status = DoPart(work, {0, parts}, scratch_[0]);
  for (uint32_t i = 1; i < parts; ++i) status.Update(threads_[i]->Finish());
  return status;
}

}  // namespace rknnd::soft
