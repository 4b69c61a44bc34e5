// Opens files below a folder by names that clients choose: no symbolic link and
// no "..", wherever it came from and whenever, leads out of it.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_OPEN_BENEATH_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_OPEN_BENEATH_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"

namespace rknnd::transport {

// kSteps: one part of the path after the other, as the kernels before 5.6 and
// those under an old seccomp filter need it.
enum class BeneathBy { kKernel, kSteps };

// `path` relative to `folder`, for reading; a folder where `directory` says so.
// Opening never waits: not for a pipe's other end, nor for a device.
// NOT_FOUND: it is not there, or is no folder. INVALID_ARGUMENT: it leads
// elsewhere. Thread: any.
absl::StatusOr<base::UniqueFd> OpenBeneath(int folder, const std::string& path,
                                           bool directory,
                                           BeneathBy by = BeneathBy::kKernel);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_OPEN_BENEATH_H_
