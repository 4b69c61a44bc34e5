// The bytes of an inference's answer. Tensors are copied once, from the memory
// that the device wrote into what gRPC sends.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_ANSWER_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_ANSWER_H_

#include <cstddef>
#include <span>
#include <string>

#include "daemon/transport/grpc/inference/conversion.h"
#include "daemon/transport/grpc/inference/inference_run.h"
#include "daemon/transport/grpc/inference/model_view.h"
#include "daemon/transport/grpc/inference/repository.h"

namespace grpc {
class ByteBuffer;
}  // namespace grpc

namespace rknnd::transport {

struct AnswerInput {
  const inference::ModelInferRequest* request = nullptr;
  const ServedModel* model = nullptr;
  const ModelView* view = nullptr;
  const RequestPlan* plan = nullptr;
  RunParts parts;
  bool streamed = false;  // inside a ModelStreamInferResponse
};

// `outputs`: of each of the model's, empty where it went to a client's memory.
void WriteAnswer(const AnswerInput& input,
                 std::span<const std::span<const std::byte>> outputs,
                 grpc::ByteBuffer* answer);

// A ModelStreamInferResponse that says what went wrong with one request.
void WriteStreamError(const std::string& message, const std::string& id,
                      grpc::ByteBuffer* answer);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_ANSWER_H_
