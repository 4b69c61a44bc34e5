// The client processes of the measurements. Each is this program again, with
// options that say what to do: it opens its contexts, says "ready", waits for a
// line, works for a while and tells one line of JSON.

#ifndef BENCH_SCHEDULER_CLIENTS_H_
#define BENCH_SCHEDULER_CLIENTS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/posix/child_process.h"

namespace rknnd::bench {

struct ClientPlan {
  // "load": runs one frame after the other in each context.
  // "newest", "fifo": submits frames at `period_ms`, whatever becomes of them.
  // "beat": runs a frame each `period_ms`.
  // "flood": "load" that rings the doorbell without an entry all the while.
  // "idle": runs one frame before it is ready, and then does nothing.
  std::string work = "load";
  std::string model;  // a file
  int contexts = 1;
  int priority = 1;  // the flag: 0 is HIGH
  int core_mask = 0;
  double period_ms = 0;
  double seconds = 1;
  double warm_up = 0;  // of them, that are not counted
};

// What the process does; its exit code.
int RunClient(const ClientPlan& plan);

// Several of them. Thread: one. Throws std::runtime_error.
class Clients {
 public:
  explicit Clients(std::string target) : target_(std::move(target)) {}

  // Starts one; it is ready when this returns.
  void Add(const ClientPlan& plan);
  void Go();
  // What each says, in their order; they have ended.
  std::vector<nlohmann::json> Finish();
  [[nodiscard]] const std::vector<base::ChildProcess>& all() const {
    return processes_;
  }

 private:
  const std::string target_;
  std::vector<base::ChildProcess> processes_;
};

}  // namespace rknnd::bench

#endif  // BENCH_SCHEDULER_CLIENTS_H_
