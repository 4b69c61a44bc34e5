// rknnd.v1.Remote (proto/rknnd/v1/remote.proto): the session protocol over a
// gRPC stream.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_SESSION_ENDPOINT_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_SESSION_ENDPOINT_H_

#include <memory>

#include "daemon/transport/grpc/endpoint.h"
#include "daemon/transport/grpc/environment.h"
#include "daemon/transport/grpc/options.h"

namespace rknnd::transport {

std::unique_ptr<GrpcEndpoint> MakeSessionEndpoint(
    const GrpcOptions& options, const GrpcEnvironment& environment);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_SESSION_ENDPOINT_H_
