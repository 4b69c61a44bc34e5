// The Open Inference Protocol (proto/inference/open_inference.proto).

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_INFERENCE_ENDPOINT_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_INFERENCE_ENDPOINT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "daemon/transport/grpc/endpoint.h"
#include "daemon/transport/grpc/environment.h"
#include "daemon/transport/grpc/options.h"

namespace rknnd::transport {

absl::StatusOr<std::unique_ptr<GrpcEndpoint>> MakeInferenceEndpoint(
    const GrpcOptions& options, const GrpcEnvironment& environment);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_INFERENCE_ENDPOINT_H_
