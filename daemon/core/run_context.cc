// What jobs leave behind in their context. Called by workers when a job ends
// and by reports on the loop.

#include "daemon/core/run_context.h"

namespace rknnd::core {

RunContext::RunContext(const ContextTraits& traits,
                       std::shared_ptr<const LoadedModel> model,
                       std::shared_ptr<Arena> own_arena)
    : traits_(traits),
      model_(std::move(model)),
      own_arena_(std::move(own_arena)),
      running_times_(traits.collect_perf ? model_->program().layers.size() : 0),
      last_times_(running_times_.size()) {}

void RunContext::CountJob(const BindingSet& bindings) {
  jobs_.fetch_add(1, std::memory_order_relaxed);
  // Nothing to add on the zero-copy path.
  if (const uint64_t in = bindings.converted(driver::Direction::kInput)) {
    converted_in_.fetch_add(in, std::memory_order_relaxed);
  }
  if (const uint64_t out = bindings.converted(driver::Direction::kOutput)) {
    converted_out_.fetch_add(out, std::memory_order_relaxed);
  }
  if (running_times_.empty()) return;
  base::MutexLock lock(mutex_);
  running_times_.swap(last_times_);
  has_times_ = true;
}

CopiedBytes RunContext::conversions() const {
  CopiedBytes copied;
  copied.to_device_conversion = converted_in_.load(std::memory_order_relaxed);
  copied.from_device_conversion =
      converted_out_.load(std::memory_order_relaxed);
  return copied;
}

std::vector<int64_t> RunContext::LastTimes() const {
  base::MutexLock lock(mutex_);
  return has_times_ ? last_times_ : std::vector<int64_t>();
}

}  // namespace rknnd::core
