// See work.h. Runs that are waited for; those that are not: queued_work.cc.

#include "tests/torture/work.h"

#include <poll.h>

#include <algorithm>
#include <random>
#include <thread>

#include "tests/torture/checked_context.h"
#include "tests/torture/queued_work.h"

namespace rknnd::torture {
namespace {

// After something failed, before it is tried again.
constexpr int kPauseMs = 20;
// A context that fails so often in a row is made anew.
constexpr int kFailures = 5;

// Sleeps until a frame's time is over.
class Pace {
 public:
  Pace(const Witness& witness, base::Nanoseconds period)
      : witness_(witness), period_(period), next_(witness.Now()) {}

  void Wait() {
    if (period_ == 0) return;
    next_ = std::max(next_ + period_, witness_.Now());
    const base::MonotonicClock clock;
    clock.SleepUntil(next_);
  }

 private:
  const Witness& witness_;
  const base::Nanoseconds period_;
  base::Nanoseconds next_;
};

// One frame; false when a call failed.
bool RunFrame(const Witness& witness, const CheckedContext& context,
              uint64_t frame, bool sync_by_hand) {
  context.arithmetic().FillInput(frame, context.input(0));
  context.arithmetic().Poison(context.output(0));
  if (sync_by_hand && (!context.SyncInput(0) || !context.SyncOutput(0))) {
    return false;
  }
  witness.page().accepted.fetch_add(1);
  if (!witness.Good(rknn_run(context.get(), nullptr), "rknn_run", frame)) {
    witness.page().accepted.fetch_sub(1);
    return false;
  }
  if (sync_by_hand && !context.SyncOutput(0)) return false;
  witness.Check(context.arithmetic(), frame, context.output(0));
  return true;
}

void RunFrames(const WorkPlan& plan, const Witness& witness,
               const CheckedContext& context, uint64_t first, uint64_t step) {
  Pace pace(witness, plan.period);
  int failures = 0;
  for (uint64_t frame = first; !witness.stopped(); frame += step) {
    const bool good =
        RunFrame(witness, context, frame, plan.work == Work::kImported);
    failures = good ? 0 : failures + 1;
    if (failures == kFailures) return;
    if (!good) poll(nullptr, 0, kPauseMs);
    pace.Wait();
  }
}

void WorkInStep(const WorkPlan& plan, const Witness& witness) {
  constexpr uint64_t kThreads = 3;
  const NetworkFile& file = plan.networks.front();
  CheckedContext first(witness, file, CheckedContext::From::kFile);
  if (!first.valid()) return;
  if (plan.work == Work::kImported) {
    if (first.AddImportedSet()) RunFrames(plan, witness, first, 1, 1);
    return;
  }
  if (!first.AddAllocatedSet()) return;
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      CheckedContext twin(witness, file, first);
      if (!twin.valid() || !twin.AddAllocatedSet()) return;
      RunFrames(plan, witness, twin, i, kThreads);
    });
  }
  RunFrames(plan, witness, first, kThreads, kThreads);
  for (std::thread& thread : threads) thread.join();
}

bool RunVendorFrame(const Witness& witness, const CheckedContext& context,
                    uint64_t frame, std::vector<int32_t>* input,
                    std::vector<int32_t>* output) {
  context.arithmetic().FillInput(frame, input->data());
  context.arithmetic().Poison(output->data());
  const auto bytes = static_cast<uint32_t>(context.network().bytes());
  rknn_input in{};
  in.buf = input->data();
  in.size = bytes;
  in.type = RKNN_TENSOR_INT32;
  in.fmt = RKNN_TENSOR_UNDEFINED;
  rknn_output out{};
  out.is_prealloc = 1;
  out.buf = output->data();
  out.size = bytes;
  if (!witness.Good(rknn_inputs_set(context.get(), 1, &in), "rknn_inputs_set",
                    frame)) {
    return false;
  }
  witness.page().accepted.fetch_add(1);
  if (!witness.Good(rknn_run(context.get(), nullptr), "rknn_run", frame) ||
      !witness.Good(rknn_outputs_get(context.get(), 1, &out, nullptr),
                    "rknn_outputs_get", frame)) {
    witness.page().accepted.fetch_sub(1);
    return false;
  }
  witness.Check(context.arithmetic(), frame, output->data());
  return witness.Good(rknn_outputs_release(context.get(), 1, &out),
                      "rknn_outputs_release", frame);
}

void WorkAsVendor(const WorkPlan& plan, const Witness& witness) {
  const CheckedContext context(witness, plan.networks.front(),
                               CheckedContext::From::kFile);
  if (!context.valid()) return;
  std::vector<int32_t> input(context.network().elements);
  std::vector<int32_t> output(context.network().elements);
  Pace pace(witness, plan.period);
  int failures = 0;
  for (uint64_t frame = 1; !witness.stopped(); ++frame) {
    const bool good = RunVendorFrame(witness, context, frame, &input, &output);
    failures = good ? 0 : failures + 1;
    if (failures == kFailures) return;
    if (!good) poll(nullptr, 0, kPauseMs);
    pace.Wait();
  }
}

void Churn(const WorkPlan& plan, const Witness& witness) {
  constexpr uint64_t kMostFrames = 5;
  std::minstd_rand random(static_cast<uint32_t>(plan.seed));
  Pace pace(witness, plan.period);
  while (!witness.stopped()) {
    const NetworkFile& file = plan.networks.at(random() % plan.networks.size());
    CheckedContext context(witness, file,
                           random() % 2 == 0 ? CheckedContext::From::kFile
                                             : CheckedContext::From::kBytes);
    const bool imported = random() % 2 == 0;
    const bool bound =
        context.valid() &&
        (imported ? context.AddImportedSet() : context.AddAllocatedSet());
    if (!bound) poll(nullptr, 0, kPauseMs);
    const uint64_t frames = random() % (kMostFrames + 1);
    for (uint64_t frame = 1; bound && frame <= frames; ++frame) {
      RunFrame(witness, context, frame, imported);
      pace.Wait();
    }
  }
}

}  // namespace

void DoWork(const WorkPlan& plan, const Witness& witness) {
  while (!witness.stopped()) {
    switch (plan.work) {
      case Work::kSync:
      case Work::kImported:
        WorkInStep(plan, witness);
        break;
      case Work::kVendor:
        WorkAsVendor(plan, witness);
        break;
      case Work::kChurn:
        Churn(plan, witness);
        break;
      case Work::kQueue:
      case Work::kLazy:
        WorkByQueue(plan, witness);
        break;
      case Work::kShared:
        WorkTogether(plan, witness);
        break;
    }
    if (!witness.stopped()) poll(nullptr, 0, kPauseMs);
  }
}

}  // namespace rknnd::torture
