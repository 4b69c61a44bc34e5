#include "daemon/core/memory_report.h"

#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/core/text_table.h"

namespace rknnd::core {
namespace {

std::string Address(uint64_t value) { return absl::StrFormat("0x%08x", value); }

// As the vendor writes shapes: in brackets.
std::string Bracketed(const std::string& shape) {
  if (shape.empty() || shape.front() == '(') return shape;
  return absl::StrCat("(", shape, ")");
}

}  // namespace

std::string SramTable(const driver::ModelInfo& model,
                      const driver::ProgramInfo& program,
                      const driver::SramPlan& sram) {
  std::map<uint32_t, const driver::SramPlan::Entry*> in_sram;
  for (const driver::SramPlan::Entry& entry : sram.entries) {
    in_sram[entry.tensor] = &entry;
  }
  TextTable table({"ID", "User", "Tensor", "DataType", "OrigShape",
                   "NativeShape", "|", "[Start", "End)", "Size", "|",
                   "SramHit"});
  uint64_t traffic = 0;
  for (uint32_t i = 0; i < program.tensors.size(); ++i) {
    const driver::TensorPlace& tensor = program.tensors[i];
    traffic += tensor.traffic();
    const auto found = in_sram.find(i);
    const bool hit = found != in_sram.end();
    const uint64_t start = hit ? found->second->offset : tensor.offset;
    const std::string user = tensor.user < program.layers.size()
                                 ? program.layers[tensor.user].type
                                 : "\\";
    table.Add({absl::StrCat(i + 1), user, tensor.name, tensor.data_type,
               Bracketed(tensor.shape), Bracketed(tensor.native_shape), "|",
               Address(start), Address(start + tensor.size),
               Address(tensor.size), "|",
               Address(hit ? found->second->hit : 0)});
  }
  return absl::StrCat(
      "Total allocated Internal SRAM Size: ", sram.used, ", Addr: [",
      Address(0), ", ", Address(sram.used), ")\n", table.ToString(""),
      "Total Weight Memory Size: ", model.weight_size, "\n",
      "Total Internal Memory Size: ", program.internal_size, "\n",
      "Predict Internal Memory RW Amount: ", traffic, "\n",
      "Predict Weight Memory RW Amount: ", model.weight_size, "\n",
      "Predict SRAM Hit RW Amount: ", sram.saved, "\n");
}

std::string ModelText(const driver::ModelInfo& model,
                      const driver::ProgramInfo& program,
                      const driver::SramPlan* sram,
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
  if (sram == nullptr) {
    absl::StrAppend(&text,
                    "No SRAM is used without RKNN_FLAG_ENABLE_SRAM; with it, "
                    "and all of it free:\n");
  }
  return text +
         SramTable(model, program, sram == nullptr ? program.sram : *sram);
}

}  // namespace rknnd::core
