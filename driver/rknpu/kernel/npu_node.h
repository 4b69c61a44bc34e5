// Which node of /dev is the NPU's, and of which driver. Called while a device
// is opened, and by the doctor.

#ifndef DRIVER_RKNPU_KERNEL_NPU_NODE_H_
#define DRIVER_RKNPU_KERNEL_NPU_NODE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "driver/rknpu/kernel/kernel_calls.h"

namespace rknnd::rknpu {

struct NpuNode {
  std::string path;
  bool drm = true;  // else it is the build with dma-bufs for handles
  std::string description;
};

// NOT_FOUND: this machine has no driver for an NPU. PERMISSION_DENIED: there
// may be one, but its node cannot be opened. UNIMPLEMENTED: there is one that
// rknnd cannot use, with what to do. Thread: any.
absl::StatusOr<NpuNode> FindNpuNode(KernelCalls& kernel);

// The error of a call that failed with `error`; `what` names call and object.
absl::Status KernelError(int error, const std::string& what);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_KERNEL_NPU_NODE_H_
