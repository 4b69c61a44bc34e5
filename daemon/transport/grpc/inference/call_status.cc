#include "daemon/transport/grpc/inference/call_status.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <string>

#include "daemon/transport/grpc/inference/inference_run.h"

namespace rknnd::transport {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // Messages travel in HTTP headers: a long one would be a header too large.
  constexpr size_t kLongest = 2048;
  return {static_cast<grpc::StatusCode>(status.raw_code()),
          std::string(status.message().substr(0, kLongest))};
}

void TellToComeAgain(grpc::ServerContextBase& context,
                     base::Nanoseconds after) {
  context.AddTrailingMetadata("grpc-retry-pushback-ms",
                              std::to_string(after / base::kMillisecond));
}

base::Nanoseconds DeadlineOf(const grpc::ServerContextBase& context,
                             const base::Clock& clock) {
  using std::chrono::duration_cast;
  using std::chrono::nanoseconds;
  using std::chrono::system_clock;
  constexpr base::Nanoseconds kFar = 365 * 24 * 3600 * base::kSecond;
  const system_clock::time_point deadline = context.deadline();
  if (deadline == system_clock::time_point::max()) {
    return InferenceRun::kNoDeadline;
  }
  const base::Nanoseconds left =
      duration_cast<nanoseconds>(deadline - system_clock::now()).count();
  if (left > kFar) return InferenceRun::kNoDeadline;
  return clock.Now() + left;
}

}  // namespace rknnd::transport
