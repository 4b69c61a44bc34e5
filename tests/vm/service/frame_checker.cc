// A program under which the service is upgraded and killed: runs a model
// without a pause, in two streams, and looks at every answer. One stream waits
// for each run; the other keeps three frames on their way. It knows nothing of
// daemons that go: it uses the plain API and takes any error for a loss.
//
//   vm_frame_checker [--period MS]     until SIGTERM or SIGINT
//
// With a period a stream waits so long from one frame to the next, as a camera
// does; without, it has no pauses.
// Says on stdout how many frames were answered, some times a second, and at the
// end `submitted S answered A wrong W failed F longest_gap_ms G`. Exit status
// 0: each frame that was submitted was answered, and rightly. Called by
// scenario.sh in the guest with systemd.

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/interrupts.h"
#include "client/include/rknnd.hpp"
#include "tests/integration/harness/integer_model.h"

namespace rknnd::vm {
namespace {

using Clock = std::chrono::steady_clock;

// As IntegerSum() has them.
constexpr uint32_t kNumbers = 16;
constexpr uint32_t kSets = 3;
constexpr std::chrono::milliseconds kReportPeriod(200);

// What one stream has seen. Written by its thread, read by all.
class Tally {
 public:
  void Submit() { ++submitted_; }
  void Answer(bool right) {
    const auto now = Clock::now();
    longest_gap_ = std::max(longest_gap_.load(), (now - last_).count());
    last_ = now;
    ++answered_;
    if (!right) ++wrong_;
  }
  void Fail(const char* stream, uint64_t frame, const std::string& why) {
    ++failed_;
    std::fprintf(stderr, "%s: frame %llu: %s\n", stream,
                 static_cast<unsigned long long>(frame), why.c_str());
  }

  [[nodiscard]] uint64_t submitted() const { return submitted_; }
  [[nodiscard]] uint64_t answered() const { return answered_; }
  [[nodiscard]] uint64_t wrong() const { return wrong_; }
  [[nodiscard]] uint64_t failed() const { return failed_; }
  [[nodiscard]] Clock::duration longest_gap() const {
    return Clock::duration(longest_gap_);
  }

 private:
  std::atomic<uint64_t> submitted_ = 0, answered_ = 0, wrong_ = 0, failed_ = 0;
  std::atomic<Clock::rep> longest_gap_ = 0;
  Clock::time_point last_ = Clock::now();  // the stream's thread alone
};

// A frame's input and its answer, in memory that the NPU reads and writes.
struct Slot {
  Memory input, output;

  void Fill(uint64_t frame) const {
    for (uint32_t i = 0; i < kNumbers; ++i) {
      input.as<uint32_t>()[i] = Number(frame, i);
    }
  }
  [[nodiscard]] bool HoldsAnswerTo(uint64_t frame) const {
    for (uint32_t i = 0; i < kNumbers; ++i) {
      if (output.as<uint32_t>()[i] != 2 * Number(frame, i)) return false;
    }
    return true;
  }

 private:
  // Another one in each place of each frame.
  static uint32_t Number(uint64_t frame, uint32_t i) {
    return static_cast<uint32_t>(frame) * kNumbers + i;
  }
};

Context Load() {
  const std::string model = integration::IntegerSum();
  return Context::FromBytes(model.data(), static_cast<uint32_t>(model.size()));
}

Slot BindSlot(Context& context, uint32_t set) {
  Slot slot = {context.AllocateInput(0), context.AllocateOutput(0)};
  context.BindInput(set, 0, slot.input);
  context.BindOutput(set, 0, slot.output);
  return slot;
}

// One frame after the other, each waited for. Thread: its own.
void RunAndWait(Context context, Clock::duration period, Tally& tally,
                const std::atomic<bool>& stop) {
  const Slot slot = BindSlot(context, 0);
  for (uint64_t frame = 1; !stop; ++frame) {
    slot.Fill(frame);
    tally.Submit();
    try {
      context.Run();
      tally.Answer(slot.HoldsAnswerTo(frame));
    } catch (const Error& error) {
      tally.Fail("run", frame, error.what());
    }
    std::this_thread::sleep_for(period);
  }
}

// Frames on their way in all sets, told of by a queue. Thread: the main one.
class Pipeline {
 public:
  explicit Pipeline(Tally& tally)
      : tally_(tally), context_(Load()), queue_(Queue::Create()) {
    for (uint32_t set = 0; set < kSets; ++set) {
      slots_[set] = BindSlot(context_, set);
      idle_.push_back(set);
    }
  }

  [[nodiscard]] int fd() const { return queue_.fd(); }
  [[nodiscard]] bool is_idle() const { return on_their_way_ == 0; }
  // A frame in each set that has none.
  void Fill() {
    for (const uint32_t set : std::exchange(idle_, {})) Submit(set);
  }
  // At the answers that are there.
  void Look() { queue_.Dispatch(); }

 private:
  void Submit(uint32_t set) {
    const uint64_t frame = ++newest_;
    slots_.at(set).Fill(frame);
    tally_.Submit();
    try {
      context_.Submit(RunOptions().Set(set).Frame(frame).Notify(
          queue_, [this](const Completion& run) { OnEnd(run); }));
      ++on_their_way_;
    } catch (const Error& error) {
      tally_.Fail("submit", frame, error.what());
      idle_.push_back(set);
    }
  }
  void OnEnd(const Completion& run) {
    --on_their_way_;
    idle_.push_back(run.set());
    if (run.ok()) {
      tally_.Answer(slots_.at(run.set()).HoldsAnswerTo(run.frame()));
    } else {
      tally_.Fail("queue", run.frame(), "code " + std::to_string(run.code()));
    }
  }

  Tally& tally_;
  Context context_;
  std::array<Slot, kSets> slots_;
  uint64_t newest_ = 0;
  uint32_t on_their_way_ = 0;
  std::vector<uint32_t> idle_;  // sets
  Queue queue_;
};

std::chrono::milliseconds ReadPeriod(int argc, char** argv) {
  if (argc == 1) return std::chrono::milliseconds(0);
  char* end = nullptr;
  const bool named = argc == 3 && std::string(argv[1]) == "--period";
  const long period = named ? std::strtol(argv[2], &end, 10) : 0;
  if (period <= 0 || *end != '\0') {
    throw std::runtime_error("usage: vm_frame_checker [--period MS]");
  }
  return std::chrono::milliseconds(period);
}

int Main(std::chrono::milliseconds period) {
  const auto interrupts = base::Interrupts::Catch();
  if (!interrupts) throw std::runtime_error(interrupts.error().message);
  std::array<Tally, 2> tallies;
  Pipeline pipeline(tallies[1]);
  std::atomic<bool> stop = false;
  std::thread waiting(
      [context = Load(), period, &tally = tallies[0], &stop]() mutable {
        RunAndWait(std::move(context), period, tally, stop);
      });
  const auto answered = [&tallies] {
    return static_cast<unsigned long long>(tallies[0].answered() +
                                           tallies[1].answered());
  };

  auto fill = Clock::now(), report = fill;
  const auto pause =
      period.count() > 0 ? std::min(period, kReportPeriod) : kReportPeriod;
  while (!stop || !pipeline.is_idle()) {
    const auto now = Clock::now();
    if (!stop && now >= fill) {
      pipeline.Fill();
      fill = now + period;
    }
    if (now >= report) {
      std::printf("answered %llu\n", answered());
      std::fflush(stdout);
      report = now + kReportPeriod;
    }
    std::array<pollfd, 2> look = {
        {{pipeline.fd(), POLLIN, 0}, {interrupts->fd(), POLLIN, 0}}};
    poll(look.data(), stop ? 1 : look.size(), static_cast<int>(pause.count()));
    if (interrupts->Take() != 0) stop = true;
    pipeline.Look();
  }
  waiting.join();

  unsigned long long submitted = 0, wrong = 0, failed = 0;
  Clock::duration gap = {};
  for (const Tally& tally : tallies) {
    submitted += tally.submitted();
    wrong += tally.wrong();
    failed += tally.failed();
    gap = std::max(gap, tally.longest_gap());
  }
  const bool each_has_run =
      tallies[0].answered() > 0 && tallies[1].answered() > 0;
  std::printf(
      "submitted %llu answered %llu wrong %llu failed %llu "
      "longest_gap_ms %lld\n",
      submitted, answered(), wrong, failed,
      static_cast<long long>(
          std::chrono::duration_cast<std::chrono::milliseconds>(gap).count()));
  return each_has_run && submitted == answered() && wrong == 0 && failed == 0
             ? 0
             : 1;
}

}  // namespace
}  // namespace rknnd::vm

int main(int argc, char** argv) {
  try {
    return rknnd::vm::Main(rknnd::vm::ReadPeriod(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vm_frame_checker: %s\n", error.what());
    return 1;
  }
}
