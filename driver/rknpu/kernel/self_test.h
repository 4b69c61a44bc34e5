// One small task with a known answer, for a core that is to be trusted: it
// copies 16 channels of 4 lines of 8 pixels through the output stage. Used when
// the NPU is opened and after each reset.

#ifndef DRIVER_RKNPU_KERNEL_SELF_TEST_H_
#define DRIVER_RKNPU_KERNEL_SELF_TEST_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/rknpu/kernel/npu_file.h"

namespace rknnd::rknpu {

// Thread: one at a time, with no other job in the driver.
class SelfTest {
 public:
  static absl::StatusOr<std::unique_ptr<SelfTest>> Make(
      const std::shared_ptr<NpuFile>& file);

  // Runs it on core `core`; errors say what came instead of the answer.
  absl::Status Run(uint32_t core, uint32_t timeout_ms);

 private:
  explicit SelfTest(std::shared_ptr<NpuFile> file) : file_(std::move(file)) {}

  const std::shared_ptr<NpuFile> file_;
  // Commands, then what is read, then what is written.
  std::unique_ptr<NpuBuffer> memory_, tasks_;
  uint8_t round_ = 0;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_KERNEL_SELF_TEST_H_
