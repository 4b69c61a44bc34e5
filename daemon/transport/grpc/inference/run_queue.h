// Runs that wait for a lane: by priority, then by arrival. Bounded by whoever
// puts them in. Used by the engine under its lock.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_RUN_QUEUE_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_RUN_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/transport/grpc/inference/inference_run.h"

namespace rknnd::transport {

class RunQueue {
 public:
  void Push(InferenceRunPtr run) {
    const Key key = KeyOf(*run);
    runs_.emplace(key, std::move(run));
  }
  [[nodiscard]] bool empty() const { return runs_.empty(); }
  [[nodiscard]] const InferenceRunPtr& front() const {
    return runs_.begin()->second;
  }
  InferenceRunPtr Pop() {
    return std::move(runs_.extract(runs_.begin()).mapped());
  }
  // False: it is not here.
  bool Remove(const InferenceRun& run) { return runs_.erase(KeyOf(run)) != 0; }

  // Takes those whose deadline is not after `now`; `next` becomes the earliest
  // of the others', if that is earlier.
  std::vector<InferenceRunPtr> TakeLate(base::Nanoseconds now,
                                        base::Nanoseconds* next) {
    std::vector<InferenceRunPtr> late;
    for (auto run = runs_.begin(); run != runs_.end();) {
      if (run->second->deadline <= now) {
        late.push_back(std::move(run->second));
        run = runs_.erase(run);
        continue;
      }
      *next = std::min(*next, run->second->deadline);
      ++run;
    }
    return late;
  }
  std::vector<InferenceRunPtr> TakeAll() {
    std::vector<InferenceRunPtr> all;
    for (auto& [key, run] : runs_) all.push_back(std::move(run));
    runs_.clear();
    return all;
  }

 private:
  using Key = std::pair<uint64_t, uint64_t>;

  // One that names no priority comes after all that do.
  static Key KeyOf(const InferenceRun& run) {
    return {
        run.priority == 0 ? std::numeric_limits<uint64_t>::max() : run.priority,
        run.number_};
  }

  std::map<Key, InferenceRunPtr> runs_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_RUN_QUEUE_H_
