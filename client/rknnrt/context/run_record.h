// The runs of one context: those that are on their way, how the last ones
// ended, and whose outputs rknn_outputs_get means.
//
// A started run has a record until its end was told: by rknnd_wait or
// rknn_wait, or by the queue that it was submitted with. The oldest that nobody
// asks for are forgotten in time. Its sums are counted once, by whoever looks
// first after its end.

#ifndef CLIENT_RKNNRT_CONTEXT_RUN_RECORD_H_
#define CLIENT_RKNNRT_CONTEXT_RUN_RECORD_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/session/target.h"

namespace rknnd::client {

// Bytes copied or converted, by direction and reason: proof of how little.
struct CopyCounters {
  std::atomic<uint64_t> to_device_inputs_set{0};
  std::atomic<uint64_t> to_device_conversion{0};
  std::atomic<uint64_t> from_device_outputs_get{0};
  std::atomic<uint64_t> from_device_conversion{0};
};

// What the device converts in a run, as its inputs and outputs are bound.
struct Conversions {
  uint64_t in = 0, out = 0;
};

// The last run that succeeded.
struct LastRun {
  uint64_t frame = 0;   // as it was given, or as counted
  uint64_t serial = 0;  // 0: none yet; the first is 1
  RunReport report;
};

// A run that was started, until it was told how it ended.
struct RecordedRun {
  RunRef run;
  uint64_t frame = 0, serial = 0;
  uint32_t set = 0;
  uint8_t in_bank = 0, out_bank = 0;
  Conversions conversions;
  bool async = false;      // by RKNN_FLAG_ASYNC_MASK
  bool queued = false;     // a queue's to tell
  bool abandoned = false;  // nobody will be told of its end
  bool counted = false;    // has ended, and is in the sums
};

// Which of the started runs a program waits for.
enum class WhichRun : uint8_t { kThatFrame, kOldest, kNewest };

// Thread: under its context's lock.
class RunRecord {
 public:
  static constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();

  // Both outlive it.
  RunRecord(Target& target, CopyCounters& copies)
      : target_(target), copies_(copies) {}

  // So many were begun, which is the serial of the last one.
  [[nodiscard]] uint64_t begun() const { return begun_; }
  [[nodiscard]] const LastRun& last() const { return last_; }

  // A run that its caller waits for: its serial, and how it ended.
  uint64_t BeginWaited() { return ++begun_; }
  void EndWaited(uint64_t serial, const RunReport& report,
                 const Conversions& conversions);
  void FailWaited(uint64_t serial, const base::Error& error);

  // Room for one more, so that what was started is never lost.
  void Reserve() { started_.reserve(started_.size() + 1); }
  // One that was started, the next by its serial.
  void Add(RecordedRun started);

  // Takes note of the started runs that have ended.
  void CountEnded();
  // Of those that were not found ended yet.
  [[nodiscard]] size_t OnTheirWay() const;
  // The oldest of these, if its serial is at most `last`.
  [[nodiscard]] RunRef OldestOnItsWay(uint64_t last = kAll) const;
  // For each bank of inputs the last run that reads it; 0: none does.
  [[nodiscard]] std::array<uint64_t, 2> Readers() const;

  // The one that a program asks for and was not told of.
  [[nodiscard]] std::optional<RecordedRun> Find(WhichRun which,
                                                uint64_t frame) const;
  // The program was told of its end by waiting for it.
  void Waited(const RecordedRun& run);
  // A queue has told the program how that run ended.
  void Forget(uint64_t serial);
  // Nobody ever will.
  void Abandon(uint64_t serial);

  // Outputs of the runs so far are of another shape than those to come.
  void ForgetOutputs();
  // The run whose outputs rknn_outputs_get gives: without `run` where it has
  // ended. An error where the last one failed.
  base::Expected<RecordedRun> OutputsRun();
  // Whether that is still so, after a wait.
  [[nodiscard]] bool IsOutputsRun(uint64_t serial) const;
  // Whether that run's outputs are of the shape of today.
  [[nodiscard]] bool HasOutputs(uint64_t serial) const {
    return serial > shape_run_;
  }

 private:
  void Count(uint64_t serial, uint64_t frame, const RunReport& report,
             const Conversions& conversions);
  // The last two runs have outputs of their own.
  [[nodiscard]] bool HasPrevious() const;

  Target& target_;
  CopyCounters& copies_;
  uint64_t begun_ = 0;
  LastRun last_;
  // In the order of their start.
  std::vector<RecordedRun> started_;
  // The last one that was started, and the one before.
  std::optional<RecordedRun> newest_;
  std::optional<RecordedRun> previous_;
  // The last one that rknn_run waited for and that failed, and why.
  uint64_t failed_ = 0;
  base::Error failure_{};
  // The last one that the program has waited for itself.
  uint64_t waited_for_ = 0;
  // The last run before the shape was chosen.
  uint64_t shape_run_ = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CONTEXT_RUN_RECORD_H_
