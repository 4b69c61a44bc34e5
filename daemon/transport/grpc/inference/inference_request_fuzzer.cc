// An inference request of any bytes, in pieces of any size, against a model:
// what it is found to ask for is copied, as the endpoint would.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "daemon/transport/grpc/inference/conversion.h"
#include "daemon/transport/grpc/inference/model_view.h"
#include "daemon/transport/grpc/inference/request_message.h"
#include "daemon/transport/grpc/inference/typed_contents.h"

namespace rknnd::transport {
namespace {

driver::TensorAttr Tensor(const char* name, driver::TensorType type,
                          driver::TensorType file_type,
                          std::vector<uint32_t> dims,
                          driver::TensorLayout layout) {
  driver::TensorAttr attr;
  attr.name = name;
  attr.type = type;
  attr.file_type = file_type;
  attr.dims = std::move(dims);
  attr.layout = layout;
  return attr;
}

// Of two listed shapes, with an image and a whole number for its inputs.
ModelView MakeView() {
  using driver::TensorLayout;
  using driver::TensorType;
  driver::ModelInfo info;
  for (const uint32_t width : {2U, 3U}) {
    driver::ProgramInfo& row = info.programs.emplace_back();
    row.inputs = {Tensor("x", TensorType::kInt8, TensorType::kFloat32,
                         {1, 2, width, 3}, TensorLayout::kNhwc),
                  Tensor("n", TensorType::kInt64, TensorType::kInt64, {1},
                         TensorLayout::kUndefined)};
    row.outputs = {Tensor("y", TensorType::kFloat16, TensorType::kFloat32,
                          {1, width}, TensorLayout::kUndefined)};
  }
  return *MakeModelView({}, info);
}

void Ask(const ModelView& view, std::span<const std::byte> bytes,
         size_t piece) {
  RequestMessage::Pieces pieces;
  while (!bytes.empty()) {
    pieces.push_back(bytes.first(std::min(piece, bytes.size())));
    bytes = bytes.subspan(pieces.back().size());
  }
  const auto message = RequestMessage::Parse(
      std::move(pieces), [](uint64_t /*more*/) { return absl::OkStatus(); });
  if (!message.ok()) return;
  const auto plan = PlanRequest(view, message->head(), message->raw_sizes());
  if (!plan.ok()) {
    if (plan.status().message().empty()) std::abort();
    return;
  }
  if (plan->inputs.size() != view.inputs.size()) std::abort();
  for (const InputPlan& input : plan->inputs) {
    if (input.region.has_value()) continue;
    // Of just that size: a byte beyond it is seen.
    std::vector<std::byte> room(static_cast<size_t>(input.bytes));
    if (input.raw.has_value()) {
      message->CopyRaw(*input.raw, 0, room);
    } else {
      CopyTyped(*input.typed, input.datatype, room);
    }
  }
  for (const OutputPlan& output : plan->outputs) {
    if (output.classes == 0) continue;
    const std::vector<std::byte> tensor(static_cast<size_t>(output.bytes));
    Classify(view.outputs[output.index].datatype, tensor, 1, output.classes);
  }
}

}  // namespace
}  // namespace rknnd::transport

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const rknnd::transport::ModelView kView = rknnd::transport::MakeView();
  if (size == 0) return 0;
  // The first byte says how the others arrive.
  const size_t piece = data[0] == 0 ? size : data[0];
  rknnd::transport::Ask(kView, std::as_bytes(std::span(data, size)).subspan(1),
                        piece);
  return 0;
}
