// gRPC's server reflection: which services there are, and the files that
// describe them. gRPC's own holds a thread for each open call, and calls that
// wait for one are kept for good, even those that were taken back.

#ifndef DAEMON_TRANSPORT_GRPC_REFLECTION_REFLECTION_ENDPOINT_H_
#define DAEMON_TRANSPORT_GRPC_REFLECTION_REFLECTION_ENDPOINT_H_

#include <memory>

#include "daemon/transport/grpc/endpoint.h"

namespace rknnd::transport {

std::unique_ptr<GrpcEndpoint> MakeReflectionEndpoint();

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_REFLECTION_REFLECTION_ENDPOINT_H_
