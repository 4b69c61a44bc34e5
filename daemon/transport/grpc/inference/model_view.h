// A model as the protocol's clients see it: inputs and outputs as in the ONNX
// file (names, datatypes, shapes in its axis order), not as the NPU has them.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_MODEL_VIEW_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_MODEL_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/grpc/inference/datatype.h"
#include "driver/model_info.h"
#include "driver/tensor.h"

namespace rknnd::transport {

struct TensorView {
  std::string name;
  Datatype datatype = Datatype::kFp32;
  // That a request may use in its place; the device converts. `datatype` first.
  std::vector<Datatype> accepted;
  // -1 where the model's rows of shapes differ.
  std::vector<int64_t> shape;
  // Of memory in the file's axis order.
  driver::TensorLayout layout = driver::TensorLayout::kUndefined;
  // Pixels may come with their channels side by side.
  bool is_image = false;
};

// One combination of input shapes that the model can run.
struct RowView {
  std::vector<std::vector<int64_t>> inputs, outputs;
  std::vector<core::InputShape> choice;  // for core::Session::SetShapes
};

// Immutable. Thread: any.
struct ModelView {
  core::ModelId id{};
  std::string graph;  // its name in the file
  uint64_t weight_bytes = 0;
  std::string custom_string, target_platform;
  std::vector<TensorView> inputs, outputs;
  std::vector<RowView> rows;  // at least one
};

// UNIMPLEMENTED: a tensor of a type that the protocol lacks, or a model that
// this device can only describe.
absl::StatusOr<ModelView> MakeModelView(const core::ModelId& id,
                                        const driver::ModelInfo& info);

// Product of `shape`; nothing when a dimension is negative or it overflows.
std::optional<uint64_t> CountElements(const std::vector<int64_t>& shape);

// "[1,3,-1,224]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_MODEL_VIEW_H_
