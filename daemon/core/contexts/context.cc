// Reads what vendor programs pass to rknn_init and rknn_set_core_mask.

#include "daemon/core/contexts/context.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::core {
namespace {

constexpr uint32_t kPriorityBits = 0x3;
constexpr uint32_t kCollectPerf = 0x8;
constexpr uint32_t kAllOutside = 0x10;
constexpr uint32_t kInfoOnly = 0x100;
constexpr uint32_t kInternalOutside = 0x200;
constexpr uint32_t kEnableSram = 0x800;
constexpr uint32_t kShareSram = 0x1000;
constexpr uint32_t kKeepInputCaches = 0x4000;
constexpr uint32_t kKeepOutputCaches = 0x8000;

// Bits 2 to 16: all of release 2.3.2. Those without a name above are hints, or
// the client library's business: when a call returns, the fences of a run,
// where a model's bytes come from.
constexpr uint32_t kKnownFlags = 0x1fffc;

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

// A model of which only the description is left. Thread: any.
class Description final : public driver::Model {
 public:
  explicit Description(driver::ModelInfo info) : info_(std::move(info)) {}
  [[nodiscard]] const driver::ModelInfo& info() const override { return info_; }
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t /*program*/, driver::Direction /*direction*/, uint32_t /*index*/,
      const driver::TensorFormat& /*format*/) const override {
    return absl::FailedPreconditionError(
        "the context was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY");
  }
  [[nodiscard]] uint64_t held_weights() const override { return 0; }

 private:
  const driver::ModelInfo info_;
};

}  // namespace

std::shared_ptr<const LoadedModel> DescriptionOf(const LoadedModel& model) {
  if (auto known = model.description.lock()) return known;
  auto described = std::make_shared<LoadedModel>();
  described->id = model.id;
  described->name = model.name;
  described->model = std::make_unique<Description>(model.info());
  model.description = described;
  return described;
}

absl::StatusOr<ContextTraits> ParseFlags(uint32_t flags) {
  const uint32_t priority = flags & kPriorityBits;
  if (priority > static_cast<uint32_t>(Priority::kLow)) {
    return absl::InvalidArgumentError(
        "flags name two priorities: RKNN_FLAG_PRIOR_MEDIUM and "
        "RKNN_FLAG_PRIOR_LOW");
  }
  const uint32_t unknown = flags & ~(kPriorityBits | kKnownFlags);
  if (unknown != 0) {
    return absl::InvalidArgumentError(absl::StrCat("flags 0x",
                                                   absl::Hex(unknown),
                                                   " of rknn_init are "
                                                   "unknown"));
  }
  if ((flags & kShareSram) != 0 && (flags & kEnableSram) == 0) {
    return absl::InvalidArgumentError(
        "RKNN_FLAG_SHARE_SRAM shares the SRAM that RKNN_FLAG_ENABLE_SRAM asks "
        "for: pass both");
  }
  ContextTraits traits;
  traits.priority = static_cast<Priority>(priority);
  traits.collect_perf = (flags & kCollectPerf) != 0;
  traits.info_only = (flags & kInfoOnly) != 0;
  traits.sram = (flags & kEnableSram) != 0;
  traits.weights_outside = (flags & kAllOutside) != 0;
  traits.internal_outside = (flags & (kAllOutside | kInternalOutside)) != 0;
  traits.share_sram = (flags & kShareSram) != 0;
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

uint32_t ArenasOf(const CoreChoice& choice, const LoadedModel& model) {
  const auto& rows = model.info().programs;
  if (!choice.gang ||
      std::any_of(rows.begin(), rows.end(),
                  [](const auto& row) { return row.batch > 1; })) {
    return choice.cores;
  }
  return uint32_t{1} << std::countr_zero(choice.cores);
}

bool NeedsArena(const ContextTraits& traits, const LoadedModel& model) {
  return !traits.info_only && !traits.internal_outside &&
         model.internal_size() != 0;
}

}  // namespace rknnd::core
