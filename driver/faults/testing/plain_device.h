// A device for tests of faults: models are a name and a number of bytes, jobs
// write their first input plus 1 to their outputs at once, or when told to.

#ifndef DRIVER_FAULTS_TESTING_PLAIN_DEVICE_H_
#define DRIVER_FAULTS_TESTING_PLAIN_DEVICE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "driver/device.h"

namespace rknnd::driver::testing {

inline constexpr uint64_t kPlainBytes = 64;  // of each tensor

class PlainMemory final : public Memory {
 public:
  explicit PlainMemory(base::Mapping mapping) : mapping_(std::move(mapping)) {}
  [[nodiscard]] uint64_t size() const override { return mapping_.size(); }
  [[nodiscard]] std::byte* data() const { return mapping_.data(); }

 private:
  const base::Mapping mapping_;
};

class PlainModel final : public Model {
 public:
  explicit PlainModel(ModelInfo info) : info_(std::move(info)) {}
  [[nodiscard]] const ModelInfo& info() const override { return info_; }
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t /*program*/, Direction /*direction*/, uint32_t /*index*/,
      const TensorFormat& /*format*/) const override {
    return kPlainBytes;
  }

 private:
  const ModelInfo info_;
};

// Thread: any, one at a time.
class PlainDevice : public Device {
 public:
  PlainDevice(uint32_t cores, base::FakeClock* clock) : clock_(clock) {
    info_.kind = "plain";
    info_.cores = cores;
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  // The graph is called "graph", whatever the file is.
  absl::StatusOr<std::unique_ptr<Model>> Load(
      const LoadRequest& request) override {
    ModelInfo info;
    info.name = "graph";
    info.weight_size = request.bytes.size();
    info.programs.emplace_back();
    return std::make_unique<PlainModel>(std::move(info));
  }
  absl::StatusOr<std::unique_ptr<Memory>> Attach(
      const MemoryRef& memory, MemoryAccess /*access*/) override {
    RKNND_ASSIGN_OR_RETURN(base::Mapping mapping,
                           base::ToStatusOr(base::Mapping::OfFd(
                               memory.fd, memory.offset, memory.size,
                               base::Mapping::Access::kReadWrite)));
    return std::make_unique<PlainMemory>(std::move(mapping));
  }
  void Submit(const JobRequest& job) override {
    if (hold) {
      held_.push_back({job, clock_->Now()});
    } else {
      Execute({job, clock_->Now()});
    }
  }
  bool SetClock(double fraction) override {
    clock_fraction = fraction;
    return has_clock;
  }

  // Ends the job that was held longest.
  void Release() {
    const Held job = held_.front();
    held_.pop_front();
    Execute(job);
  }
  [[nodiscard]] size_t held() const { return held_.size(); }

  bool hold = false;
  bool has_clock = false;
  double clock_fraction = 1;
  base::Nanoseconds run_time = 0;  // of a job
  uint32_t runs = 0;

 private:
  struct Held {
    JobRequest job;
    base::Nanoseconds started;
  };

  void Execute(const Held& held) {
    ++runs;
    clock_->Advance(run_time);
    for (const TensorBinding& output : held.job.outputs) {
      const TensorBinding& input = held.job.inputs[0];
      for (uint64_t i = 0; i < kPlainBytes; ++i) {
        At(output)[i] =
            static_cast<std::byte>(std::to_integer<int>(At(input)[i]) + 1);
      }
    }
    held.job.listener->OnJobDone(
        {absl::OkStatus(), held.started, clock_->Now()});
  }
  static std::byte* At(const TensorBinding& binding) {
    return static_cast<PlainMemory*>(binding.memory)->data() + binding.offset;
  }

  DeviceInfo info_;
  base::FakeClock* const clock_;
  std::deque<Held> held_;
};

// What a client has: memory that it sees itself and that a device knows.
struct SharedBytes {
  SharedBytes(Device& device, uint64_t size) {
    fd = *base::MakeMemfd("test", size);
    mapping = *base::Mapping::OfFd(fd.get(), 0, size,
                                   base::Mapping::Access::kReadWrite);
    memory = *device.Attach({fd.get(), 0, size}, MemoryAccess::kReadWrite);
  }
  std::byte& operator[](size_t at) const { return mapping.data()[at]; }

  base::UniqueFd fd;
  base::Mapping mapping;
  std::unique_ptr<Memory> memory;
};

}  // namespace rknnd::driver::testing

#endif  // DRIVER_FAULTS_TESTING_PLAIN_DEVICE_H_
