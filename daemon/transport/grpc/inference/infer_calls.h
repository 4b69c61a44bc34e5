// ModelInfer and ModelStreamInfer as gRPC calls: who may call, what messages
// may take of memory, answers sent, clients that go. They come without
// generated code, so that a message stays as it was received.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_INFER_CALLS_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_INFER_CALLS_H_

#include <memory>

#include "daemon/transport/grpc/environment.h"
#include "daemon/transport/grpc/inference/inference.h"
#include "daemon/transport/grpc/inference/open_calls.h"

namespace grpc {
class CallbackGenericService;
}  // namespace grpc

namespace rknnd::transport {

// Outlives its calls. Thread: any.
struct InferCallParts {
  GrpcEnvironment environment;
  InferenceParts inference;
  OpenCalls* open = nullptr;
};

std::unique_ptr<grpc::CallbackGenericService> MakeInferCalls(
    const InferCallParts& parts);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_INFER_CALLS_H_
