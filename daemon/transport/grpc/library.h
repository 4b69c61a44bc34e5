// What librknnd-grpc.so exports: one C function, so that the daemon can load
// the gRPC server only where it is configured, and a daemon without it maps
// nothing of gRPC. The library has no code of the daemon's own: that, and its
// state, is the executable's, by which it is loaded and by nobody else.

#ifndef DAEMON_TRANSPORT_GRPC_LIBRARY_H_
#define DAEMON_TRANSPORT_GRPC_LIBRARY_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/transport/grpc/server.h"

namespace rknnd::transport {

struct GrpcLibraryTable {
  // Of the build. Looked at before all else: another's has other layouts.
  const char* version = nullptr;
  decltype(&GrpcServer::Check) check = nullptr;
  decltype(&GrpcServer::Start) start = nullptr;
};

}  // namespace rknnd::transport

// For dlsym.
using RknndGrpcLibrary = const rknnd::transport::GrpcLibraryTable* (*)();
inline constexpr char kGrpcLibrary[] = "librknnd-grpc.so";
inline constexpr char kGrpcLibraryFunction[] = "rknnd_grpc_library";

#endif  // DAEMON_TRANSPORT_GRPC_LIBRARY_H_
