// The part of a context that jobs need: it outlives the context's number while
// one of them runs.

#ifndef DAEMON_CORE_CONTEXTS_RUN_CONTEXT_H_
#define DAEMON_CORE_CONTEXTS_RUN_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/posix/mutex.h"
#include "daemon/core/accounts/share.h"
#include "daemon/core/accounts/use_counters.h"
#include "daemon/core/contexts/binding_set.h"
#include "daemon/core/contexts/layer_dump.h"
#include "daemon/core/memory/arenas.h"
#include "daemon/core/models/loaded_model.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

class RunContext;
struct Job;

// A context's place in the run queue. Guarded by the scheduler's lock.
struct ContextQueue {
  Job* first = nullptr;  // queued jobs, oldest first
  Job* last = nullptr;
  uint32_t jobs = 0;  // queued and running
  bool running = false;
  // Of MemoryTurns: waits for memory, has it kept, runs in it.
  bool parked = false, has_turn = false, runs_alone = false;
  bool held = false;                 // of CoreBudget
  bool ready = false;                // stands in a line (waiting_lines.h)
  WaitingContexts::node_type place;  // while it does not
  // Neighbours in the list of those that are parked, or held.
  RunContext* previous = nullptr;
  RunContext* next = nullptr;
};

// Its jobs in flight, by age. Guarded by its session's gate.
struct ContextJobs {
  Job* first = nullptr;
  Job* last = nullptr;
  uint32_t count = 0;
};

struct ContextTraits {
  uint32_t number = 0;
  SessionId session = 0;
  int32_t pid = 0;          // of the session's program
  uint32_t user = 0;        // whose program that is
  uint32_t model_name = 0;  // the recorder's number of the model's name
  Priority priority = Priority::kMedium;  // under its share's ceiling
  Priority asked_priority = Priority::kMedium;
  std::shared_ptr<Share> share;  // null: one that all without share
  bool collect_perf = false;
  bool info_only = false;  // answers queries, never runs
  bool sram = false;       // takes what it can use of the SRAM
  // Internal memory is the program's, room for weights may be.
  bool internal_outside = false, weights_outside = false;
  bool share_sram = false;  // takes turns in it with others
  // RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE, _OUTPUT_MEM_CACHE.
  bool keep_input_caches = false, keep_output_caches = false;
};

// Thread: any, but where noted.
class RunContext {
 public:
  // `own_arena`: internal memory of this context alone (vendor sharing).
  RunContext(const ContextTraits& traits,
             std::shared_ptr<const LoadedModel> model,
             std::shared_ptr<Arena> own_arena);
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  [[nodiscard]] const ContextTraits& traits() const { return traits_; }
  [[nodiscard]] const std::shared_ptr<const LoadedModel>& model() const {
    return model_;
  }
  [[nodiscard]] const std::shared_ptr<Arena>& own_arena() const {
    return own_arena_;
  }

  // Where the running job's layer times go; empty when not asked for. One job
  // of a context runs at a time. Thread: worker.
  [[nodiscard]] std::span<int64_t> running_times(uint32_t row) {
    if (running_times_.empty()) return {};
    return std::span(running_times_).first(model_->program(row).layers.size());
  }
  // A job was run on `bindings` and these cores: its times become the last
  // ones. Thread: worker.
  void CountJob(const BindingSet& bindings, uint32_t core_mask);

  // Bytes of an answer that were copied to where it was bound. Thread: worker.
  void CountCopied(uint64_t bytes) {
    converted_out_.fetch_add(bytes, std::memory_order_relaxed);
  }
  // Another session's run answered a job. Thread: worker.
  void CountShared() { jobs_.fetch_add(1, std::memory_order_relaxed); }
  // Jobs that ran without an error, or were answered with another's run.
  [[nodiscard]] uint64_t jobs() const {
    return jobs_.load(std::memory_order_relaxed);
  }
  // What the device converted in these; the client's own copies are 0 here.
  [[nodiscard]] CopiedBytes conversions() const;
  // Of the last run.
  struct LayerTimes {
    std::vector<int64_t> nanoseconds;  // per layer; empty before the first
    uint32_t row = 0;                  // of the shapes they belong to
    uint32_t core_mask = 1;            // the cores it ran on
  };
  [[nodiscard]] LayerTimes LastTimes() const;

  // The next job that starts is dumped into `dump`. Thread: loop.
  void ArmDump(std::shared_ptr<LayerDump> dump);
  // The next job is to run by itself. Thread: any.
  [[nodiscard]] bool dump_armed() const {
    return dump_armed_.load(std::memory_order_acquire);
  }
  // For the job that starts; null when none is armed. Costs a load then.
  // Thread: worker.
  [[nodiscard]] std::shared_ptr<LayerDump> StartDump();
  // The job is over. Thread: worker.
  void KeepDump(std::shared_ptr<LayerDump> dump);
  // What the last dumped run left; null when there is none. Thread: loop.
  [[nodiscard]] std::shared_ptr<LayerDump> last_dump() const;

  // A frame was dropped. Thread: any.
  void CountDrop() { new_drops_.fetch_add(1, std::memory_order_relaxed); }
  // Those since the last TakeDrops. Thread: any.
  [[nodiscard]] uint32_t new_drops() const {
    return new_drops_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] uint32_t TakeDrops() {
    if (new_drops() == 0) return 0;
    return new_drops_.exchange(0, std::memory_order_relaxed);
  }

  ContextQueue queue;
  ContextJobs jobs_in_flight;
  // What its jobs cost. (jobs() are those that ran well, too.)
  UseCounters use;

 private:
  const ContextTraits traits_;
  const std::shared_ptr<const LoadedModel> model_;
  const std::shared_ptr<Arena> own_arena_;
  std::atomic<uint64_t> jobs_{0};
  std::atomic<uint32_t> new_drops_{0};
  std::atomic<uint64_t> converted_in_{0}, converted_out_{0};
  std::vector<int64_t> running_times_;

  mutable base::Mutex mutex_;
  std::vector<int64_t> last_times_ RKNND_GUARDED_BY(mutex_);
  bool has_times_ RKNND_GUARDED_BY(mutex_) = false;
  uint32_t last_row_ RKNND_GUARDED_BY(mutex_) = 0;
  uint32_t last_cores_ RKNND_GUARDED_BY(mutex_) = 1;

  std::atomic<bool> dump_armed_{false};
  std::shared_ptr<LayerDump> armed_dump_ RKNND_GUARDED_BY(mutex_);
  std::shared_ptr<LayerDump> last_dump_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_CONTEXTS_RUN_CONTEXT_H_
