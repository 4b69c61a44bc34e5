// Which cores a context's jobs may run on, and that their arenas have room for
// them there. Called on the loop with a client's numbers.

#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/sessions/session_impl.h"

namespace rknnd::core {
namespace {

constexpr uint32_t kLogDebug = 4;  // RKNN_LOG_LEVEL's

}  // namespace

void SessionImpl::SetCoreMask(uint32_t context, uint32_t core_mask,
                              StatusCallback done) {
  const auto asked = CheckCoreMask(context, core_mask);
  if (!asked.ok()) return done(asked.status());
  if (absl::Status mine = CheckMine(*asked, core_mask); !mine.ok()) {
    return done(mine);
  }
  const uint32_t mask = TakeMask(core_mask);
  const auto cores = CheckCoreMask(context, mask);
  if (!cores.ok()) return done(cores.status());
  MoveTo(context, mask, *cores, std::move(done));
}

uint32_t SessionImpl::MyCores() const {
  const driver::DeviceInfo& device = parts_->device->info();
  const auto all = static_cast<uint32_t>((uint64_t{1} << device.cores) - 1);
  const uint32_t mine = share_->policy().cores;
  return mine == 0 ? all : mine & all;
}

absl::Status SessionImpl::CheckMine(const CoreChoice& cores,
                                    uint32_t core_mask) const {
  const uint32_t beyond = cores.cores & ~MyCores();
  // Of any one core, one of mine is chosen.
  if (beyond == 0 || core_mask == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "core mask 0x", absl::Hex(core_mask), " takes ", NameCores(beyond), ", ",
      tenant_->name(), " may have ", NameCores(MyCores()),
      " ('cores' of its limits): use RKNN_NPU_CORE_AUTO or one of those, or "
      "change the limit"));
}

uint32_t SessionImpl::TakeMask(uint32_t core_mask) {
  const uint32_t mine = MyCores();
  if (core_mask != 0 || parts_->device->info().cores <= 1) return core_mask;
  // "Any core" is any of all of them to the scheduler: each context gets one of
  // those that there are for it, in turn.
  const auto any = ResolveCoreMask(0, parts_->device->info());
  if (any.ok() && (any->cores & ~mine) == 0) return core_mask;
  return tenant_->TakeCoreInTurn(mine);
}

void SessionImpl::MoveTo(uint32_t context, uint32_t core_mask,
                         const CoreChoice& cores, StatusCallback done) {
  Context& changed = contexts_.at(context);
  const LoadedModel& model = *changed.run->model();
  const uint64_t change = changed.core_mask_change = next_token_++;
  ArenaNeed need;
  if (!parts_->vendor_sharing && NeedsArena(changed.run->traits(), model)) {
    need = {ArenasOf(cores, model), model.internal_size()};
  }
  parts_->runner->arenas().Fit(
      need, [weak = weak_from_this(), context, core_mask, cores, need, change,
             done = std::move(done)](const absl::Status& fits) {
        const auto self = weak.lock();
        if (self == nullptr || self->ended_) return;
        const auto found = self->contexts_.find(context);
        const bool wanted = found != self->contexts_.end() &&
                            found->second.core_mask_change == change;
        if (fits.ok() && wanted) {
          found->second.use.Reach(need.cores);
          self->ChangeCoreMask(found->second, core_mask, cores);
        } else if (!wanted) {
          // Destroyed, or changed again since: as if that came after this.
          self->parts_->runner->arenas().Refit();
        }
        done(fits);
      });
}

absl::StatusOr<CoreChoice> SessionImpl::CheckCoreMask(
    uint32_t context, uint32_t core_mask) const {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  if (!contexts_.contains(context)) return NoContext(context);
  const driver::DeviceInfo& device = parts_->device->info();
  auto cores = ResolveCoreMask(core_mask, device);
  if (cores.ok() && (device.limits & driver::kNoCoreMask) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("core mask ", core_mask, ": the runtime of ", device.soc,
                     ", which has one core, takes none"));
  }
  return cores;
}

void SessionImpl::ChangeCoreMask(Context& context, uint32_t core_mask,
                                 const CoreChoice& cores) {
  const driver::DeviceInfo& device = parts_->device->info();
  if (device.cores <= 1 && core_mask > 1 && log_ != nullptr) {
    log_->Log(kLogDebug, absl::StrCat("core mask ", core_mask, " ignored, ",
                                      device.soc, " has one core"));
  }
  context.core_mask = core_mask;
  context.sram.Move(ArenasOf(cores, *context.run->model()));
  gate_->SetCores(context.run->traits().number, cores);
}

void SessionImpl::WidenLater(const ContextRequest& request,
                             const CoreChoice& cores) {
  if (ended_ || !contexts_.contains(request.number)) return;
  MoveTo(request.number, request.core_mask, cores,
         [weak = weak_from_this(),
          number = request.number](const absl::Status& moved) {
           const auto self = weak.lock();
           if (moved.ok() || self == nullptr ||
               !self->contexts_.contains(number)) {
             return;
           }
           self->Warn(absl::StrCat(
               "context ", number,
               " runs on one core only: ", std::string(moved.message())));
         });
}

}  // namespace rknnd::core
