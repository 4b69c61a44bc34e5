// The back end on a board: memory and jobs through the kernel's driver, with
// the policy that keeps one hang from becoming a frozen board.
//
//   * Blocking submits, with signals blocked, to named cores, one job a core
//     (core_gate.h); a gang only while no other job is in the driver.
//   * A deadline of ours. When a job does not end all others are waited for,
//     the NPU is reset once, and each core has to pass its self-test before it
//     serves again. A core that fails is not used any more, and others do its
//     jobs.
//   * Whoever was reset without being at fault is told so (ABORTED).
//
// What cannot be told without a board is listed in docs/hardware.md.

#ifndef DRIVER_RKNPU_KERNEL_KERNEL_BACKEND_H_
#define DRIVER_RKNPU_KERNEL_KERNEL_BACKEND_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "driver/memory/heap.h"
#include "driver/rknpu/backend.h"
#include "driver/rknpu/kernel/core_gate.h"
#include "driver/rknpu/kernel/kernel_calls.h"
#include "driver/rknpu/kernel/npu_file.h"
#include "driver/rknpu/kernel/self_test.h"

namespace rknnd::rknpu {

struct KernelOptions {
  uint32_t cores = 3;
  // What a job may take once it has started. The slowest published model takes
  // a third of a second on an RK3588.
  uint32_t deadline_ms = 2000;
  uint32_t self_test_ms = 500;
  // Told what happened to the NPU, a sentence each. May be called on any
  // thread.
  std::function<void(const std::string&)> log = nullptr;
};

// Thread: any.
class KernelBackend final : public Backend {
 public:
  // Opens the NPU and lets each core pass its self-test. `kernel` outlives it,
  // and all memory and heaps that it gives. UNAVAILABLE: no core does.
  static absl::StatusOr<std::unique_ptr<KernelBackend>> Open(
      KernelCalls& kernel, const NpuNode& node, const KernelOptions& options);

  absl::StatusOr<std::unique_ptr<PlacedMemory>> Allocate(
      uint64_t bytes) override;
  // UNIMPLEMENTED: only dma-bufs can be reached.
  absl::StatusOr<std::unique_ptr<PlacedMemory>> Place(
      std::span<std::byte> bytes) override;
  std::shared_ptr<const void> Import(int dma_buf) override;
  absl::StatusOr<std::unique_ptr<PlacedMemory>> PlaceDmaBuf(
      int dma_buf, uint64_t offset, std::span<std::byte> bytes) override;
  absl::StatusOr<std::unique_ptr<PlacedTasks>> PlaceTable(
      std::span<const TaskEntry> tasks, uint64_t commands) override;
  absl::Status Sync(const PlacedMemory& memory, uint64_t offset, uint64_t bytes,
                    SyncSide side) override;
  [[nodiscard]] bool CanGang(uint32_t cores) const override;
  absl::Status Run(const NpuJob& job) override;
  absl::Status Reset() override;
  [[nodiscard]] uint64_t resets() const override { return resets_.load(); }

  // Memory of the driver's as a heap for programs and internal memory: what
  // comes from it the NPU reaches without a copy.
  [[nodiscard]] std::unique_ptr<driver::Heap> MakeHeap() const;

  [[nodiscard]] const NpuFile& file() const { return *file_; }
  // As bits.
  [[nodiscard]] uint32_t usable_cores() const { return gate_.usable(); }

 private:
  KernelBackend(std::shared_ptr<NpuFile> file, const KernelOptions& options)
      : file_(std::move(file)), options_(options), gate_(options.cores) {}

  void Log(const std::string& text) const {
    if (options_.log != nullptr) options_.log(text);
  }
  // Each in turn; alone with the driver. Returns those that failed.
  uint32_t TestCores(uint32_t cores);
  // After a failure that happened in `era`: a reset, unless the NPU has had
  // one, and self-tests. False: another thread has seen to it meanwhile.
  bool Recover(uint64_t era, bool was_reset);

  const std::shared_ptr<NpuFile> file_;
  const KernelOptions options_;
  CoreGate gate_;
  std::unique_ptr<SelfTest> self_test_;
  std::atomic<uint64_t> era_{0};  // counts recoveries
  std::atomic<uint64_t> resets_{0};
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_KERNEL_KERNEL_BACKEND_H_
