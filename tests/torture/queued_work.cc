// See queued_work.h.

#include "tests/torture/queued_work.h"

#include <poll.h>

#include <map>
#include <random>
#include <vector>

#include "tests/torture/checked_context.h"

namespace rknnd::torture {
namespace {

// For the answers that are still to come when all is over: longer than a
// daemon's absence may last for a client.
constexpr base::Nanoseconds kPatience = 35 * base::kSecond;
constexpr int kLookMs = 100;
// How long a lazy program does something else.
constexpr int kLazyMs = 150;
constexpr size_t kQueuedSets = 4, kLazySets = 8;

// The frames of one context that are on their way. Thread: one.
class FramesInFlight {
 public:
  FramesInFlight(const Witness& witness, const CheckedContext& context,
                 rknnd_queue queue)
      : witness_(witness), context_(context), queue_(queue) {
    for (size_t set = 0; set < context.sets(); ++set) free_.push_back(set);
  }

  [[nodiscard]] bool full() const { return free_.empty(); }
  [[nodiscard]] bool empty() const { return in_flight_.empty(); }
  [[nodiscard]] int failures() const { return failures_; }

  bool Submit(uint64_t frame) {
    const size_t set = free_.back();
    context_.arithmetic().FillInput(frame, context_.input(set));
    context_.arithmetic().Poison(context_.output(set));
    rknnd_run_options options{};
    options.size = sizeof options;
    options.frame_id = frame;
    options.set = static_cast<uint32_t>(set);
    options.queue = queue_;
    if (!witness_.Good(rknnd_submit(context_.get(), &options, nullptr),
                       "rknnd_submit", frame)) {
      ++failures_;
      return false;
    }
    witness_.page().accepted.fetch_add(1);
    free_.pop_back();
    in_flight_[frame] = set;
    return true;
  }

  // Takes one completion; false when none is there.
  bool TakeOne() {
    rknnd_completion done{};
    const int code = rknnd_queue_next(queue_, &done, sizeof done);
    if (code == RKNND_ERR_EMPTY) return false;
    if (!witness_.Good(code, "rknnd_queue_next")) return false;
    const auto frame_in_flight = in_flight_.find(done.frame_id);
    if (frame_in_flight == in_flight_.end()) {
      witness_.Tell(NoteKind::kDouble, done.code, "rknnd_queue_next",
                    done.frame_id, "it is not on its way");
      return true;
    }
    if (frame_in_flight != in_flight_.begin()) {
      witness_.Tell(
          NoteKind::kTurn, done.code, "rknnd_queue_next", done.frame_id,
          "answered before frame " + std::to_string(in_flight_.begin()->first));
    }
    const size_t set = frame_in_flight->second;
    in_flight_.erase(frame_in_flight);
    free_.push_back(set);
    if (witness_.Good(done.code, "completion", done.frame_id)) {
      witness_.Check(context_.arithmetic(), done.frame_id,
                     context_.output(set));
      failures_ = 0;
    } else {
      witness_.page().accepted.fetch_sub(1);
      ++failures_;
    }
    return true;
  }

  // Until all have ended; those that do not are lost.
  void Drain() {
    const base::Nanoseconds deadline = witness_.Now() + kPatience;
    while (!empty() && witness_.Now() < deadline) {
      if (!TakeOne()) Wait();
    }
    for (const auto& [frame, set] : in_flight_) {
      witness_.Tell(NoteKind::kLost, 0, "rknnd_submit", frame,
                    "no completion came");
    }
  }

  void Wait() const {
    pollfd entry = {rknnd_queue_fd(queue_), POLLIN, 0};
    poll(&entry, 1, kLookMs);
  }

 private:
  const Witness& witness_;
  const CheckedContext& context_;
  const rknnd_queue queue_;
  std::vector<size_t> free_;
  std::map<uint64_t, size_t> in_flight_;  // the set of each
  int failures_ = 0;                      // in a row
};

constexpr int kQueuedFailures = 5;

}  // namespace

void WorkByQueue(const WorkPlan& plan, const Witness& witness) {
  const bool lazy = plan.work == Work::kLazy;
  CheckedContext context(witness, plan.networks.front(),
                         CheckedContext::From::kFile);
  rknnd_queue queue = 0;
  if (!context.valid()) return;
  while (context.sets() < (lazy ? kLazySets : kQueuedSets)) {
    if (!context.AddAllocatedSet()) return;
  }
  if (!witness.Good(rknnd_queue_create(&queue), "rknnd_queue_create")) return;
  FramesInFlight frames(witness, context, queue);
  uint64_t frame = 0;
  while (!witness.stopped() && frames.failures() < kQueuedFailures) {
    while (!frames.full() && frames.Submit(++frame)) {
    }
    if (lazy) {
      poll(nullptr, 0, kLazyMs);
    } else {
      frames.Wait();
    }
    while (frames.TakeOne()) {
    }
    if (plan.period > 0) {
      const base::MonotonicClock clock;
      clock.SleepUntil(witness.Now() + plan.period);
    }
  }
  frames.Drain();
  witness.Good(rknnd_queue_destroy(queue), "rknnd_queue_destroy");
}

// Both clients take the number of a frame from the clock, as if a camera had
// numbered it, so that they ask for the same frames at the same time.
void WorkTogether(const WorkPlan& plan, const Witness& witness) {
  constexpr base::Nanoseconds kFrameTime = 5 * base::kMillisecond;
  constexpr int kRunMs = 60'000;
  CheckedContext context(witness, plan.networks.front(),
                         CheckedContext::From::kFile);
  if (!context.valid()) return;
  const uint64_t stride = SharedStride(context.network());
  for (uint64_t i = 0; i < kSharedInputs; ++i) {
    if (!context.AddSharedSet(plan.inputs, i * stride)) return;
  }
  const base::MonotonicClock clock;
  uint64_t before = 0;
  int failures = 0;
  while (!witness.stopped() && failures < kQueuedFailures) {
    uint64_t frame = static_cast<uint64_t>(witness.Now() / kFrameTime);
    if (frame == before) ++frame;
    clock.SleepUntil(static_cast<base::Nanoseconds>(frame) * kFrameTime);
    before = frame;
    // The inputs were filled for all: only the outputs are this client's.
    const uint64_t set = frame % kSharedInputs;
    context.arithmetic().Poison(context.output(set));
    rknnd_run_options options{};
    options.size = sizeof options;
    options.flags = RKNND_RUN_SHARED;
    options.frame_id = frame;
    options.set = static_cast<uint32_t>(set);
    rknnd_completion done{};
    witness.page().accepted.fetch_add(1);
    if (witness.Good(rknnd_submit(context.get(), &options, nullptr),
                     "rknnd_submit", frame) &&
        witness.Good(
            rknnd_wait(context.get(), frame, kRunMs, &done, sizeof done),
            "rknnd_wait", frame)) {
      witness.Check(context.arithmetic(), set, context.output(set));
      failures = 0;
    } else {
      witness.page().accepted.fetch_sub(1);
      ++failures;
      poll(nullptr, 0, kLookMs);
    }
  }
}

}  // namespace rknnd::torture
