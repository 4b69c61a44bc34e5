// Its lines hold words of peers: FailureLog makes them printable.

#include "daemon/transport/grpc/grpc_log.h"

#include <grpc/support/log.h>

#include "absl/strings/str_cat.h"
#include "base/posix/mutex.h"

namespace rknnd::transport {
namespace {

// gRPC's function takes no argument of ours. Held while a line is written, so
// that none comes after the end.
base::Mutex mutex;
FailureLog* destination RKNND_GUARDED_BY(mutex) = nullptr;

void Write(gpr_log_func_args* line) {
  if (line->severity < GPR_LOG_SEVERITY_ERROR) return;
  base::MutexLock lock(mutex);
  if (destination != nullptr) {
    destination->Note(absl::StrCat("gRPC: ", line->message));
  }
}

}  // namespace

GrpcLog::GrpcLog(FailureLog* failures) {
  {
    base::MutexLock lock(mutex);
    destination = failures;
  }
  gpr_set_log_function(Write);
}

GrpcLog::~GrpcLog() {
  base::MutexLock lock(mutex);
  destination = nullptr;
}

}  // namespace rknnd::transport
