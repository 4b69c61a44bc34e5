// What jobs leave behind in their context. Called by workers when a job ends
// and by reports on the loop.

#include "daemon/core/contexts/run_context.h"

#include <algorithm>

#include "base/posix/hot_path.h"

namespace rknnd::core {

namespace {

size_t MostLayers(const driver::ModelInfo& model) {
  size_t layers = 0;
  for (const driver::ProgramInfo& row : model.programs) {
    layers = std::max(layers, row.layers.size());
  }
  return layers;
}

}  // namespace

RunContext::RunContext(const ContextTraits& traits,
                       std::shared_ptr<const LoadedModel> model,
                       std::shared_ptr<Arena> own_arena)
    : traits_(traits),
      model_(std::move(model)),
      own_arena_(std::move(own_arena)),
      running_times_(traits.collect_perf ? MostLayers(model_->info()) : 0),
      last_times_(running_times_.size()) {
  // Here, so that nothing is allocated when a job is queued.
  WaitingContexts maker;
  maker.insert(this);
  queue.place = maker.extract(maker.begin());
}

RKNND_HOT_PATH void RunContext::CountJob(const BindingSet& bindings,
                                         uint32_t core_mask) {
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
  last_row_ = bindings.row();
  last_cores_ = core_mask;
}

CopiedBytes RunContext::conversions() const {
  CopiedBytes copied;
  copied.to_device_conversion = converted_in_.load(std::memory_order_relaxed);
  copied.from_device_conversion =
      converted_out_.load(std::memory_order_relaxed);
  return copied;
}

RunContext::LayerTimes RunContext::LastTimes() const {
  base::MutexLock lock(mutex_);
  LayerTimes last;
  last.row = last_row_;
  last.core_mask = last_cores_;
  if (!has_times_) return last;
  last.nanoseconds = last_times_;
  last.nanoseconds.resize(model_->program(last_row_).layers.size());
  return last;
}

void RunContext::ArmDump(std::shared_ptr<LayerDump> dump) {
  std::shared_ptr<LayerDump> forgotten;
  {
    base::MutexLock lock(mutex_);
    armed_dump_.swap(dump);
    forgotten.swap(last_dump_);
  }
  dump_armed_.store(true, std::memory_order_release);
  // What they held goes here, outside the lock.
}

RKNND_HOT_PATH std::shared_ptr<LayerDump> RunContext::StartDump() {
  if (!dump_armed_.load(std::memory_order_acquire)) return nullptr;
  dump_armed_.store(false, std::memory_order_relaxed);
  base::MutexLock lock(mutex_);
  return std::exchange(armed_dump_, nullptr);
}

void RunContext::KeepDump(std::shared_ptr<LayerDump> dump) {
  base::MutexLock lock(mutex_);
  last_dump_.swap(dump);
}

std::shared_ptr<LayerDump> RunContext::last_dump() const {
  base::MutexLock lock(mutex_);
  return last_dump_;
}

}  // namespace rknnd::core
