// A device on which things go wrong when told to: wraps another one and makes
// the faults of its plan happen to the jobs, models and memory on their way
// through. Put around the software NPU by the daemon when faults are enabled
// at start, and around fakes by tests.
//
// Behaves as the vendor's driver does (see kDriverGiveUp): a job that hangs
// holds its core; when the driver gives up it resets the whole NPU, so that the
// jobs in flight on all cores fail, once.

#ifndef DRIVER_FAULTS_FAULTY_DEVICE_H_
#define DRIVER_FAULTS_FAULTY_DEVICE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "driver/device.h"
#include "driver/fault.h"
#include "driver/faults/fault_plan.h"
#include "driver/faults/incoherent_memory.h"

namespace rknnd::driver {

// How long the vendor's library lets its driver wait for a job.
inline constexpr base::Nanoseconds kDriverGiveUp = 6 * base::kSecond;

struct FaultyDeviceOptions {
  Device* device = nullptr;  // outlives it, as does the clock
  const base::Clock* clock = nullptr;
  base::Nanoseconds give_up = kDriverGiveUp;  // 0: never
  // CPU and device have separate views of memory from the start, as if by the
  // fault kIncoherent, which is then no fault: nobody can clear it.
  bool incoherent = false;
};

// Waiting jobs cost a place in a table and no thread: one thread ends all of
// them in time, and runs those that hung, one after the other. A test leaves
// that out and calls RunDue.
// Thread: any. The lock is held for no call to a device or a listener.
class FaultyDevice final : public Device {
 public:
  explicit FaultyDevice(const FaultyDeviceOptions& options);
  ~FaultyDevice() override;

  // Told of each change, for a log. Before anything else.
  void set_changed(FaultPlan::Changed changed) { told_ = std::move(changed); }
  [[nodiscard]] FaultPlan& faults() { return plan_; }

  // Ends waiting jobs by itself from now on. RESOURCE_EXHAUSTED without a
  // thread.
  absl::Status Start();
  // Ends those whose time has come.
  void RunDue();
  // Lets all waiting jobs go: late ones end as they are, hanging ones fail with
  // UNAVAILABLE. Nothing goes wrong any more.
  void Stop();

  [[nodiscard]] const DeviceInfo& info() const override {
    return device_->info();
  }
  absl::StatusOr<std::unique_ptr<Model>> Load(
      const LoadRequest& request) override;
  absl::StatusOr<std::unique_ptr<Memory>> Attach(const MemoryRef& memory,
                                                 MemoryAccess access) override;
  void Submit(const JobRequest& job) override;
  void EnterWorker() override { device_->EnterWorker(); }
  bool SetClock(double fraction) override {
    return device_->SetClock(fraction);
  }
  // As the driver's own, asked for by an operator.
  void Reset(std::function<void(absl::Status)> done) override;
  [[nodiscard]] uint64_t resets() const override;
  [[nodiscard]] CacheSyncs cache_syncs() const override {
    return device_->cache_syncs();
  }
  [[nodiscard]] uint64_t worker_deaths() const override {
    return device_->worker_deaths();
  }
  [[nodiscard]] std::vector<QuarantinedModel> quarantined() const override {
    return device_->quarantined();
  }
  absl::Status EndQuarantine(const std::string& sha256) override {
    return device_->EndQuarantine(sha256);
  }

 private:
  // The one job a core may have.
  //
  //          Submit                 OnJobDone
  //   kFree --------> kRunning -----------------> kFree
  //     |               ^    \__late____> kLate ----^  its time, reset, Stop
  //     |               |                           |
  //     +--> kHanging --+ let go                    |
  //             \__gave up, crash, Stop_____________+
  struct Slot final : JobListener {
    enum class State { kFree, kRunning, kHanging, kLate };

    void OnJobDone(JobResult done) override {
      device->Done(this, std::move(done));
    }

    FaultyDevice* device = nullptr;
    State state = State::kFree;
    JobRequest job;  // as passed on; its listener is this
    JobListener* listener = nullptr;
    JobFaults faults;
    base::Nanoseconds submitted = 0;
    base::Nanoseconds due = 0;  // kHanging, kLate; 0: no end of its own
    JobResult result;           // kLate
    absl::Status doom;          // kRunning: what becomes of it instead
    std::vector<TensorBinding> inputs, outputs;
    std::vector<Memory*> gang_internal;
    std::vector<std::shared_ptr<ShadowMemory>> shadows;
    // Of inputs that are frames, by input: these planes instead of the job's.
    struct FrameInput {
      Frame frame;
      std::array<std::shared_ptr<ShadowMemory>, kMaxPlanes> shadows;
    };
    std::vector<FrameInput> frames;
  };

  // An answer that is given once the lock is released.
  struct Ended {
    JobListener* listener;
    JobResult result;
  };

  // What is said of a job that never starts; nothing if it does.
  std::optional<absl::Status> Refuse(const JobFaults& faults,
                                     std::vector<Ended>* ended)
      RKNND_REQUIRES(mutex_);
  // Why the device is not there now, or OK.
  absl::Status CheckAlive() RKNND_REQUIRES(mutex_);
  void Run(Slot& slot);
  void Done(Slot* slot, JobResult result);
  // Fails whatever is in flight.
  void FailAll(absl::StatusCode code, const std::string& reason,
               std::vector<Ended>* ended) RKNND_REQUIRES(mutex_);
  // Takes a waiting job out of its slot.
  void End(Slot& slot, absl::Status status, std::vector<Ended>* ended)
      RKNND_REQUIRES(mutex_);
  // Jobs that hang for too long: the driver resets all.
  void GiveUp(std::vector<Ended>* ended) RKNND_REQUIRES(mutex_);
  static void Deliver(std::vector<Ended>& ended);
  // Those of resetting_, if no job is left that they wait for.
  std::vector<std::function<void(absl::Status)>> TakeReset()
      RKNND_REQUIRES(mutex_);
  [[nodiscard]] base::Nanoseconds NextDue() const RKNND_REQUIRES(mutex_);
  void OnChanged(const FaultReport& fault, bool set);
  void RunThread();
  void Kick() RKNND_REQUIRES(mutex_);

  // The job with the memory that the wrapped device knows.
  static void TranslateMemory(Slot& slot);
  static void TranslateFrames(Slot& slot);
  static void SyncFrame(const Slot& slot, size_t input);
  // Caches, as the run of a job treats them.
  static void SyncCaches(const Slot& slot, Direction direction);

  Device* const device_;
  const base::Clock* const clock_;
  const base::Nanoseconds give_up_;
  const bool incoherent_;  // whatever faults there are
  FaultPlan plan_;
  FaultPlan::Changed told_;
  const std::shared_ptr<MemoryRegister> memories_ =
      std::make_shared<MemoryRegister>();
  std::thread thread_;

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  // By the lowest core of the job. Guarded by the mutex, but what belongs to
  // the thread that runs the job (kRunning).
  std::vector<std::unique_ptr<Slot>> slots_;
  uint64_t crashed_by_ RKNND_GUARDED_BY(mutex_) = 0;        // a fault; 0: alive
  base::Nanoseconds restart_ RKNND_GUARDED_BY(mutex_) = 0;  // 0: when cleared
  bool kicked_ RKNND_GUARDED_BY(mutex_) = false;
  uint64_t resets_ RKNND_GUARDED_BY(mutex_) = 0;
  // Who waits until the jobs that ran at a reset are back.
  std::vector<std::function<void(absl::Status)>> resetting_
      RKNND_GUARDED_BY(mutex_);
  bool stopped_ RKNND_GUARDED_BY(mutex_) = false;
};

}  // namespace rknnd::driver

#endif  // DRIVER_FAULTS_FAULTY_DEVICE_H_
