// Reads what vendor programs pass to rknn_init and rknn_set_core_mask.

#include "daemon/core/context.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "absl/strings/str_cat.h"

namespace rknnd::core {
namespace {

constexpr uint32_t kPriorityBits = 0x3;
constexpr uint32_t kCollectPerf = 0x8;
constexpr uint32_t kInfoOnly = 0x100;
constexpr uint32_t kEnableSram = 0x800;
constexpr uint32_t kKeepInputCaches = 0x4000;
constexpr uint32_t kKeepOutputCaches = 0x8000;

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
    {kEnableSram, "RKNN_FLAG_ENABLE_SRAM", Support::kYes},
    {0x1000, "RKNN_FLAG_SHARE_SRAM", Support::kHint},
    {0x2000, "RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY", Support::kHint},
    {kKeepInputCaches, "RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE",
     Support::kHint},
    {kKeepOutputCaches, "RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE",
     Support::kHint},
    {0x10000, "RKNN_FLAG_MODEL_BUFFER_ZERO_COPY", Support::kNo},
}};

constexpr uint32_t kAllCoresMask = 0xffff;

// As programs write it.
std::string MaskName(uint32_t mask) {
  switch (mask) {
    case 0:
      return "RKNN_NPU_CORE_AUTO";
    case 1:
      return "RKNN_NPU_CORE_0";
    case 2:
      return "RKNN_NPU_CORE_1";
    case 3:
      return "RKNN_NPU_CORE_0_1";
    case 4:
      return "RKNN_NPU_CORE_2";
    case 7:
      return "RKNN_NPU_CORE_0_1_2";
    case kAllCoresMask:
      return "RKNN_NPU_CORE_ALL";
    default:
      return absl::StrCat("0x", absl::Hex(mask));
  }
}

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
  traits.sram = (flags & kEnableSram) != 0;
  traits.keep_input_caches = (flags & kKeepInputCaches) != 0;
  traits.keep_output_caches = (flags & kKeepOutputCaches) != 0;
  return traits;
}

absl::StatusOr<CoreChoice> ResolveCoreMask(uint32_t mask,
                                           const driver::DeviceInfo& device) {
  if (device.cores <= 1) {
    // Nothing was asked for, or nothing can come of it.
    if (mask == 0 || (device.limits & driver::kNoCoreMask) == 0) {
      return CoreChoice{1, false};
    }
    return absl::InvalidArgumentError(
        absl::StrCat("core mask ", MaskName(mask), ": ", device.soc,
                     " has one core and its runtime takes no core mask"));
  }
  const auto all = static_cast<uint32_t>(
      (uint64_t{1} << std::min<uint32_t>(device.cores, 32)) - 1);
  if (mask == 0) return CoreChoice{all, false};
  if (mask == kAllCoresMask) return CoreChoice{all, true};
  if (mask != 1 && mask != 2 && mask != 4 && mask != 3 && mask != 7) {
    return absl::InvalidArgumentError(
        absl::StrCat("core mask 0x", absl::Hex(mask), " is unknown"));
  }
  for (uint32_t core = 0; core < 3; ++core) {
    if ((mask >> core & 1) != 0 && core >= device.cores) {
      return absl::InvalidArgumentError(absl::StrCat(
          "core ", core, " of core mask ", MaskName(mask), " does not exist: ",
          device.soc, " has cores 0 to ", device.cores - 1));
    }
  }
  return CoreChoice{mask, !std::has_single_bit(mask)};
}

}  // namespace rknnd::core
