// OpenCL for operators that a program computes on a GPU: a context, a queue and
// the operator's kernel, which its callbacks are handed. The runtime is the
// machine's libOpenCL.so.1, loaded when the first such operator is registered.

#ifndef CLIENT_RKNNRT_CUSTOM_OPENCL_H_
#define CLIENT_RKNNRT_CUSTOM_OPENCL_H_

#include <memory>

#include "base/values/expected.h"
#include "client/include/rknn_custom_op.h"

namespace rknnd::client {

// One operator's kernel, built of its source. Thread: any, one at a time.
class GpuKernel {
 public:
  // kUnimplemented, with the reason, where there is no OpenCL here.
  static base::Expected<void> Check();
  // kInvalidArgument, with the compiler's words, for a source that it refuses.
  static base::Expected<std::unique_ptr<GpuKernel>> Build(
      const rknn_custom_op& op);
  // Not while a callback runs.
  ~GpuKernel();
  GpuKernel(const GpuKernel&) = delete;
  GpuKernel& operator=(const GpuKernel&) = delete;

  // As the callbacks get them. Context and queue are the process's.
  [[nodiscard]] rknn_gpu_op_context handles() const { return handles_; }

 private:
  GpuKernel() = default;

  rknn_gpu_op_context handles_ = {};
  void* program_ = nullptr;
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CUSTOM_OPENCL_H_
