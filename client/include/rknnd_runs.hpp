// Runs that are not waited for: what they wait for (Fence), what is asked of
// them (RunOptions), and how they tell of their end (Completion, Queue).
// Context::Submit begins one. Programs include rknnd.hpp, which says how
// objects, errors and threads are dealt with here, too.

#ifndef RKNND_RUNS_HPP
#define RKNND_RUNS_HPP

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "rknn_api.h"
#include "rknnd.h"
#include "rknnd_error.hpp"

namespace rknnd {

namespace detail {

// Times of std::chrono as the C API and poll take them.
inline uint64_t Positive(int64_t count) {
  return count < 0 ? 0 : static_cast<uint64_t>(count);
}
inline int Milliseconds(std::chrono::milliseconds time) {
  return static_cast<int>(std::min<uint64_t>(Positive(time.count()),
                                             std::numeric_limits<int>::max()));
}

}  // namespace detail

// A descriptor that can be read once something has happened: a run has ended, a
// camera has filled a buffer. Closes it. Handed to another process or another
// run, one follows the other without a thread that waits in between.
class Fence {
 public:
  // None.
  Fence() = default;
  // Takes a sync_file, an eventfd, a pipe, a timerfd, an end of a socketpair or
  // an accepted Unix connection.
  explicit Fence(int fd) : fd_(fd) {}
  Fence(Fence&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fence& operator=(Fence&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  ~Fence() { Close(); }

  // Whether there is one.
  explicit operator bool() const { return fd_ >= 0; }
  // Belongs to this object; -1 if empty.
  int fd() const { return fd_; }
  // Belongs to the caller from here on.
  int Release() { return std::exchange(fd_, -1); }
  // Whether it can be read, after waiting for that as long as is said; not in
  // advance of what a signal interrupts.
  bool Wait(std::chrono::milliseconds timeout) const {
    pollfd wait = {fd_, POLLIN, 0};
    return fd_ >= 0 && poll(&wait, 1, detail::Milliseconds(timeout)) > 0 &&
           (wait.revents & POLLIN) != 0;
  }

 private:
  void Close() noexcept {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  int fd_ = -1;
};

// How a run has ended. Times are the daemon's.
class Completion {
 public:
  // As the C API has filled it.
  explicit Completion(const rknnd_completion& completion)
      : completion_(completion) {}

  // Whether its outputs are there.
  bool ok() const { return code() == RKNN_SUCC; }
  // A newer frame took its place, or it was too old.
  bool dropped() const { return code() == RKNND_ERR_DROPPED; }
  bool cancelled() const { return code() == RKNND_ERR_CANCELLED; }
  // RKNN_SUCC, RKNN_ERR_* or RKNND_ERR_*.
  int code() const { return completion_.code; }
  rknn_context context() const { return completion_.context; }
  uint64_t frame() const { return completion_.frame_id; }
  void* user() const { return completion_.user; }
  uint32_t set() const { return completion_.set; }
  // The lowest core it ran on.
  uint32_t core() const { return completion_.core; }
  // Frames of its context that were dropped before it.
  uint32_t drops() const { return completion_.drops; }
  // Waiting for a core, on it, and both with what lies between.
  std::chrono::nanoseconds queue_time() const {
    return Time(completion_.queue_ns);
  }
  std::chrono::nanoseconds run_time() const { return Time(completion_.run_ns); }
  std::chrono::nanoseconds total_time() const {
    return Time(completion_.total_ns);
  }

  // For functions of the C API.
  const rknnd_completion& get() const { return completion_; }

 private:
  static std::chrono::nanoseconds Time(uint64_t nanoseconds) {
    return std::chrono::nanoseconds(static_cast<int64_t>(nanoseconds));
  }

  rknnd_completion completion_;
};

// Where runs tell of their end, those of any contexts. They may outlive it, and
// end unheard then.
class Queue {
 public:
  using Handler = std::function<void(const Completion&)>;

  // None.
  Queue() = default;
  static Queue Create() {
    Queue queue;
    detail::Check(rknnd_queue_create(&queue.handle_));
    queue.handlers_ = std::make_unique<Handlers>();
    return queue;
  }
  Queue(Queue&& other) noexcept { Swap(other); }
  // What this object had goes at once.
  Queue& operator=(Queue&& other) noexcept {
    Queue(std::move(other)).Swap(*this);
    return *this;
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() {
    if (handle_ != 0) rknnd_queue_destroy(handle_);
  }

  // Whether there is one.
  explicit operator bool() const { return handle_ != 0; }
  // For functions of the C API that have no member here.
  rknnd_queue handle() const { return handle_; }
  // Can be read (poll, epoll: level-triggered) while completions are there.
  // Belongs to this object; not to be read.
  int fd() const {
    const int fd = rknnd_queue_fd(handle_);
    if (fd < 0) detail::Fail(fd);
    return fd;
  }

  // The next completion, without waiting; nothing when none is there. Its
  // handler, where it has one, is not called and goes.
  std::optional<Completion> Next() {
    Handler unused;
    return Take(&unused);
  }
  // Calls the handlers of all completions that are there, on this thread; how
  // many they were. Those without one are passed over and lost. What a handler
  // throws comes out here, and what follows it stays. A handler may submit, to
  // this queue, too; it may not destroy or move the queue.
  uint32_t Dispatch() {
    uint32_t called = 0;
    // Those that handlers submit meanwhile are for the next call, or this one
    // might not end.
    const size_t most = handlers_->size();
    Handler handler;
    while (most == 0 || called < most) {
      const std::optional<Completion> completion = Take(&handler);
      if (!completion) break;
      if (!handler) continue;
      ++called;
      handler(*completion);
    }
    return called;
  }

 private:
  friend class Context;
  // By address, which a run has for its `user`.
  using Handlers = std::map<const void*, std::unique_ptr<Handler>>;

  void* Keep(Handler handler) {
    auto kept = std::make_unique<Handler>(std::move(handler));
    void* const key = kept.get();
    (*handlers_)[key] = std::move(kept);
    return key;
  }
  void Forget(const void* key) { handlers_->erase(key); }

  std::optional<Completion> Take(Handler* handler) {
    *handler = nullptr;
    rknnd_completion completion = {};
    const int code = rknnd_queue_next(handle_, &completion, sizeof completion);
    if (code == RKNND_ERR_EMPTY) return std::nullopt;
    detail::Check(code);
    const auto kept = handlers_->find(completion.user);
    if (kept != handlers_->end()) {
      *handler = std::move(*kept->second);
      handlers_->erase(kept);
      completion.user = nullptr;
    }
    return Completion(completion);
  }

  void Swap(Queue& other) noexcept {
    std::swap(handle_, other.handle_);
    handlers_.swap(other.handlers_);
  }

  rknnd_queue handle_ = 0;
  std::unique_ptr<Handlers> handlers_;
};

// What is to differ from a plain run. Queues and fences that are named here are
// there until Context::Submit has returned.
class RunOptions {
 public:
  RunOptions() { options_.size = sizeof options_; }

  // The program's number of the frame; counted per context, from 1, if none is
  // given.
  RunOptions& Frame(uint64_t number) {
    options_.frame_id = number;
    return *this;
  }
  // Not begun later than so long from now.
  RunOptions& Deadline(std::chrono::nanoseconds time) {
    options_.deadline_ns = detail::Positive(time.count());
    return *this;
  }
  // Ended so long from now, one way or the other.
  RunOptions& Timeout(std::chrono::milliseconds time) {
    options_.timeout_ms = static_cast<int32_t>(std::min<uint64_t>(
        detail::Positive(time.count()), std::numeric_limits<int32_t>::max()));
    return *this;
  }
  // Of bindings, as the Bind functions know them.
  RunOptions& Set(uint32_t set) {
    options_.set = set;
    return *this;
  }
  // Begun when the fence, or what is behind the descriptor, can be read.
  RunOptions& After(int fd) {
    options_.fence_in = fd;
    options_.use_fence_in = 1;
    return *this;
  }
  RunOptions& After(const Fence& fence) { return After(fence.fd()); }
  // `fence` becomes one that can be read once the run has ended.
  RunOptions& Signal(Fence* fence) {
    fence_ = fence;
    return *this;
  }
  // Another program's equal run may answer it: see RKNND_RUN_SHARED.
  RunOptions& Shared() {
    options_.flags |= RKNND_RUN_SHARED;
    return *this;
  }
  // Its end is told to `queue`: for Next(), or by a call of `handler` from
  // Dispatch(). Without, it is waited for with Context::Wait.
  RunOptions& Notify(Queue& queue, Queue::Handler handler = nullptr) {
    queue_ = &queue;
    options_.queue = queue.handle();
    handler_ = std::move(handler);
    return *this;
  }
  // Comes back as Completion::user(), where there is no handler.
  RunOptions& User(void* user) {
    options_.user = user;
    return *this;
  }

 private:
  friend class Context;

  rknnd_run_options options_ = {};
  Queue* queue_ = nullptr;
  Queue::Handler handler_;
  Fence* fence_ = nullptr;
};

}  // namespace rknnd

#endif  // RKNND_RUNS_HPP
