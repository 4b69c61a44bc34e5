// Reads what vendor programs pass to rknn_init and rknn_set_core_mask.

#include "daemon/core/context.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rknnd::core {
namespace {

constexpr uint32_t kPriorityBits = 0x3;
constexpr uint32_t kCollectPerf = 0x8;
constexpr uint32_t kInfoOnly = 0x100;

enum class Support {
  kYes,
  kHint,  // may be ignored: the answers are the same
  kNo,    // the program relies on it
};

struct Flag {
  uint32_t bit;
  const char* name;
  Support support;
};

// Bits 2 to 16 of rknn_init's flags, release 2.3.2.
constexpr std::array<Flag, 15> kFlags = {{
    // As on the vendor's NPUs, where it has no effect; the client warns.
    {0x4, "RKNN_FLAG_ASYNC_MASK", Support::kHint},
    {kCollectPerf, "RKNN_FLAG_COLLECT_PERF_MASK", Support::kYes},
    {0x10, "RKNN_FLAG_MEM_ALLOC_OUTSIDE", Support::kNo},
    {0x20, "RKNN_FLAG_SHARE_WEIGHT_MEM", Support::kNo},
    {0x40, "RKNN_FLAG_FENCE_IN_OUTSIDE", Support::kNo},
    {0x80, "RKNN_FLAG_FENCE_OUT_OUTSIDE", Support::kNo},
    {kInfoOnly, "RKNN_FLAG_COLLECT_MODEL_INFO_ONLY", Support::kYes},
    {0x200, "RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE", Support::kNo},
    {0x400, "RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU", Support::kHint},
    {0x800, "RKNN_FLAG_ENABLE_SRAM", Support::kHint},
    {0x1000, "RKNN_FLAG_SHARE_SRAM", Support::kHint},
    {0x2000, "RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY", Support::kHint},
    {0x4000, "RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE", Support::kHint},
    {0x8000, "RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE", Support::kHint},
    {0x10000, "RKNN_FLAG_MODEL_BUFFER_ZERO_COPY", Support::kNo},
}};

constexpr uint32_t kAllCoresMask = 0xffff;

}  // namespace

absl::StatusOr<ContextTraits> ParseFlags(uint32_t flags) {
  const uint32_t priority = flags & kPriorityBits;
  if (priority > static_cast<uint32_t>(Priority::kLow)) {
    return absl::InvalidArgumentError(
        "flags name two priorities: RKNN_FLAG_PRIOR_MEDIUM and "
        "RKNN_FLAG_PRIOR_LOW");
  }
  uint32_t unknown = flags & ~kPriorityBits;
  for (const Flag& flag : kFlags) {
    unknown &= ~flag.bit;
    if ((flags & flag.bit) != 0 && flag.support == Support::kNo) {
      return absl::UnimplementedError(
          absl::StrCat(flag.name,
                       " is not supported in this version of rknnd: initialise "
                       "the context without it"));
    }
  }
  if (unknown != 0) {
    return absl::InvalidArgumentError(absl::StrCat("flags 0x",
                                                   absl::Hex(unknown),
                                                   " of rknn_init are "
                                                   "unknown"));
  }
  ContextTraits traits;
  traits.priority = static_cast<Priority>(priority);
  traits.collect_perf = (flags & kCollectPerf) != 0;
  traits.info_only = (flags & kInfoOnly) != 0;
  return traits;
}

absl::StatusOr<uint32_t> ResolveCoreMask(uint32_t mask,
                                         const driver::DeviceInfo& device) {
  // One core: programs written for three run as they are.
  if (device.cores <= 1) return 1;
  const uint32_t all = static_cast<uint32_t>(
      (uint64_t{1} << std::min<uint32_t>(device.cores, 32)) - 1);
  switch (mask) {
    case 0:
      return all;
    case 1:
    case 2:
    case 4:
    case 3:
    case 7:
      for (uint32_t core = 0; core < 3; ++core) {
        if ((mask >> core & 1) != 0 && core >= device.cores) {
          return absl::InvalidArgumentError(absl::StrCat(
              "core ", core, " of core mask ", mask, " does not exist: ",
              device.soc, " has cores 0 to ", device.cores - 1));
        }
      }
      if (mask == 1 || mask == 2 || mask == 4) return mask;
      [[fallthrough]];
    case kAllCoresMask:
      return absl::UnimplementedError(absl::StrCat(
          "core mask 0x", absl::Hex(mask),
          " runs one job on several cores at "
          "once, which this version of rknnd does not support: use "
          "RKNN_NPU_CORE_AUTO and several contexts"));
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("core mask 0x", absl::Hex(mask), " is unknown"));
  }
}

std::string PerfText(const RunContext& context) {
  if (!context.traits().collect_perf) {
    return "No layer times were recorded: initialise the context with "
           "RKNN_FLAG_COLLECT_PERF_MASK.\n";
  }
  const std::vector<int64_t> times = context.LastTimes();
  if (times.empty()) return "No layer times were recorded: no run yet.\n";
  const auto& layers = context.model()->program().layers;

  size_t type_width = 8;
  size_t input_width = 12;
  size_t output_width = 12;
  for (const auto& layer : layers) {
    type_width = std::max(type_width, layer.type.size());
    input_width = std::max(input_width, layer.input_shape.size());
    output_width = std::max(output_width, layer.output_shape.size());
  }
  std::string text;
  const auto row = [&](const std::string& id, const std::string& type,
                       const std::string& input, const std::string& output,
                       const std::string& time, const std::string& name) {
    absl::StrAppendFormat(&text, "%-5s %-*s %-*s %-*s %10s  %s\n", id,
                          static_cast<int>(type_width), type,
                          static_cast<int>(input_width), input,
                          static_cast<int>(output_width), output, time, name);
  };
  row("ID", "OpType", "InputShape", "OutputShape", "Time(us)", "FullName");
  int64_t total = 0;
  for (size_t i = 0; i < layers.size() && i < times.size(); ++i) {
    total += times[i];
    row(absl::StrCat(i + 1), layers[i].type, layers[i].input_shape,
        layers[i].output_shape, absl::StrCat((times[i] + 500) / 1000),
        layers[i].name);
  }
  absl::StrAppend(
      &text, "Total Operator Elapsed Time(us): ", (total + 500) / 1000, "\n");
  return text;
}

}  // namespace rknnd::core
