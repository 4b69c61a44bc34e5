// Runs that wait for a lane: by priority, then one of each account in turn,
// then by arrival. A round has one run of each account that waits, so who sends
// many at once is in as many rounds. Bounded by whoever puts them in. Used by
// the engine under its lock.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_RUN_QUEUE_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_RUN_QUEUE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/transport/grpc/inference/inference_run.h"

namespace rknnd::transport {

class RunQueue {
 public:
  void Push(InferenceRunPtr run) {
    Account& account = accounts_[run->account];
    account.round = std::max(account.round, round_) + 1;
    ++account.runs;
    run->round_ = account.round;
    const Key key = KeyOf(*run);
    runs_.emplace(key, std::move(run));
  }
  [[nodiscard]] bool empty() const { return runs_.empty(); }
  [[nodiscard]] const InferenceRunPtr& front() const {
    return runs_.begin()->second;
  }
  InferenceRunPtr Pop() {
    InferenceRunPtr run = std::move(runs_.extract(runs_.begin()).mapped());
    round_ = std::max(round_, run->round_);
    Leave(*run);
    return run;
  }
  // False: it is not here.
  bool Remove(const InferenceRun& run) {
    if (runs_.erase(KeyOf(run)) == 0) return false;
    Leave(run);
    return true;
  }

  // Takes those whose deadline is not after `now`; `next` becomes the earliest
  // of the others', if that is earlier.
  std::vector<InferenceRunPtr> TakeLate(base::Nanoseconds now,
                                        base::Nanoseconds* next) {
    std::vector<InferenceRunPtr> late;
    for (auto run = runs_.begin(); run != runs_.end();) {
      if (run->second->deadline <= now) {
        Leave(*run->second);
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
    accounts_.clear();
    return all;
  }

 private:
  // Priority, round, arrival.
  using Key = std::array<uint64_t, 3>;
  struct Account {
    uint64_t round = 0;  // of its last run
    size_t runs = 0;     // that wait
  };

  // One that names no priority comes after all that do.
  static Key KeyOf(const InferenceRun& run) {
    return {
        run.priority == 0 ? std::numeric_limits<uint64_t>::max() : run.priority,
        run.round_, run.number_};
  }
  void Leave(const InferenceRun& run) {
    const auto account = accounts_.find(run.account);
    if (--account->second.runs == 0) accounts_.erase(account);
  }

  std::map<Key, InferenceRunPtr> runs_;
  std::map<std::string, Account> accounts_;
  uint64_t round_ = 0;  // that has begun; who comes is in the next
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_RUN_QUEUE_H_
