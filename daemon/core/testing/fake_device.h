// A device for tests of daemon/core: its models are a line of text, its jobs
// copy bytes, and it can hold a job, fail it, or tell what it was asked.

#ifndef DAEMON_CORE_TESTING_FAKE_DEVICE_H_
#define DAEMON_CORE_TESTING_FAKE_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "driver/device.h"

namespace rknnd::core::testing {

struct FakeDeviceState;

// A model is text like "inputs=2 outputs=1 bytes=64 weight=1000 internal=4096
// layers=3 name=x"; each is optional. "refuse=..." does not load, "lacks=..."
// only with another model's weights; "described=SOC" loads and cannot run. A
// tensor is one row of `bytes` UINT8 pixels; a job writes its first input plus
// 1 into its outputs. Layer i of a dump is the number i. Each "row=32" is a
// further shape row of so many bytes, and with as many times the internal
// memory. "modelled=10": in milliseconds, by a timing model that is not there.
// "mark=7": the byte a job leaves in its internal memory. "slow=1": so many of
// its layers are a reference loop's. Frames up to `bytes` wide are taken.
// Thread: any.
class FakeDevice final : public driver::Device {
 public:
  FakeDevice(uint32_t cores, const base::Clock* clock);
  ~FakeDevice() override;

  [[nodiscard]] const driver::DeviceInfo& info() const override {
    return info_;
  }
  absl::StatusOr<std::unique_ptr<driver::Model>> Load(
      const driver::LoadRequest& request) override;
  absl::StatusOr<std::unique_ptr<driver::Memory>> Attach(
      const driver::MemoryRef& memory, driver::MemoryAccess access) override;
  void Submit(const driver::JobRequest& job) override;
  void EnterWorker() override { ++entered_; }

  // Jobs from now on wait for Release: the device is asynchronous.
  void HoldJobs(bool hold);
  // Ends the job that was held longest; false when there is none.
  bool Release();
  [[nodiscard]] size_t held() const;
  // Of them, those that a device may end as nobody wants them any more.
  [[nodiscard]] size_t unwanted() const;
  // Jobs from now on end with `status`.
  void FailJobs(absl::Status status);
  void set_run_time(base::Nanoseconds time) { run_time_ = time; }
  // From now on models have a compiled form, which is this and their text.
  void set_compiler(std::string compiler) {
    info_.compiler = std::move(compiler);
  }
  // As of a driver that has SRAM to give.
  void set_core_sram(uint64_t bytes) { info_.core_sram = bytes; }
  // Finishing a model that came from its compiled form fails.
  void FailFinish(absl::Status status);
  // Attaching more than so many bytes at once fails.
  void set_attach_limit(uint64_t bytes) { attach_limit_ = bytes; }

  struct Run {
    uint32_t core = 0, core_mask = 0;
    const driver::Model* model = nullptr;
    uint64_t internal_size = 0;
    size_t gang_internal = 0;   // memories for further cores
    uint64_t found = 0;         // bytes of its internal memory that were not 0
    bool found_others = false;  // with another mark than its own
    base::Nanoseconds submitted = 0;
  };
  [[nodiscard]] std::vector<Run> runs() const;
  [[nodiscard]] uint32_t loads() const { return loads_; }
  // Of them, from the compiled form.
  [[nodiscard]] uint32_t restores() const { return restores_; }
  [[nodiscard]] uint32_t finished() const;
  [[nodiscard]] uint32_t entered() const { return entered_; }
  // What the last Load was given, whatever became of it.
  struct LastLoad {
    std::string weights_of, options;
    bool shares = false;
  };
  [[nodiscard]] LastLoad last_load() const;
  // A core was given two jobs at once, or a job too little memory, or memory
  // that somebody else wrote meanwhile.
  [[nodiscard]] uint32_t violations() const { return violations_; }
  // Memories, models that exist; bytes zeroed by Memory::Clear.
  [[nodiscard]] uint32_t memories() const;
  [[nodiscard]] uint32_t models() const;
  [[nodiscard]] uint64_t cleared() const;
  // Each Memory::Clear so far.
  struct Cleared {
    uint64_t offset = 0, bytes = 0;
    bool operator==(const Cleared&) const = default;
  };
  [[nodiscard]] std::vector<Cleared> clears() const;
  // Called by each Clear from now on, on its thread.
  void OnClear(std::function<void()> hook);

 private:
  void Execute(const driver::JobRequest& job);
  // Each part of internal memory that is the job's.
  void ForInternal(const driver::JobRequest& job,
                   absl::FunctionRef<void(std::span<std::byte>)> f);
  // Looks at what is there and writes the job's mark over it.
  void BeginInInternal(const driver::JobRequest& job, Run* run);
  // Nobody else writes there meanwhile.
  void EndInInternal(const driver::JobRequest& job);

  driver::DeviceInfo info_;
  const base::Clock* const clock_;
  const std::shared_ptr<FakeDeviceState> state_;
  std::atomic<base::Nanoseconds> run_time_{0};
  std::atomic<uint64_t> attach_limit_{UINT64_MAX};
  std::atomic<uint32_t> loads_{0}, restores_{0}, entered_{0}, violations_{0};

  mutable base::Mutex mutex_;
  bool hold_ RKNND_GUARDED_BY(mutex_) = false;
  absl::Status status_ RKNND_GUARDED_BY(mutex_);
  std::deque<driver::JobRequest> held_ RKNND_GUARDED_BY(mutex_);
  std::vector<Run> runs_ RKNND_GUARDED_BY(mutex_);
  LastLoad last_load_ RKNND_GUARDED_BY(mutex_);
  uint32_t busy_ RKNND_GUARDED_BY(mutex_) = 0;  // cores, as bits
};

}  // namespace rknnd::core::testing

#endif  // DAEMON_CORE_TESTING_FAKE_DEVICE_H_
