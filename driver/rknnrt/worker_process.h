// One worker process, seen from the daemon: started, given orders and jobs,
// lost.
//
//   kAlive --- it ended, was killed, or wrote what no worker does ---> kDead
//
// It is never started again: who needs a worker makes a new one. Nothing here
// waits for a worker without a limit, and nothing that a worker writes is used
// before it was copied and checked.

#ifndef DRIVER_RKNNRT_WORKER_PROCESS_H_
#define DRIVER_RKNNRT_WORKER_PROCESS_H_

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "driver/rknnrt/hosted_memory.h"
#include "driver/rknnrt/library_file.h"
#include "driver/rknnrt/protocol.h"
#include "driver/rknnrt/worker_watch.h"

namespace rknnd::rknnrt {

struct WorkerSetup {
  std::vector<std::string> command;  // the program, as a path, and arguments
  LibraryFile library;
  uint32_t cores = 1;
  // What loading a model may take, and what any other order may.
  base::Nanoseconds load_limit = 60 * base::kSecond;
  base::Nanoseconds order_limit = 10 * base::kSecond;
};

// Thread: any; one job a lane at a time.
class WorkerProcess : public std::enable_shared_from_this<WorkerProcess> {
 public:
  // `watch` and `clock` outlive it. Errors say why the library cannot be used.
  static absl::StatusOr<std::shared_ptr<WorkerProcess>> Start(
      const WorkerSetup& setup, WorkerWatch& watch, const base::Clock& clock);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool dead() const { return dead_.load(); }
  // Once dead: "signal 11 (Segmentation fault)". Empty before.
  [[nodiscard]] std::string WhyDead() const;
  // Jobs that it had when it ended.
  [[nodiscard]] uint32_t jobs_at_end() const { return jobs_at_end_.load(); }
  [[nodiscard]] bool has_jobs() const { return jobs_.load() != 0; }
  // `why`: what is said of it. It is dead when this returns.
  void Kill(const std::string& why);
  // The same, as an operator wants it: no model is to blame.
  void KillForReset();
  [[nodiscard]] bool killed_for_reset() const { return for_reset_.load(); }

  // UNAVAILABLE: it died of it. What Load gives is what the worker wrote.
  absl::StatusOr<std::vector<std::byte>> Load(uint32_t model, int file,
                                              uint64_t size,
                                              const std::string& name);
  // Neither this nor Forget waits for the worker.
  void Unload(uint32_t model);
  absl::Status CopyWeights(uint32_t model, const HostedMemory& memory,
                           uint64_t offset);
  // From now on jobs may name it.
  absl::Status Know(HostedMemory& memory);
  void Forget(uint32_t memory);

  struct Job {
    uint32_t lane = 0, model = 0, set = 0;
    const RunRecord* record = nullptr;  // null: the set stays as it is
    base::Nanoseconds limit = 0;        // what it may take
    // Once it holds true the NPU is being reset, under this job too.
    const std::atomic<bool>* reset = nullptr;
  };
  // ABORTED: the worker ended under it. DEADLINE_EXCEEDED: it did not end in
  // time, and the worker was killed. Else what the library said.
  absl::Status Run(const Job& job);

 private:
  WorkerProcess(WorkerWatch& watch, const base::Clock& clock,
                base::Mapping area, base::UniqueFd socket,
                const WorkerSetup& setup);

  absl::Status Open(const LibraryFile& library, int area);
  void OnEnded(int wait_status);
  void Die(const std::string& why);
  // UNAVAILABLE with the reason, as it is known within a moment.
  absl::Status WhyLost();
  absl::Status Send(const OrderMessage& order, int fd);
  absl::StatusOr<std::vector<std::byte>> Ask(OrderMessage order, int fd)
      RKNND_EXCLUDES(orders_mutex_);
  absl::StatusOr<AnswerMessage> Receive(const OrderMessage& order);
  absl::Status Wait(Lane& lane, const Job& job, uint32_t sequence);
  absl::Status TakeAnswer(Lane& lane);
  SharedArea& area() { return *reinterpret_cast<SharedArea*>(area_.data()); }

  WorkerWatch& watch_;
  const base::Clock& clock_;
  const base::Mapping area_;
  const base::UniqueFd socket_;
  const uint32_t cores_;
  const base::Nanoseconds load_limit_, order_limit_;
  // Set once, by Start.
  base::UniqueFd pid_fd_;
  pid_t pid_ = 0;
  WorkerWatch::Number number_ = 0;

  std::atomic<bool> dead_{false}, for_reset_{false};
  std::atomic<uint32_t> jobs_{0}, jobs_at_end_{0};
  mutable base::Mutex why_mutex_;
  base::CondVar died_;
  std::string why_ RKNND_GUARDED_BY(why_mutex_);  // empty: it lives

  base::Mutex orders_mutex_;  // held until an order is answered
  uint32_t serial_ RKNND_GUARDED_BY(orders_mutex_) = 0;
  base::Mutex known_mutex_;  // a leaf
  std::set<uint32_t> known_ RKNND_GUARDED_BY(known_mutex_);

  // Of the job that has the lane.
  std::array<uint32_t, kMostLanes> submitted_{};
};

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_WORKER_PROCESS_H_
