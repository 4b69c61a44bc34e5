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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// Thread: any.
class Backend {
 public:
  virtual ~Backend() = default;

  // Zeroed. RESOURCE_EXHAUSTED: no memory, or no room among the addresses.
  virtual absl::StatusOr<std::unique_ptr<PlacedMemory>> Allocate(
      uint64_t bytes) = 0;
  // Memory of somebody else, which outlives the result.
  virtual absl::StatusOr<std::unique_ptr<PlacedMemory>> Place(
      std::span<std::byte> bytes) = 0;
  // The table of a program whose commands begin at `commands`.
  virtual absl::StatusOr<std::unique_ptr<PlacedTasks>> PlaceTable(
      std::span<const TaskEntry> tasks, uint64_t commands) = 0;

  // Returns when the job is done. Errors name the task.
  virtual absl::Status Run(const NpuJob& job) = 0;
  // Back to a known state, when no job runs.
  virtual absl::Status Reset() = 0;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_BACKEND_H_
