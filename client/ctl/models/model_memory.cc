#include "client/ctl/models/model_memory.h"

#include <filesystem>
#include <system_error>

#include "client/ctl/models/network.h"
#include "client/ctl/text/table.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// The API tells of 1 byte where there is none: programs allocate what it says.
uint64_t Exact(uint32_t bytes) { return bytes == 1 ? 0 : bytes; }

}  // namespace

Output ModelMemoryOutput(const ModelMemory& memory) {
  const uint64_t total = memory.weight + memory.internal + memory.other;
  Output output;
  output.json = {{"weight", memory.weight},
                 {"internal", memory.internal},
                 {"other", memory.other},
                 {"total", total},
                 {"model_size", memory.model_size}};
  output.text =
      "Memory Profile Info Dump\n"
      "NPU model memory detail(bytes):\n"
      "    Weight Memory: " +
      FormatBytes(memory.weight) +
      "\n    Internal Tensor Memory: " + FormatBytes(memory.internal) +
      "\n    Other Memory: " + FormatBytes(memory.other) +
      "\n    Total Memory: " + FormatBytes(total) +
      "\n\nINFO: When evaluating memory usage, we need consider the size of "
      "model, current model size is: " +
      FormatBytes(memory.model_size) + "\n";
  return output;
}

Expected<Output> MemoryOfModel(const std::string& model) {
  // Nothing runs: it costs no internal memory to ask.
  Expected<std::unique_ptr<Network>> network =
      Network::Load(model, RKNN_FLAG_COLLECT_MODEL_INFO_ONLY);
  if (!network) return std::move(network).error();
  const Expected<rknn_mem_size> size = (*network)->MemorySize();
  if (!size) return size.error();
  ModelMemory memory;
  memory.weight = Exact(size->total_weight_size);
  memory.internal = Exact(size->total_internal_size);
  for (const auto* tensors : {&(*network)->inputs(), &(*network)->outputs()}) {
    for (const rknn_tensor_attr& tensor : *tensors) {
      memory.other += tensor.size_with_stride;
    }
  }
  std::error_code error;
  memory.model_size = std::filesystem::file_size(model, error);
  if (error) {
    return Error{Code::kUnknown,
                 "cannot look at '" + model + "': " + error.message()};
  }
  return ModelMemoryOutput(memory);
}

}  // namespace rknnd::client
