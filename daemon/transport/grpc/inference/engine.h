// Runs inferences of any number of remote clients on one core session. Knows
// models by their hash, and no gRPC: who asks, by which message, and what
// becomes of the answer is its callers' (InferenceRun).
//
//   caller's thread   Submit: takes a free lane, has the inputs copied into it,
//                     hands the job to daemon/core; or queues the run
//   worker            the job's end, left in Completions
//   engine's thread   outputs copied out, deadlines, runs that have waited
//   loop              contexts, buffers, bindings (lanes.h)
//
// Everything has a bound: runs that wait by EngineOptions, those in flight by
// core::kJobSlots, memory by the session's limits; what a model had here goes
// when nobody has asked for it for a while.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_ENGINE_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_ENGINE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "daemon/core/service.h"
#include "daemon/transport/grpc/inference/completions.h"
#include "daemon/transport/grpc/inference/inference_run.h"
#include "daemon/transport/grpc/inference/lanes.h"
#include "daemon/transport/grpc/inference/model_view.h"
#include "daemon/transport/grpc/inference/run_queue.h"

namespace rknnd::transport {

struct EngineOptions {
  base::EventLoop* loop = nullptr;
  const base::Clock* clock = nullptr;
  core::Service* service = nullptr;
  core::WorkerWaker* waker = nullptr;
  // Whether a client's memory can be named still (Regions::Has): a request may
  // have waited since it named it.
  std::function<bool(uint64_t region)> has_region;
  uint32_t waiting = 1024;  // runs, of all models together
  // What is made for a model stays so long without a run.
  base::Nanoseconds idle = 30 * base::kSecond;
};

// Thread: any, but where noted.
class Engine final : public std::enable_shared_from_this<Engine> {
 public:
  using ViewCallback = LaneMaker::ViewCallback;

  // Thread: loop.
  static absl::StatusOr<std::shared_ptr<Engine>> Create(
      const EngineOptions& options);
  // After Stop, when no caller is left.
  ~Engine();

  // What a model is; `done` at once where that is known, else on the engine's
  // thread. NOT_FOUND: it is not loaded.
  void Open(const core::ModelId& id, const ViewCallback& done);
  // The run's Finish is called, before or after the return.
  void Submit(const std::shared_ptr<const ModelView>& model,
              InferenceRunPtr run);
  // As far as it has not begun.
  void Cancel(const InferenceRunPtr& run);
  // Runs `task` on the engine's thread; false: it is stopped.
  bool Post(std::function<void()> task);
  // What is made for a model goes as soon as no run of it is left.
  void Forget(const core::ModelId& id);
  // A client's memory can be named no more.
  void OnRegionGone(uint64_t region);

  // Thread: loop.
  void SetDraining(bool draining);
  // Every run is finished, if not with its answer, when it returns; nothing is
  // posted to the loop afterwards.
  void Stop();

 private:
  struct Row {
    RunQueue waiting;
    std::vector<std::unique_ptr<Lane>> lanes;
    bool growing = false;
    bool full = false;  // no further lane can be had
  };
  struct Model {
    std::shared_ptr<const ModelView> view;  // null: it is being looked at
    std::vector<ViewCallback> openers;
    std::vector<Row> rows;
    base::Nanoseconds used = 0;  // last
    bool forgotten = false;
  };
  // A run that has a lane, which is the caller's until the job is submitted.
  struct Start {
    std::shared_ptr<const ModelView> model;
    Lane* lane = nullptr;
    bool rebind = false;
  };
  // A lane to be made.
  struct Growth {
    std::shared_ptr<const ModelView> model;
    uint32_t row = 0, number = 0;
    bool again = false;  // room was made for it
  };
  // Of a job in flight; a cancel has no lane.
  struct Slot {
    bool taken = false;
    Lane* lane = nullptr;
    std::shared_ptr<const ModelView> model;
  };

  explicit Engine(const EngineOptions& options) : options_(options) {}

  void RunThread();
  void FinishJob(core::JobCompletion completion);
  void ExpireLate();

  bool PostToLoop(std::function<void()> task);
  // Thread: loop, as of the next ones. `again`: room was made for it.
  void LookAt(const core::ModelId& id, bool again = false);
  void Grow(const Growth& growth);
  void Rebind(const Start& start);
  // Lets go of what was made for models that nobody has asked for lately, or,
  // with `all`, does not ask for just then; true: there were some.
  bool Sweep(bool all = false);
  void SweepLater();

  // Gives what waits to lanes that are free, as far as it can.
  void Dispatch(const std::shared_ptr<const ModelView>& model, uint32_t row);
  std::optional<Start> TakeStart(const std::shared_ptr<const ModelView>& model,
                                 uint32_t row) RKNND_REQUIRES(mutex_);
  // Nothing: all are taken.
  std::optional<uint32_t> FreeSlot() const RKNND_REQUIRES(mutex_);
  void FillAndSubmit(const Start& start);
  void SubmitJob(const Start& start);
  // Ends the lane's run, if it still has one, and frees the lane.
  void EndRun(const Start& start, const absl::Status& status);
  void FreeLane(const Start& start);
  // One that never got a lane.
  void Refuse(const InferenceRunPtr& run, const absl::Status& status) const;

  const EngineOptions options_;
  const std::shared_ptr<Completions> completions_ =
      std::make_shared<Completions>();
  std::shared_ptr<core::Session> session_;
  std::shared_ptr<core::JobGate> gate_;
  uint32_t device_cores_ = 1;
  std::optional<LaneMaker> lanes_;            // Thread: loop.
  base::EventLoop::TimerId sweep_timer_ = 0;  // Thread: loop; 0: none
  std::thread thread_;

  // JobGate::Submit is for one at a time.
  base::Mutex submit_mutex_;
  // Held while a task is posted to the loop.
  base::Mutex loop_mutex_;
  bool closed_ RKNND_GUARDED_BY(loop_mutex_) = false;

  base::Mutex mutex_;
  std::map<core::ModelId, Model> models_ RKNND_GUARDED_BY(mutex_);
  std::array<Slot, core::kJobSlots> slots_ RKNND_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> tasks_ RKNND_GUARDED_BY(mutex_);
  uint64_t arrivals_ RKNND_GUARDED_BY(mutex_) = 0;
  uint32_t waiting_ RKNND_GUARDED_BY(mutex_) = 0;
  base::Nanoseconds next_deadline_ RKNND_GUARDED_BY(mutex_) =
      InferenceRun::kNoDeadline;
  std::vector<Growth> grow_ RKNND_GUARDED_BY(mutex_);  // to be posted
  bool draining_ RKNND_GUARDED_BY(mutex_) = false;
  bool stopping_ RKNND_GUARDED_BY(mutex_) = false;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_ENGINE_H_
