// Called once by rknnd, after it has loaded this library.

#include "daemon/transport/grpc/library.h"

extern "C" __attribute__((visibility("default")))
const rknnd::transport::GrpcLibraryTable*
rknnd_grpc_library() {
  using rknnd::transport::GrpcServer;
  static constexpr rknnd::transport::GrpcLibraryTable kTable = {
      RKNND_VERSION, &GrpcServer::Check, &GrpcServer::Start};
  return &kTable;
}
