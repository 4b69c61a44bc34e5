// The daemon without its sockets: who uses the NPU, and when. Its only users
// are the transports (daemon/transport), which translate and check messages,
// and tests, which drive it with a fake clock and hand-run executors.
//
//   loop thread   Service, Session: sessions, models, contexts, buffers
//   workers       JobGate::Submit, Runner::RunReady: the hot path
//   loader        Device::Load, hashing, the cache folder; posts back to loop
//   quick loader  Device::Load of what the cache folder has compiled; likewise
//   pager         populating, filling and copying large memory; likewise
//
// Everything a session owns goes when it is closed; what its running job still
// uses goes when that job ends.

#ifndef DAEMON_CORE_SERVICE_H_
#define DAEMON_CORE_SERVICE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "daemon/core/memory/buffer_key.h"
#include "daemon/core/reports/traces.h"
#include "daemon/core/running/runner.h"
#include "daemon/core/scheduling/foreign_watch.h"
#include "daemon/core/sessions/drain.h"
#include "daemon/core/sessions/session.h"
#include "daemon/core/terms/options.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"
#include "driver/fault.h"
#include "driver/memory/heap.h"
#include "driver/memory/physical.h"

namespace rknnd::core {

class ModelKeeper;

struct ServiceOptions : LiveOptions {
  driver::Device* device = nullptr;                  // outlives the service
  const driver::Heaps* heaps = nullptr;              // likewise, and all below
  const driver::PhysicalMemory* physical = nullptr;  // null: none is allowed
  const base::Clock* clock = nullptr;
  base::Executor* loop = nullptr;
  base::Executor* loader = nullptr;
  base::Executor* quick_loader = nullptr;  // another thread
  base::Executor* pager = nullptr;
  TimerQueue* timers = nullptr;
  WorkerWaker* waker = nullptr;
  // Model bytes by hash, so that clients survive a restart. Empty: none kept.
  std::string cache_dir;
  // Model bytes over this process's end. Null: none are kept.
  ModelKeeper* keeper = nullptr;
  // Measure as if every rknn_init stood alone (RKNND_SHARING=vendor): models
  // are loaded once per rknn_init, each context has internal memory of its own.
  bool vendor_sharing = false;
  // What a job has used of the cores' internal memory is cleared before one of
  // another session begins there, or while the core idles (isolation.h).
  bool isolate = true;
  // Where faults are asked for. Null: not enabled at start.
  driver::FaultControl* faults = nullptr;
  // CPU and device see each other's writes only after a synchronisation that
  // the device must be told of.
  bool incoherent = false;
  LogSink* log = nullptr;                      // the daemon's own; null: none
  FenceWatcher* fences = nullptr;              // null: jobs cannot have any
  ForeignUserFinder* foreign_users = nullptr;  // null: nobody looks
  // Gives the kernel what this process has freed; on the loader. Null: it is
  // kept for later.
  std::function<void()> give_back_memory;
  // Where the timeline of a job that hangs is written. Empty: nowhere.
  std::string trace_dir;
};

// Thread: loop, but where noted.
class Service {
 public:
  static absl::StatusOr<std::unique_ptr<Service>> Create(
      const ServiceOptions& options);
  // All sessions closed and all workers stopped before.
  ~Service();

  // Refused when there are as many as there may be.
  absl::StatusOr<std::shared_ptr<Session>> OpenSession(
      SessionPeer peer, std::shared_ptr<CompletionSink> completions,
      std::shared_ptr<LogSink> log);
  // Takes away all the session owns. Its queued jobs vanish; a running one
  // ends into memory that is freed after it.
  void CloseSession(SessionId session);

  // From now on. Whoever holds more than it may keeps that and gets no more;
  // priorities and cores are those of contexts that are made, weights those of
  // all jobs. An error, of cores that no device has: nothing has changed.
  absl::Status Reconfigure(const LiveOptions& options);
  // What each session may hold.
  [[nodiscard]] const SessionLimits& limits() const;

  // No new models, contexts or jobs from now on; `done` when nothing runs, or
  // when it was undone. Sessions may be opened: to look is always possible.
  void BeginDrain(Drain::Reason reason, std::function<void(absl::Status)> done);
  // FAILED_PRECONDITION when it does not drain, or is being stopped.
  absl::Status UndoDrain();
  // Hears when a drain begins and when it is undone. Null: nobody.
  void set_draining(std::function<void(bool draining)> draining);

  // No job is begun on `cores` from now on, as long as `session` is there;
  // `done` when those that run there have ended.
  void Lease(SessionId session, uint32_t cores, const std::string& command,
             std::function<void(absl::Status)> done);
  // Looks who else uses the NPU, for Status(), unless that was done a moment
  // ago; `done` at once then.
  void FindForeignUsers(std::function<void()> done);
  // The jobs of late, as a trace in JSON in a sealed memfd; those that ended
  // before `since` are left out.
  using Trace = Traces::Trace;
  void TakeTrace(base::Nanoseconds since,
                 std::function<void(absl::StatusOr<Trace>)> done);

  // The buffer that has this key; NOT_FOUND for all others. Thread: any.
  [[nodiscard]] absl::StatusOr<KeyedBuffer> FindBuffer(
      const BufferKey& key) const;
  // Hears of every key whose buffer its owner gives up. Null: nobody.
  void set_key_gone(std::function<void(const BufferKey&)> gone);

  // Thread: worker.
  Runner& runner();

  [[nodiscard]] bool keeps_models() const;
  // Why the cache folder cannot be used, or OK. The service runs without it.
  [[nodiscard]] absl::Status cache_status() const;
  // FAILED_PRECONDITION, and how to enable them, when there are none.
  [[nodiscard]] absl::StatusOr<driver::FaultControl*> faults() const;
  // Sets or clears a fault without holding up the loop: some of them copy all
  // the memory there is.
  void SetFault(const driver::Fault& fault,
                std::function<void(absl::StatusOr<driver::FaultReport>)> done);
  void ClearFault(uint64_t id, std::function<void(absl::Status)> done);
  // Resets the device under all jobs in flight, which their clients run again;
  // `done` when none of those is left. UNIMPLEMENTED: it cannot, and why.
  void ResetDevice(std::function<void(absl::Status)> done);
  // Models that are not run any more, as they ended the processes that ran
  // them.
  [[nodiscard]] std::vector<driver::QuarantinedModel> QuarantinedModels() const;
  // Lets one try again, by the first digits of its hash. NOT_FOUND.
  absl::Status ReleaseModel(const std::string& sha256);
  // Whether clients are to tell of rknn_mem_sync: memory may be incoherent.
  [[nodiscard]] bool wants_syncs() const;
  [[nodiscard]] const driver::DeviceInfo& device_info() const;
  [[nodiscard]] StatusReport Status() const;
  [[nodiscard]] JobTotalsReport JobTotals() const;
  [[nodiscard]] std::vector<SessionReport> Sessions() const;
  [[nodiscard]] std::vector<ModelReport> Models() const;
  // What SlowLayersFound says of loaded models, a line each.
  [[nodiscard]] std::vector<std::string> SlowModels() const;
  [[nodiscard]] std::vector<ContextReport> Contexts() const;
  [[nodiscard]] std::vector<BufferReport> Buffers() const;
  [[nodiscard]] MemoryReport Memory() const;
  [[nodiscard]] SramReport Sram() const;

 private:
  class Impl;
  explicit Service(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SERVICE_H_
