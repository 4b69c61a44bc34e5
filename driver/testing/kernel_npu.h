// A device on the NPU of a kernel, a test's (rknpu/kernel/testing) or a
// guest's, with all memory of jobs from the driver's own heap: cached, so that
// what is not synchronised is rubbish to the other side. For tests and
// bench/kernel.

#ifndef DRIVER_TESTING_KERNEL_NPU_H_
#define DRIVER_TESTING_KERNEL_NPU_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/device.h"
#include "driver/memory/cache_state.h"
#include "driver/memory/heap.h"
#include "driver/rknpu/kernel/kernel_calls.h"

namespace rknnd::driver::testing {

// For a test's kernel a memfd is a dma-buf, and each CPU sees it.
class MemfdsAreDmaBufs final : public CacheCalls {
 public:
  [[nodiscard]] bool IsDmaBuf(int /*fd*/) const override { return true; }
  absl::Status Begin(int /*fd*/, CpuAccess /*access*/) override {
    return absl::OkStatus();
  }
  absl::Status End(int /*fd*/, CpuAccess /*access*/) override {
    return absl::OkStatus();
  }
};

// Thread: one.
class KernelNpu {
 public:
  // Both outlive it; without `calls` the real kernel is asked about dma-bufs.
  static absl::StatusOr<std::unique_ptr<KernelNpu>> Open(
      rknpu::KernelCalls& kernel, CacheCalls* calls);
  ~KernelNpu();

  [[nodiscard]] Device& device() { return *device_; }

  // The model of a file, with memory for its ports: pixels in, int8 out.
  absl::Status Load(std::span<const std::byte> file);
  // The first input, and the first output.
  [[nodiscard]] std::span<std::byte> input();
  [[nodiscard]] std::span<const std::byte> output();
  absl::Status Run(uint32_t cores);

 private:
  struct Buffer;

  KernelNpu();
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(uint64_t bytes);

  std::unique_ptr<Device> device_;
  std::unique_ptr<Heap> heap_;
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<Buffer>> inputs_, outputs_;
  std::vector<TensorBinding> input_bindings_, output_bindings_;
  std::unique_ptr<Buffer> arena_;
};

}  // namespace rknnd::driver::testing

#endif  // DRIVER_TESTING_KERNEL_NPU_H_
