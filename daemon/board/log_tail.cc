// Written to by all threads of the daemon, some of them in the middle of a job.

#include "daemon/board/log_tail.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rknnd::board {
namespace {

using transport::LogLine;
using transport::Severity;

uint64_t WallClock() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

// One follower's lines on their way to the loop.
struct LogTail::Queue {
  Queue(base::Executor* executor, uint32_t highest,
        transport::Board::LineCallback callback)
      : loop(executor), level(highest), line(std::move(callback)) {}

  // Whether its owner is to post a delivery.
  bool Push(std::shared_ptr<const Line> added) {
    base::MutexLock lock(mutex);
    if (waiting.size() == kKept) {
      ++lost;
      return false;
    }
    waiting.push_back(std::move(added));
    return !std::exchange(posted, true);
  }

  base::Executor* const loop;
  const uint32_t level;
  const transport::Board::LineCallback line;
  bool ended = false;  // loop only

  base::Mutex mutex;
  std::deque<std::shared_ptr<const Line>> waiting RKNND_GUARDED_BY(mutex);
  uint64_t lost RKNND_GUARDED_BY(mutex) = 0;  // after the last that waits
  bool posted RKNND_GUARDED_BY(mutex) = false;
  uint64_t refused = 0;  // lines before the next one; loop only
};

class LogTail::Follower final : public transport::LogFollower {
 public:
  Follower(LogTail* tail, std::shared_ptr<Queue> queue)
      : tail_(tail), queue_(std::move(queue)) {}
  ~Follower() override {
    queue_->ended = true;
    tail_->Forget(queue_.get());
  }

 private:
  LogTail* const tail_;
  const std::shared_ptr<Queue> queue_;
};

LogTail::LogTail(transport::EventLog* next, uint32_t level,
                 std::function<uint64_t()> now)
    : next_(next), now_(now ? std::move(now) : WallClock), level_(level) {}

LogTail::~LogTail() = default;

void LogTail::Write(Severity severity, const std::string& text) {
  WriteEvent(severity, text, {});
}

void LogTail::WriteEvent(Severity severity, const std::string& text,
                         const core::EventFields& fields) {
  auto line = std::make_shared<const Line>(Line{
      static_cast<uint32_t>(severity), text.substr(0, kLongestLine), now_()});
  std::vector<std::shared_ptr<Queue>> told;
  bool goes_on = false;
  {
    base::MutexLock lock(mutex_);
    goes_on = line->level <= level_;
    if (kept_.size() == kKept) kept_.pop_front();
    kept_.push_back(line);
    for (const std::shared_ptr<Queue>& follower : followers_) {
      if (line->level <= follower->level) told.push_back(follower);
    }
  }
  for (const std::shared_ptr<Queue>& queue : told) {
    if (queue->Push(line)) queue->loop->Post([queue] { Deliver(*queue); });
  }
  if (goes_on) next_->WriteEvent(severity, text, fields);
}

uint32_t LogTail::SetLevel(uint32_t level) {
  base::MutexLock lock(mutex_);
  return std::exchange(level_, level);
}

std::unique_ptr<transport::LogFollower> LogTail::Follow(
    base::Executor* loop, uint32_t level, uint32_t recent,
    transport::Board::LineCallback line) {
  auto queue = std::make_shared<Queue>(loop, level, std::move(line));
  bool post = false;
  {
    base::MutexLock lock(mutex_);
    std::vector<std::shared_ptr<const Line>> last;
    for (auto kept = kept_.rbegin();
         kept != kept_.rend() && last.size() < recent; ++kept) {
      if ((*kept)->level <= level) last.push_back(*kept);
    }
    for (auto kept = last.rbegin(); kept != last.rend(); ++kept) {
      post |= queue->Push(*kept);
    }
    followers_.push_back(queue);
  }
  if (post) loop->Post([queue] { Deliver(*queue); });
  return std::make_unique<Follower>(this, std::move(queue));
}

void LogTail::Forget(const Queue* queue) {
  base::MutexLock lock(mutex_);
  std::erase_if(followers_,
                [queue](const auto& other) { return other.get() == queue; });
}

void LogTail::Deliver(Queue& queue) {
  std::deque<std::shared_ptr<const Line>> lines;
  uint64_t lost = 0;
  {
    base::MutexLock lock(queue.mutex);
    lines.swap(queue.waiting);
    lost = std::exchange(queue.lost, 0);
    queue.posted = false;
  }
  for (const std::shared_ptr<const Line>& line : lines) {
    // The callback may end its follower.
    if (queue.ended) return;
    const bool taken =
        queue.line({line->level, line->text, line->time_ns, queue.refused});
    queue.refused = taken ? 0 : queue.refused + 1;
  }
  queue.refused += lost;
}

}  // namespace rknnd::board
