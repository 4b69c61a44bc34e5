// rknn_query. Called by programs, on any of their threads. A struct of an older
// rknn_api.h is filled as far as it goes; one that is too small is refused and
// nothing of it written.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "client/include/rknn_api.h"
#include "client/rknnrt/call.h"
#include "client/rknnrt/context/context.h"
#include "client/rknnrt/copy_fitting.h"
#include "client/rknnrt/tensor.h"
#include "client/rknnrt/version.h"
#include "proto/wire/codec.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Expected;

Outcome TooSmall(uint32_t size, size_t needed) {
  return Failure{{Code::kInvalidArgument,
                  "size is " + std::to_string(size) + ", the struct has " +
                      std::to_string(needed) +
                      " bytes: the program was built with another rknn_api.h"},
                 Subject::kNone};
}

Outcome FillTensor(const std::vector<TensorAttr>& tensors,
                   rknn_tensor_attr* attr) {
  const uint32_t index = attr->index;
  if (index >= tensors.size()) {
    return Failure{
        {Code::kOutOfRange, "index " + std::to_string(index) +
                                " does not exist: the model has " +
                                std::to_string(tensors.size()) + " of these"},
        Subject::kNone};
  }
  FillAttr(tensors[index], index, attr);
  return {};
}

// The shapes of one input over all rows that the model lists.
Outcome FillRange(const ModelDescription& model, rknn_input_range* range) {
  const uint32_t index = range->index;
  const size_t inputs = model.inputs.size();
  if (index >= inputs) {
    return Failure{{Code::kOutOfRange, "input index " + std::to_string(index) +
                                           " does not exist: the model has " +
                                           std::to_string(inputs)},
                   Subject::kNone};
  }
  const TensorAttr& input = model.inputs[index];
  *range = {};
  range->index = index;
  range->fmt = static_cast<rknn_tensor_format>(input.layout);
  range->n_dims =
      static_cast<uint32_t>(std::min<size_t>(input.dims_count, RKNN_MAX_DIMS));
  wire::SetText(range->name, input.name);
  const size_t rows = std::min<size_t>(model.shapes.size() / inputs,
                                       RKNN_MAX_DYNAMIC_SHAPE_NUM);
  range->shape_number = static_cast<uint32_t>(rows);
  for (size_t row = 0; row < rows; ++row) {
    const InputShape& shape = model.shapes[row * inputs + index];
    std::copy_n(shape.dims, std::min<size_t>(shape.dims_count, RKNN_MAX_DIMS),
                range->dyn_range[row]);
  }
  return {};
}

uint32_t AtLeastOne(uint64_t value) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(value, 1, std::numeric_limits<uint32_t>::max()));
}

Outcome FillMemSize(Context& context, rknn_mem_size* size) {
  Expected<MemorySize> memory =
      context.target().GetMemorySize(context.number());
  if (!memory.ok()) {
    return Failure{std::move(memory).error(), Subject::kContext};
  }
  constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();
  *size = {};
  // 0 would make programs ask for memory of 0 bytes.
  size->total_weight_size = AtLeastOne(memory->weight);
  size->total_internal_size = AtLeastOne(memory->internal);
  size->total_dma_allocated_size = memory->dma_total;
  size->total_sram_size =
      static_cast<uint32_t>(std::min(memory->sram_total, kMax));
  size->free_sram_size =
      static_cast<uint32_t>(std::min(memory->sram_free, kMax));
  return {};
}

// The memory of the model, where the program brought it. Else what the weights
// take, which no program maps.
Outcome FillModelMemory(const Context& context, rknn_tensor_mem* memory) {
  if (const auto brought = context.ModelMemory(); brought.has_value()) {
    *memory = *brought;
    return {};
  }
  *memory = {};
  memory->fd = -1;
  memory->size = AtLeastOne(context.model().weight_size);
  return {};
}

Outcome FillVersions(const Context& context, rknn_sdk_version* version) {
  const TargetInfo info = context.target().info();
  wire::SetText(version->api_version,
                info.api_version.empty() ? kApiVersion : info.api_version);
  wire::SetText(version->drv_version, info.driver_version);
  return {};
}

Outcome FillPerfDetail(Context& context, rknn_perf_detail* detail) {
  const std::span<char> text = context.PerfText();
  detail->perf_data = text.data();
  detail->data_len = text.size();
  return {};
}

Outcome FillPerfRun(Context& context, rknn_perf_run* run) {
  constexpr uint64_t kNanosecondsPerMicrosecond = 1000;
  run->run_duration = static_cast<int64_t>(context.last_run().report.run_ns /
                                           kNanosecondsPerMicrosecond);
  return {};
}

// The size that a struct had in older public headers, as far as it grew; 0: it
// never did.
template <class Struct>
inline constexpr uint32_t kOlderSize = 0;
template <>
inline constexpr uint32_t kOlderSize<rknn_tensor_attr> =
    offsetof(rknn_tensor_attr, h_stride);
template <>
inline constexpr uint32_t kOlderSize<rknn_mem_size> =
    offsetof(rknn_mem_size, total_dma_allocated_size);

// Checks the struct's size before fill(struct) sees it.
template <class Struct, class Fill>
Outcome Into(void* info, uint32_t size, Fill fill) {
  if (size >= sizeof(Struct)) return fill(static_cast<Struct*>(info));
  if (size != kOlderSize<Struct>) return TooSmall(size, sizeof(Struct));
  auto known = ReadFitting<Struct>(info, size);
  Outcome filled = fill(&known);
  if (filled.ok()) CopyFitting(known, info, size);
  return filled;
}

Outcome Query(Context& context, uint32_t command, void* info, uint32_t size) {
  const ModelDescription& model = context.model();
  const auto tensor = [&](const std::vector<TensorAttr>& tensors) {
    return Into<rknn_tensor_attr>(info, size, [&](rknn_tensor_attr* attr) {
      context.set_attr_size(std::min<uint32_t>(size, sizeof *attr));
      return FillTensor(tensors, attr);
    });
  };
  switch (command) {
    case RKNN_QUERY_IN_OUT_NUM:
      return Into<rknn_input_output_num>(
          info, size, [&](rknn_input_output_num* numbers) -> Outcome {
            numbers->n_input = static_cast<uint32_t>(model.inputs.size());
            numbers->n_output = static_cast<uint32_t>(model.outputs.size());
            return {};
          });
    case RKNN_QUERY_INPUT_ATTR:
      return tensor(model.inputs);
    case RKNN_QUERY_OUTPUT_ATTR:
      return tensor(model.outputs);
    case RKNN_QUERY_NATIVE_INPUT_ATTR:
      return tensor(model.native_inputs);
    case RKNN_QUERY_NATIVE_OUTPUT_ATTR:
      return tensor(model.native_outputs);
    case RKNN_QUERY_CURRENT_INPUT_ATTR:
    case RKNN_QUERY_CURRENT_OUTPUT_ATTR:
    case RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR:
    case RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR: {
      // A model of one fixed shape is always at its current one.
      const auto chosen = context.Chosen();
      if (chosen == nullptr) return context.NoShape();
      if (command == RKNN_QUERY_CURRENT_INPUT_ATTR) {
        return tensor(chosen->inputs);
      }
      if (command == RKNN_QUERY_CURRENT_OUTPUT_ATTR) {
        return tensor(chosen->outputs);
      }
      return tensor(command == RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR
                        ? chosen->native_inputs
                        : chosen->native_outputs);
    }
    case RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR:
      return tensor(model.native_nhwc_inputs);
    case RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR:
      return tensor(model.native_nhwc_outputs);
    case RKNN_QUERY_PERF_DETAIL:
      return Into<rknn_perf_detail>(info, size, [&](rknn_perf_detail* detail) {
        return FillPerfDetail(context, detail);
      });
    case RKNN_QUERY_PERF_RUN:
      return Into<rknn_perf_run>(info, size, [&](rknn_perf_run* run) {
        return FillPerfRun(context, run);
      });
    case RKNN_QUERY_SDK_VERSION:
      return Into<rknn_sdk_version>(info, size, [&](rknn_sdk_version* version) {
        return FillVersions(context, version);
      });
    case RKNN_QUERY_MEM_SIZE:
      return Into<rknn_mem_size>(info, size, [&](rknn_mem_size* memory) {
        return FillMemSize(context, memory);
      });
    case RKNN_QUERY_CUSTOM_STRING:
      return Into<rknn_custom_string>(
          info, size, [&](rknn_custom_string* text) -> Outcome {
            wire::SetText(text->string, model.custom_string);
            return {};
          });
    case RKNN_QUERY_INPUT_DYNAMIC_RANGE:
      if (model.shapes.empty()) {
        return Failure{{Code::kInvalidArgument,
                        "the model has one fixed shape, not a list of them: no "
                        "error where a program asks to find out; option "
                        "'dynamic_input' lists shapes (docs/model-options.md)"},
                       Subject::kModel};
      }
      return Into<rknn_input_range>(info, size, [&](rknn_input_range* range) {
        return FillRange(model, range);
      });
    case RKNN_QUERY_DEVICE_MEM_INFO:
      return Into<rknn_tensor_mem>(info, size, [&](rknn_tensor_mem* memory) {
        return FillModelMemory(context, memory);
      });
    default:
      break;
  }
  return Failure{
      {Code::kInvalidArgument, "unknown command " + std::to_string(command)},
      Subject::kNone};
}

}  // namespace
}  // namespace rknnd::client

extern "C" RKNND_API int rknn_query(rknn_context context, rknn_query_cmd cmd,
                                    void* info, uint32_t size) {
  using rknnd::client::Context;
  using rknnd::client::Failure;
  using rknnd::client::Outcome;
  static constexpr char kName[] = "rknn_query";
  const uint32_t command = rknnd::client::RawNumber(cmd);
  // Failing is how programs learn that a model's shape is fixed: told to those
  // who want warnings.
  std::optional<int> answer;
  const int result =
      rknnd::client::CallOn(kName, context, [&](Context& found) -> Outcome {
        if (info == nullptr) {
          return rknnd::client::WrongParameter("info is NULL");
        }
        Outcome answered = rknnd::client::Query(found, command, info, size);
        if (!answered.ok() && command == RKNN_QUERY_INPUT_DYNAMIC_RANGE) {
          answer = rknnd::client::Report(kName, answered.failure(),
                                         rknnd::client::LogLevel::kWarning);
          return {};
        }
        return answered;
      });
  return answer.value_or(result);
}
