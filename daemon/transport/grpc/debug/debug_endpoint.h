// rknnd.v1.Debug (proto/rknnd/v1/debug.proto).

#ifndef DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_ENDPOINT_H_
#define DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_ENDPOINT_H_

#include <memory>

#include "daemon/transport/grpc/endpoint.h"
#include "daemon/transport/grpc/environment.h"
#include "daemon/transport/grpc/options.h"

namespace rknnd::transport {

std::unique_ptr<GrpcEndpoint> MakeDebugEndpoint(
    const GrpcOptions& options, const GrpcEnvironment& environment);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_ENDPOINT_H_
