// The assembled daemon: device, heaps, core, loaders, pager, workers, server,
// on one event loop. rknnd's main runs it on its main thread; client/local runs
// it on a thread inside a host program, without signals or names in the file
// system.

#ifndef DAEMON_RUNTIME_H_
#define DAEMON_RUNTIME_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/task_thread.h"
#include "daemon/board/board.h"
#include "daemon/board/foreign_users.h"
#include "daemon/board/log_tail.h"
#include "daemon/core/models/model_keeper.h"
#include "daemon/core/service.h"
#include "daemon/core/terms/events.h"
#include "daemon/core/terms/types.h"
#include "daemon/progress_watch.h"
#include "daemon/task_meter.h"
#include "daemon/transport/session/event_log.h"
#include "daemon/transport/session/ring/fences.h"
#include "daemon/transport/session/ring/workers.h"
#include "daemon/transport/session/server.h"
#include "driver/device.h"
#include "driver/fault.h"
#include "driver/faults/faulty_device.h"
#include "driver/memory/heap.h"
#include "driver/memory/physical.h"

namespace rknnd {

// Faults on demand around the device.
struct RuntimeFaults {
  base::Nanoseconds give_up = driver::kDriverGiveUp;
  std::vector<driver::Fault> preset;
};

// What operators ask about the machine itself.
struct RuntimeBoard {
  std::string root;               // "" or where a test keeps its /sys
  std::string record;             // of pinned clocks, over a crash; empty: none
  std::string version;            // of the daemon
  board::LogTail* log = nullptr;  // outlives the runtime
};

// Beside what the service's limits are, which a reload may change.
struct RuntimeOptions : core::LiveOptions {
  std::string device = "auto";
  driver::HostedLibraryOptions library;
  std::string soc = "rk3588";
  bool pace = false;        // jobs end when the SoC would end them
  bool incoherent = false;  // CPU and NPU see each other only after a sync
  driver::HeapConfig heaps;
  bool isolate = true;
  std::string trace_dir;  // for timelines of jobs that hang; empty: none
  transport::ServerLimits server_limits;
  std::vector<driver::PhysicalWindow> physical_memory;  // that users may reach
  std::string cache_dir;                                // empty: none
  core::ModelKeeper* keeper = nullptr;  // null: none; outlives the runtime
  bool vendor_sharing = false;
  std::optional<RuntimeFaults> faults;  // not given: cannot be asked for
  std::optional<RuntimeBoard> board;    // not given: nobody answers for it
  transport::EventLog* log = nullptr;   // outlives the runtime
  // As in core::ServiceOptions. Not of a program that the runtime is a guest
  // of.
  std::function<void()> give_back_memory;
};

// Created, run and destroyed on one thread, which is the loop's.
// Thread: loop.
class Runtime {
 public:
  static absl::StatusOr<std::unique_ptr<Runtime>> Create(
      const RuntimeOptions& options);
  // After Run has returned, or without it.
  ~Runtime();

  // Serves until stopped.
  void Run();
  // Lets running jobs end, answers no new ones, then makes Run return.
  void Stop();
  // Makes Run return; what sessions own goes, running jobs end first.
  void StopNow();
  // After Run: does what was posted meanwhile and returns.
  void RunPosted();

  [[nodiscard]] base::EventLoop& loop() { return *loop_; }
  [[nodiscard]] transport::SessionServer& server() { return *server_; }
  [[nodiscard]] transport::Workers& workers() { return *workers_; }
  [[nodiscard]] core::Service& service() { return *service_; }
  [[nodiscard]] const core::Service& service() const { return *service_; }
  [[nodiscard]] transport::FailureLog& failures() { return *failures_; }
  [[nodiscard]] const base::Clock& clock() const { return clock_; }
  [[nodiscard]] transport::Board* board() { return board_.get(); }  // or null
  [[nodiscard]] const driver::Heaps& heaps() const { return *heaps_; }

  // Tells `watch`, which is asked on the loop while it runs, about all that
  // works here.
  void AddProgress(ProgressWatch& watch);

 private:
  // Core's timers on the loop.
  class Timers final : public core::TimerQueue {
   public:
    explicit Timers(base::EventLoop* loop) : loop_(loop) {}
    uint64_t RunAfter(base::Nanoseconds delay,
                      std::function<void()> task) override {
      return loop_->RunAfter(delay, std::move(task));
    }
    void Cancel(uint64_t timer) override { loop_->CancelTimer(timer); }

   private:
    base::EventLoop* const loop_;
  };

  // What concerns a session and is of note to operators, as lines of the log.
  class Notes final : public core::LogSink {
   public:
    explicit Notes(transport::FailureLog* log) : log_(log) {}
    void Log(uint32_t /*level*/, const std::string& text) override {
      log_->Note(text);
    }
    void LogEvent(uint32_t /*level*/, const std::string& text,
                  const core::EventFields& fields) override {
      log_->Note(text, fields);
    }

   private:
    transport::FailureLog* const log_;
  };

  Runtime() = default;
  absl::Status Assemble(const RuntimeOptions& options);
  void MakeBoard(const RuntimeBoard& about);
  absl::Status EnableFaults(const RuntimeFaults& faults,
                            transport::EventLog* log);

  base::MonotonicClock clock_;
  std::unique_ptr<base::EventLoop> loop_;
  std::optional<Timers> timers_;
  std::unique_ptr<driver::Device> device_;
  std::unique_ptr<driver::FaultyDevice> faulty_;  // around it; or null
  ForeignUsers foreign_users_;                    // used by the pager
  std::optional<driver::Heaps> heaps_;
  std::optional<driver::PhysicalMemory> physical_;
  // Frames come before what loads models and frees memory, which takes
  // milliseconds at a time, where all CPUs are busy.
  static constexpr int kBelowFrames = 5;
  base::TaskThread loader_{"rknnd-loader", kBelowFrames},
      quick_loader_{"rknnd-quick"}, pager_{"rknnd-pager", kBelowFrames};
  // Through which all tasks of theirs go.
  TaskMeter loading_{&loader_}, quick_loading_{&quick_loader_},
      paging_{&pager_};
  std::unique_ptr<transport::Workers> workers_;
  std::optional<transport::Fences> fences_;  // in the workers' set
  std::unique_ptr<core::Service> service_;
  std::optional<transport::FailureLog> failures_;
  std::optional<Notes> notes_;
  std::unique_ptr<board::BoardImpl> board_;  // or null
  std::unique_ptr<transport::SessionServer> server_;
  bool stopping_ = false;
};

}  // namespace rknnd

#endif  // DAEMON_RUNTIME_H_
