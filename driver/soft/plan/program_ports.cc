#include "driver/soft/plan/program_ports.h"

#include <utility>

#include "base/status/status.h"

namespace rknnd::soft {
namespace {

bool IsHalf(const GraphPort& port) {
  constexpr int32_t kOnnxHalf = 10;  // TensorProto.DataType
  return port.onnx_type == kOnnxHalf;
}

}  // namespace

absl::Status MakePorts(const Graph& graph, const NativeForm& form,
                       Program& program) {
  using driver::Direction;
  driver::ProgramInfo& info = program.info;
  for (const GraphPort& port : graph.inputs) {
    const Value& value = graph.value(port.value);
    RKNND_ASSIGN_OR_RETURN(
        IoPort made, IoPort::Make(Direction::kInput, port.name, value.type,
                                  *value.shape, form,
                                  {.quantization = port.quantization,
                                   .mean = port.mean,
                                   .deviation = port.deviation,
                                   .table = {},
                                   .half = IsHalf(port),
                                   .stands_for = port.stands_for}));
    info.inputs.push_back(made.attr());
    info.native_inputs.push_back(made.native());
    program.inputs.push_back(std::move(made));
  }
  for (const GraphPort& port : graph.outputs) {
    const Value& value = graph.value(port.value);
    RKNND_ASSIGN_OR_RETURN(
        IoPort made, IoPort::Make(Direction::kOutput, port.name, value.type,
                                  *value.shape, form,
                                  {.quantization = port.quantization,
                                   .mean = {},
                                   .deviation = {},
                                   .table = {},
                                   .half = IsHalf(port),
                                   .stands_for = port.stands_for}));
    info.outputs.push_back(made.attr());
    info.native_outputs.push_back(made.native());
    program.outputs.push_back(std::move(made));
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
