#include "driver/rknpu/emulated_backend.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/mapping.h"
#include "base/status/status.h"
#include "driver/rknpu/address_space.h"
#include "driver/rknpu/emulator/emulator.h"
#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::rknpu {
namespace {

class EmulatedMemory final : public PlacedMemory {
 public:
  EmulatedMemory(std::shared_ptr<AddressSpace> space, uint64_t address,
                 std::span<std::byte> bytes, base::Mapping own)
      : space_(std::move(space)),
        address_(address),
        bytes_(bytes),
        own_(std::move(own)) {}
  ~EmulatedMemory() override { space_->GiveBack(address_); }

  [[nodiscard]] uint64_t address() const override { return address_; }
  [[nodiscard]] std::span<std::byte> bytes() const override { return bytes_; }

 private:
  const std::shared_ptr<AddressSpace> space_;
  const uint64_t address_;
  const std::span<std::byte> bytes_;
  const base::Mapping own_;  // empty where the bytes are somebody else's
};

class EmulatedTasks final : public PlacedTasks {
 public:
  EmulatedTasks(std::span<const TaskEntry> entries, uint64_t commands) {
    for (const TaskEntry& entry : entries) {
      tasks.push_back({.node = entry.node,
                       .enable_mask = entry.enable_mask,
                       .interrupt_mask = entry.interrupt_mask,
                       .words = entry.words,
                       .commands = commands + entry.commands});
    }
  }
  std::vector<Task> tasks;
};

TaskCost CostOf(const TaskReport& report) {
  // Measured on published programs, within a factor of two: the fast engine's
  // convolutions do twice what the software NPU's other kernels do.
  const uint64_t macs_per_ns =
      report.fast ? 2 * static_cast<uint64_t>(soft::OperationsPerNs()) : 1;
  const uint64_t bytes_per_ns = report.fast ? 2 : 1;
  const uint64_t bytes = report.bytes_read + report.bytes_written;
  return {.node = report.node,
          .macs = report.macs,
          .bytes_read = report.bytes_read,
          .bytes_written = report.bytes_written,
          .computing_cycles = report.computing,
          .moving_cycles = report.moving,
          .expected = static_cast<base::Nanoseconds>(report.macs / macs_per_ns +
                                                     bytes / bytes_per_ns)};
}

class EmulatedBackend final : public Backend {
 public:
  explicit EmulatedBackend(Emulation emulation)
      : engine_(emulation == Emulation::kFast ? Engine::kFast
                                              : Engine::kPlain) {}

  [[nodiscard]] const char* stand_in() const override { return "emulated NPU"; }

  absl::StatusOr<std::unique_ptr<PlacedMemory>> Allocate(
      uint64_t bytes) override {
    RKNND_ASSIGN_OR_RETURN(const uint64_t address, space_->Take(bytes));
    absl::StatusOr<base::Mapping> mapping =
        base::ToStatusOr(base::Mapping::Anonymous(
            static_cast<size_t>(std::max<uint64_t>(bytes, 1))));
    if (!mapping.ok()) {
      space_->GiveBack(address);
      return mapping.status();
    }
    const std::span<std::byte> span(mapping->data(),
                                    static_cast<size_t>(bytes));
    return std::make_unique<EmulatedMemory>(space_, address, span,
                                            *std::move(mapping));
  }

  absl::StatusOr<std::unique_ptr<PlacedMemory>> Place(
      std::span<std::byte> bytes) override {
    RKNND_ASSIGN_OR_RETURN(const uint64_t address, space_->Take(bytes.size()));
    return std::make_unique<EmulatedMemory>(space_, address, bytes,
                                            base::Mapping());
  }

  absl::StatusOr<std::unique_ptr<PlacedTasks>> PlaceTable(
      std::span<const TaskEntry> tasks, uint64_t commands) override {
    return std::make_unique<EmulatedTasks>(tasks, commands);
  }

  absl::Status Survey(const NpuJob& job,
                      std::vector<TaskCost>& costs) override {
    RKNND_ASSIGN_OR_RETURN(const Prepared prepared, Prepare(job));
    std::vector<TaskReport> reports;
    // One of its own: jobs may run.
    RKNND_RETURN_IF_ERROR(
        Machine().Run(prepared.memory, prepared.lists,
                      {.executes = false, .report = &reports}));
    for (const TaskReport& report : reports) costs.push_back(CostOf(report));
    return absl::OkStatus();
  }

  absl::Status Run(const NpuJob& job) override {
    RKNND_ASSIGN_OR_RETURN(const Prepared prepared, Prepare(job));
    return machine_.Run(
        prepared.memory, prepared.lists,
        {.engine = engine_, .stop = job.stop, .stop_too = job.stop_too});
  }

  // Each job begins with empty registers.
  absl::Status Reset() override { return absl::OkStatus(); }

 private:
  struct Prepared {
    Memory memory;
    std::array<std::span<const Task>, kCores> lists;
  };
  static absl::StatusOr<Prepared> Prepare(const NpuJob& job) {
    Prepared prepared;
    for (const ReachableMemory& reachable : job.memory) {
      if (reachable.memory->bytes().empty()) continue;
      RKNND_RETURN_IF_ERROR(prepared.memory.Attach({reachable.memory->address(),
                                                    reachable.memory->bytes(),
                                                    reachable.writable}));
    }
    const std::span<const Task> tasks =
        static_cast<const EmulatedTasks*>(job.table)->tasks;
    for (const CoreTasks& core : job.cores) {
      if (core.core >= kCores) {
        return absl::InvalidArgumentError(
            absl::StrCat("the NPU has no core ", core.core));
      }
      prepared.lists[core.core] =
          tasks.subspan(core.tasks.first, core.tasks.count);
    }
    return prepared;
  }

  const Engine engine_;
  const std::shared_ptr<AddressSpace> space_ = std::make_shared<AddressSpace>();
  Machine machine_;
};

}  // namespace

std::unique_ptr<Backend> MakeEmulatedBackend(Emulation emulation) {
  return std::make_unique<EmulatedBackend>(emulation);
}

}  // namespace rknnd::rknpu
