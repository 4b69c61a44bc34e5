// Its lines hold words of peers: FailureLog makes them printable.

#include "daemon/transport/grpc/grpc_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include "absl/strings/str_cat.h"
#include "base/posix/mutex.h"

namespace rknnd::transport {
namespace {

// gRPC's function takes no argument of ours. Held while a line is written, so
// that none comes after the end.
base::Mutex mutex;
FailureLog* destination RKNND_GUARDED_BY(mutex) = nullptr;
google::protobuf::LogHandler* protobufs_own RKNND_GUARDED_BY(mutex) = nullptr;

void Write(gpr_log_func_args* line) {
  if (line->severity < GPR_LOG_SEVERITY_ERROR) return;
  base::MutexLock lock(mutex);
  if (destination != nullptr) {
    destination->Note(absl::StrCat("gRPC: ", line->message));
  }
}

// A string of a peer's that is no UTF-8, say: by itself libprotobuf writes a
// line to stderr for each.
void WriteProtobuf(google::protobuf::LogLevel level, const char* /*file*/,
                   int /*line*/, const std::string& message) {
  if (level < google::protobuf::LOGLEVEL_ERROR) return;
  base::MutexLock lock(mutex);
  if (destination != nullptr) {
    destination->Note(absl::StrCat("protobuf: ", message));
  }
}

}  // namespace

GrpcLog::GrpcLog(FailureLog* failures) {
  base::MutexLock lock(mutex);
  destination = failures;
  gpr_set_log_function(Write);
  protobufs_own = google::protobuf::SetLogHandler(WriteProtobuf);
}

GrpcLog::~GrpcLog() {
  base::MutexLock lock(mutex);
  google::protobuf::SetLogHandler(protobufs_own);
  destination = nullptr;
}

}  // namespace rknnd::transport
