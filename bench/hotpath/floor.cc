// See floor.h.

#include "bench/hotpath/floor.h"

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/futex.h"
#include "base/posix/socket.h"
#include "bench/common/placement.h"

namespace rknnd::bench {

namespace {

constexpr size_t kLine = 64;

// Code with a return on each line of the cache; empty where none is made.
class Lines {
 public:
  explicit Lines(size_t bytes) {
#if defined(__x86_64__)
    constexpr uint8_t kReturn[] = {0xc3};
#elif defined(__aarch64__)
    constexpr uint8_t kReturn[] = {0xc0, 0x03, 0x5f, 0xd6};
#else
    bytes = 0;
    constexpr uint8_t kReturn[] = {0};
#endif
    if (bytes == 0) return;
    void* const code = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return;
    auto* const begin = static_cast<char*>(code);
    for (size_t at = 0; at + kLine <= bytes; at += kLine) {
      std::memcpy(begin + at, kReturn, sizeof kReturn);
    }
    __builtin___clear_cache(begin, begin + bytes);
    if (mprotect(code, bytes, PROT_READ | PROT_EXEC) != 0) return;
    begin_ = begin;
    size_ = bytes / kLine * kLine;
  }
  [[nodiscard]] size_t size() const { return size_; }
  void Execute(size_t at) const {
    reinterpret_cast<void (*)()>(begin_ + at)();  // NOLINT: that is the point
  }

 private:
  char* begin_ = nullptr;  // until the process ends
  size_t size_ = 0;
};

// Reads and writes each line of `memory`, and executes those of `code`, for
// that long; how long it was.
int64_t Walk(std::vector<unsigned char>* memory, const Lines& code,
             int64_t nanoseconds) {
  constexpr size_t kLinesALook = 256;
  const base::MonotonicClock clock;
  const base::Nanoseconds start = clock.Now();
  base::Nanoseconds now = start;
  for (size_t at = 0, to = 0; now - start < nanoseconds; now = clock.Now()) {
    for (size_t i = 0; i < kLinesALook && !memory->empty(); ++i) {
      volatile unsigned char& line = (*memory)[at];
      line = line + 1;
      at = at + kLine < memory->size() ? at + kLine : 0;
    }
    for (size_t i = 0; i < kLinesALook && code.size() != 0; ++i) {
      code.Execute(to);
      to = to + kLine < code.size() ? to + kLine : 0;
    }
  }
  return now - start;
}

}  // namespace

PingPong::PingPong(int cpu, const Footprint& footprint)
    : ping_(eventfd(0, EFD_CLOEXEC)), pong_(eventfd(0, EFD_CLOEXEC)) {
  child_ = fork();
  if (child_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  PinTo(cpu);
  std::vector<unsigned char> memory(footprint.memory);
  const Lines code(footprint.code);
  // Each way the value is a time plus 1: there of the work, back what it took.
  uint64_t value = 0;
  while (read(ping_.get(), &value, sizeof value) == sizeof value) {
    if (value > 1) {
      value = 1 + static_cast<uint64_t>(
                      Walk(&memory, code, static_cast<int64_t>(value - 1)));
    }
    if (write(pong_.get(), &value, sizeof value) != sizeof value) break;
  }
  _exit(0);
}

PingPong::~PingPong() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

void PingPong::Round(int count, Samples* samples) {
  const base::MonotonicClock clock;
  const uint64_t one = 1;
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    const base::Nanoseconds start = clock.Now();
    if (write(ping_.get(), &one, sizeof one) != sizeof one ||
        read(pong_.get(), &value, sizeof value) != sizeof value) {
      return;
    }
    samples->Add(clock.Now() - start);
  }
}

void PingPong::RoundAfterWork(int64_t nanoseconds, Samples* samples) {
  const base::MonotonicClock clock;
  uint64_t value = 1 + static_cast<uint64_t>(nanoseconds);
  const base::Nanoseconds start = clock.Now();
  if (write(ping_.get(), &value, sizeof value) != sizeof value ||
      read(pong_.get(), &value, sizeof value) != sizeof value) {
    return;
  }
  samples->Add(clock.Now() - start - static_cast<int64_t>(value - 1));
}

SameCalls::SameCalls(int cpu, const Footprint& footprint)
    : ping_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  void* const page = mmap(nullptr, sizeof *shared_, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::runtime_error("no page to share");
  shared_ = new (page) Shared;
  child_ = fork();
  if (child_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  PinTo(cpu);
  std::vector<unsigned char> memory(footprint.memory);
  const Lines code(footprint.code);
  const base::UniqueFd set(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  if (epoll_ctl(set.get(), EPOLL_CTL_ADD, ping_.get(), &event) != 0) _exit(1);
  while (epoll_wait(set.get(), &event, 1, -1) == 1) {
    shared_->took = Walk(&memory, code, shared_->work);
    shared_->answers.fetch_add(1);
    base::FutexWakeOne(&shared_->answers);
  }
  _exit(0);
}

SameCalls::~SameCalls() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  munmap(shared_, sizeof *shared_);
}

void SameCalls::RoundAfterWork(int64_t nanoseconds, Samples* samples) {
  const base::MonotonicClock clock;
  constexpr base::Nanoseconds kLimit = base::kSecond;
  const uint32_t before = shared_->answers.load();
  shared_->work = nanoseconds;
  const base::Nanoseconds start = clock.Now();
  base::SignalEventFd(ping_.get());
  while (shared_->answers.load() == before) {
    base::FutexWait(&shared_->answers, before, kLimit);
    if (clock.Now() - start > nanoseconds + kLimit) return;
  }
  samples->Add(clock.Now() - start - shared_->took);
}

FutexPeer::FutexPeer(int cpu) : ping_(eventfd(0, EFD_CLOEXEC)) {
  void* const page = mmap(nullptr, sizeof *answers_, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::runtime_error("no page to share");
  answers_ = new (page) std::atomic<uint32_t>(0);
  child_ = fork();
  if (child_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  PinTo(cpu);
  uint64_t value = 0;
  while (read(ping_.get(), &value, sizeof value) == sizeof value) {
    answers_->fetch_add(1);
    base::FutexWakeOne(answers_);
  }
  _exit(0);
}

FutexPeer::~FutexPeer() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  munmap(answers_, sizeof *answers_);
}

void FutexPeer::Round(int count) {
  const uint64_t one = 1;
  for (int i = 0; i < count; ++i) {
    const uint32_t before = answers_->load();
    if (write(ping_.get(), &one, sizeof one) != sizeof one) return;
    while (answers_->load() == before) {
      // As cheap as it gets: without a time.
      syscall(SYS_futex, answers_, FUTEX_WAIT, before, nullptr, nullptr, 0);
    }
  }
}

}  // namespace rknnd::bench
