// What an inference request asks of a model: every name, shape, datatype, size
// and parameter of it checked against the model, before anything is copied or
// run. Called by the inference endpoint with what a client wrote. No threads,
// no gRPC; fuzzed (inference_request_fuzzer.cc).

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_CONVERSION_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_CONVERSION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "daemon/transport/grpc/inference/datatype.h"
#include "daemon/transport/grpc/inference/model_view.h"

namespace inference {
class InferTensorContents;
class ModelInferRequest;
}  // namespace inference

namespace rknnd::transport {

// A part of memory that the client has registered.
struct RegionRange {
  std::string name;
  uint64_t offset = 0, size = 0;
};

// Where one input of the model comes from.
struct InputPlan {
  Datatype datatype = Datatype::kFp32;
  bool channels_last = false;  // pixels, of an input that is an image
  uint64_t bytes = 0;
  // One of these three.
  std::optional<size_t> raw;  // index in raw_input_contents
  const inference::InferTensorContents* typed = nullptr;
  std::optional<RegionRange> region;
};

// One output that the client wants.
struct OutputPlan {
  uint32_t index = 0;    // of the model
  uint32_t classes = 0;  // so many of the best in its place; 0: the tensor
  uint64_t elements = 0, bytes = 0;
  std::optional<RegionRange> region;
};

struct RequestPlan {
  uint32_t row = 0;                 // of the model's shapes
  std::vector<InputPlan> inputs;    // one for each of the model's, in its order
  std::vector<OutputPlan> outputs;  // in the client's order
  uint64_t priority = 0;            // 1 is the highest; 0: the lowest
  base::Nanoseconds timeout = 0;    // in the queue; 0: none of its own
  bool marks_final = false;         // triton_enable_empty_final_response
};

// Pointers in the plan lead into `request`. INVALID_ARGUMENT: it does not fit
// the model. `raw_sizes`: of each of its raw_input_contents, which are looked
// at nowhere else.
absl::StatusOr<RequestPlan> PlanRequest(
    const ModelView& model, const inference::ModelInferRequest& request,
    std::span<const uint64_t> raw_sizes);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_CONVERSION_H_
