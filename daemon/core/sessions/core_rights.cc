// A share's cores, which its limits name.

#include "daemon/core/sessions/core_rights.h"

#include "absl/strings/str_cat.h"
#include "daemon/core/contexts/context.h"
#include "daemon/core/scheduling/admission.h"

namespace rknnd::core {

uint32_t CoreRights::cores() const {
  const uint32_t all = AllCores(device_.cores);
  const uint32_t mine = share_->policy().cores;
  return mine == 0 ? all : mine & all;
}

absl::Status CoreRights::Check(const CoreChoice& cores,
                               uint32_t core_mask) const {
  const uint32_t beyond = cores.cores & ~this->cores();
  // Of any one core, one of mine is chosen.
  if (beyond == 0 || core_mask == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "core mask 0x", absl::Hex(core_mask), " takes ", NameCores(beyond), ", ",
      tenant_->name(), " may have ", NameCores(this->cores()),
      " ('cores' of its limits): use RKNN_NPU_CORE_AUTO or one of those, or "
      "change the limit"));
}

uint32_t CoreRights::TakeMask(uint32_t core_mask) const {
  const uint32_t mine = cores();
  if (core_mask != 0 || device_.cores <= 1) return core_mask;
  // "Any core" is any of all of them to the scheduler: each context gets one of
  // those that there are for it, in turn.
  const auto any = ResolveCoreMask(0, device_);
  if (any.ok() && (any->cores & ~mine) == 0) return core_mask;
  return tenant_->TakeCoreInTurn(mine);
}

}  // namespace rknnd::core
