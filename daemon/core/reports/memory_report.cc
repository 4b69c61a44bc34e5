#include "daemon/core/reports/memory_report.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/core/terms/text_table.h"

namespace rknnd::core {
namespace {

std::string Address(uint64_t value) { return absl::StrFormat("0x%08x", value); }

// As the vendor writes shapes: in brackets.
std::string Bracketed(const std::string& shape) {
  if (shape.empty() || shape.front() == '(') return shape;
  return absl::StrCat("(", shape, ")");
}

// As the vendor's tables write types.
const char* DataType(driver::TensorType type) {
  switch (type) {
    case driver::TensorType::kFloat32:
      return "FLOAT";
    case driver::TensorType::kFloat16:
      return "FLOAT16";
    default:
      return driver::TensorTypeName(type);
  }
}

std::string Shape(const driver::TensorAttr& tensor) {
  return absl::StrCat("(", absl::StrJoin(tensor.dims, ","), ")");
}

}  // namespace

std::string SramTable(const driver::ModelInfo& model,
                      const driver::ProgramInfo& program,
                      const driver::SramPlan& sram, uint64_t address) {
  std::map<uint32_t, const driver::SramPlan::Entry*> in_sram;
  if (sram.used == 0) address = 0;  // offsets in internal memory
  uint64_t end = sram.used;         // of what starts in SRAM
  for (const driver::SramPlan::Entry& entry : sram.entries) {
    in_sram[entry.tensor] = &entry;
    end = std::max(end, entry.offset + program.tensors[entry.tensor].size);
  }
  const uint64_t dram = address + (end + driver::kSramPage - 1) /
                                      driver::kSramPage * driver::kSramPage;
  TextTable table({"ID", "User", "Tensor", "DataType", "OrigShape",
                   "NativeShape", "|", "[Start", "End)", "Size", "|",
                   "SramHit"});
  uint32_t rows = 0;
  const auto add_ports = [&](const std::vector<driver::TensorAttr>& ports,
                             const std::vector<driver::TensorAttr>& native,
                             const char* user) {
    for (size_t i = 0; i < ports.size(); ++i) {
      const driver::TensorAttr& port = i < native.size() ? native[i] : ports[i];
      table.Add({absl::StrCat(++rows), user, port.name, DataType(port.type),
                 Shape(ports[i]), Shape(port), "|", "\\", "\\",
                 Address(port.size_with_stride), "|", "\\"});
    }
  };
  add_ports(program.inputs, program.native_inputs, "InputOperator");
  uint64_t traffic = 0;
  for (uint32_t i = 0; i < program.tensors.size(); ++i) {
    const driver::TensorPlace& tensor = program.tensors[i];
    traffic += tensor.traffic();
    const auto found = in_sram.find(i);
    const bool hit = found != in_sram.end();
    const uint64_t start =
        hit ? address + found->second->offset : dram + tensor.offset;
    const std::string user = tensor.user < program.layers.size()
                                 ? program.layers[tensor.user].type
                                 : "\\";
    table.Add({absl::StrCat(++rows), user, tensor.name, tensor.data_type,
               Bracketed(tensor.shape), Bracketed(tensor.native_shape), "|",
               Address(start), Address(start + tensor.size),
               Address(tensor.size), "|",
               Address(hit ? found->second->hit : 0)});
  }
  add_ports(program.outputs, program.native_outputs, "OutputOperator");
  return absl::StrCat(
      "Total allocated Internal SRAM Size: ", sram.used, ", Addr: [",
      Address(address), ", ", Address(address + sram.used), ")\n",
      table.ToString(""), "Total Weight Memory Size: ", model.weight_size, "\n",
      "Total Internal Memory Size: ", program.internal_size, "\n",
      "Predict Internal Memory RW Amount: ", traffic, "\n",
      "Predict Weight Memory RW Amount: ", model.weight_size, "\n",
      "Predict SRAM Hit RW Amount: ", sram.saved, "\n");
}

std::string ModelText(const driver::ModelInfo& model,
                      const driver::ProgramInfo& program,
                      const driver::SramPlan* sram, uint64_t offset,
                      const driver::DeviceInfo& device) {
  std::string text = absl::StrCat(
      "RKNN Model Information, name: ", Harmless(model.name),
      ", target: ", device.kind, ", target platform: ",
      model.target_platform.empty() ? device.soc : model.target_platform,
      ", framework name: ONNX, framework layout: NCHW, model inference type: ",
      model.programs.size() > 1 ? "dynamic_shape" : "static_shape", "\n");
  if (!model.runnable.ok()) {
    absl::StrAppend(&text, model.runnable.message(), "\n");
    return text;
  }
  if (device.sram_total == 0) {
    absl::StrAppend(&text, "The NPU of ", device.soc, " has no SRAM.\n");
  } else if (sram == nullptr) {
    absl::StrAppend(&text,
                    "No SRAM is used without RKNN_FLAG_ENABLE_SRAM; with it, "
                    "and all of it free:\n");
  }
  return text + SramTable(model, program,
                          sram == nullptr ? program.sram : *sram,
                          device.sram_base + offset);
}

}  // namespace rknnd::core
