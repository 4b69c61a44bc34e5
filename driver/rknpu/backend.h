// What runs placed programs: an NPU behind a kernel driver, or an emulated one.
// It knows memory and tasks, nothing of models. Blocking: whoever runs a job
// waits for it, one job a core at a time.
//
// All memory lies in one address space of 32 bits. What a job may touch is
// named with it; the emulator reaches nothing else, hardware reaches all that
// is placed, which is why the executor checks programs before (checker.h).

#ifndef DRIVER_RKNPU_BACKEND_H_
#define DRIVER_RKNPU_BACKEND_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/schedule.h"

namespace rknnd::rknpu {

// Memory that the NPU can reach, from its making to its end, which must not
// come while a job uses it. Thread: any.
class PlacedMemory {
 public:
  virtual ~PlacedMemory() = default;
  [[nodiscard]] virtual uint64_t address() const = 0;
  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
};

// A task table with the addresses of one copy of a program's commands.
class PlacedTasks {
 public:
  virtual ~PlacedTasks() = default;
};

// One core's part of a job.
struct CoreTasks {
  uint32_t core = 0;
  TaskRange tasks;  // of the table
};

struct ReachableMemory {
  const PlacedMemory* memory = nullptr;
  bool writable = false;
};

struct NpuJob {
  const PlacedTasks* table = nullptr;
  // They step together, in this order.
  std::span<const CoreTasks> cores;
  std::span<const ReachableMemory> memory;
  // Once one of them holds true the job ends soon, with CANCELLED. Null: none.
  const std::atomic<bool>* stop = nullptr;
  const std::atomic<bool>* stop_too = nullptr;
};

// What a task costs, by its registers.
struct TaskCost {
  uint32_t node = 0;
  uint64_t macs = 0, bytes_read = 0, bytes_written = 0;
  // Of the NPU's clock, at least, and both at the same time.
  uint64_t computing_cycles = 0, moving_cycles = 0;
  // What this back end takes for it, more or less; 0: as the cycles say.
  base::Nanoseconds expected = 0;
};

enum class SyncSide : uint8_t { kToNpu, kFromNpu };

// Thread: any.
class Backend {
 public:
  virtual ~Backend() = default;

  // What computes the tasks where no NPU does, for reports; empty: an NPU.
  [[nodiscard]] virtual const char* stand_in() const { return ""; }

  // Zeroed. RESOURCE_EXHAUSTED: no memory, or no room among the addresses.
  virtual absl::StatusOr<std::unique_ptr<PlacedMemory>> Allocate(
      uint64_t bytes) = 0;
  // Memory of somebody else, which outlives the result.
  virtual absl::StatusOr<std::unique_ptr<PlacedMemory>> Place(
      std::span<std::byte> bytes) = 0;
  // Somebody's dma-buf stays known to the NPU while the result lives, so that
  // placing it costs a job no call into its driver. Null: there is no need.
  virtual std::shared_ptr<const void> Import(int /*dma_buf*/) {
    return nullptr;
  }
  // As Place(), where `bytes` are a dma-buf's from `offset` on. -1: they are
  // nobody's.
  virtual absl::StatusOr<std::unique_ptr<PlacedMemory>> PlaceDmaBuf(
      int /*dma_buf*/, uint64_t /*offset*/, std::span<std::byte> bytes) {
    return Place(bytes);
  }
  // The table of a program whose commands begin at `commands`.
  virtual absl::StatusOr<std::unique_ptr<PlacedTasks>> PlaceTable(
      std::span<const TaskEntry> tasks, uint64_t commands) = 0;

  // Reads the job's tasks, runs none of them, and appends what each costs, in
  // the order in which they would run. An error: this back end could not run
  // the task that comes then; the text names block, register and value. A back
  // end that cannot tell appends nothing.
  virtual absl::Status Survey(const NpuJob& /*job*/,
                              std::vector<TaskCost>& /*costs*/) {
    return absl::OkStatus();
  }

  // The CPU has written a part of it that the NPU is to read, or will read what
  // the NPU has written: what caches need for that. Nothing where both see the
  // same bytes.
  virtual absl::Status Sync(const PlacedMemory& /*memory*/, uint64_t /*offset*/,
                            uint64_t /*bytes*/, SyncSide /*side*/) {
    return absl::OkStatus();
  }
  // Whether one job can have these cores, as bits.
  [[nodiscard]] virtual bool CanGang(uint32_t /*cores*/) const { return true; }

  // Returns when the job is done. Errors name the task. ABORTED: the NPU was
  // reset under the job by no fault of its own. DEADLINE_EXCEEDED: it did not
  // end, and the NPU was reset. Both may be run again, from its inputs on.
  virtual absl::Status Run(const NpuJob& job) = 0;
  // Back to a known state. A job that runs meanwhile ends first, or begins and
  // ends as if nothing were. Thread: any.
  virtual absl::Status Reset() = 0;
  // Since the start.
  [[nodiscard]] virtual uint64_t resets() const { return 0; }
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_BACKEND_H_
