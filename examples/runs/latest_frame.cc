// A camera that is twice as fast as its network: with RKNND_QUEUE_NEWEST one
// frame waits, and a newer one takes its place, so that what is answered is
// never old; with RKNND_QUEUE_FIFO each frame is computed, ever later.
//
//   latest_frame MODEL [FRAMES]

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <utility>
#include <vector>

#include "examples/runs/pictures.h"
#include "rknnd.hpp"

namespace rknnd::examples {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

// One frame is filled, one waits, one is computed; with FIFO more wait.
constexpr uint32_t kSets = RKNND_SETS;

struct Figures {
  uint64_t answered = 0, dropped = 0, skipped = 0;
  std::vector<double> ages;  // of answered frames, when they were answered

  double Percentile(double share) {
    if (ages.empty()) return 0;
    std::sort(ages.begin(), ages.end());
    return ages[static_cast<size_t>(share *
                                    static_cast<double>(ages.size() - 1))];
  }
};

class Stream {
 public:
  explicit Stream(const char* model)
      : context_(Context::FromFile(model)),
        slots_(BindSets(context_, kSets)),
        queue_(Queue::Create()) {
    // How long a frame takes on this board; the first run takes pages in.
    context_.Run();
    for (int i = 0; i < 5; ++i) {
      const auto begun = Clock::now();
      context_.Run();
      inference_ = i == 0 ? Clock::now() - begun
                          : std::min(inference_, Clock::now() - begun);
    }
  }

  [[nodiscard]] Clock::duration inference() const { return inference_; }

  Figures Film(rknnd_policy policy, uint64_t frames) {
    context_.SetQueuePolicy(policy);
    figures_ = {};
    const auto begin = Clock::now();
    for (uint64_t number = 0; number < frames; ++number) {
      // The next frame, half an inference after the last one.
      Listen(begin + number * inference_ / 2);
      const auto free = std::find(busy_.begin(), busy_.end(), false);
      if (free == busy_.end()) {
        ++figures_.skipped;
        continue;
      }
      const auto set = static_cast<uint32_t>(free - busy_.begin());
      examples::Film(slots_[set].picture, 0, number);
      *free = true;
      ++on_their_way_;
      context_.Submit(RunOptions().Set(set).Notify(
          queue_, [this, filmed = Clock::now()](const Completion& run) {
            OnEnd(run, filmed);
          }));
    }
    while (on_their_way_ > 0) Listen(Clock::now() + std::chrono::seconds(1));
    return std::move(figures_);
  }

 private:
  // Hears of what ends until then.
  void Listen(Clock::time_point until) {
    do {
      const auto left = std::max<std::chrono::nanoseconds>(
          until - Clock::now(), std::chrono::nanoseconds(0));
      const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
      timespec wait = {};
      wait.tv_sec = seconds.count();
      wait.tv_nsec = (left - seconds).count();
      pollfd ended = {queue_.fd(), POLLIN, 0};
      if (ppoll(&ended, 1, &wait, nullptr) > 0) {
        queue_.Dispatch();
        if (on_their_way_ == 0) return;
      }
    } while (Clock::now() < until);
  }

  void OnEnd(const Completion& run, Clock::time_point filmed) {
    busy_[run.set()] = false;
    --on_their_way_;
    if (run.dropped()) {
      ++figures_.dropped;
      return;
    }
    if (!run.ok()) throw Error(run.code(), "a run failed");
    ++figures_.answered;
    figures_.ages.push_back(Milliseconds(Clock::now() - filmed).count());
  }

  Context context_;
  std::vector<FrameSlot> slots_;
  Clock::duration inference_{};
  std::array<bool, kSets> busy_{};
  uint32_t on_their_way_ = 0;
  Figures figures_;
  Queue queue_;
};

void Print(const char* name, Figures& figures, double inference) {
  std::printf(
      "%-7s %4llu answered, %4llu dropped, %4llu not taken; age of what "
      "is answered: p50 %.1f, p99 %.1f inference times\n",
      name, static_cast<unsigned long long>(figures.answered),
      static_cast<unsigned long long>(figures.dropped),
      static_cast<unsigned long long>(figures.skipped),
      figures.Percentile(0.5) / inference,
      figures.Percentile(0.99) / inference);
}

// Whether frames were dropped, and what is answered is newer for it.
bool Compare(const char* model, uint64_t frames) {
  Stream stream(model);
  const double inference = Milliseconds(stream.inference()).count();
  std::printf("one inference takes %.1f ms; a frame comes every %.1f ms\n",
              inference, inference / 2);
  Figures newest = stream.Film(RKNND_QUEUE_NEWEST, frames);
  Figures all = stream.Film(RKNND_QUEUE_FIFO, frames);
  Print("newest", newest, inference);
  Print("fifo", all, inference);
  return newest.answered > 0 && newest.dropped > 0 && all.dropped == 0 &&
         newest.Percentile(0.5) < all.Percentile(0.5);
}

}  // namespace
}  // namespace rknnd::examples

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: latest_frame MODEL [FRAMES]\n");
    return 2;
  }
  try {
    const uint64_t frames =
        argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 200;
    return rknnd::examples::Compare(argv[1], frames) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "latest_frame: %s\n", error.what());
    return 1;
  }
}
