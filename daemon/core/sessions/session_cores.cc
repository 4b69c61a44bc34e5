// Which cores a context's jobs may run on, and that their arenas have room for
// them there. Called on the loop with a client's numbers.

#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/sessions/session.h"

namespace rknnd::core {
namespace {

constexpr uint32_t kLogDebug = 4;  // RKNN_LOG_LEVEL's

}  // namespace

void Session::SetCoreMask(uint32_t context, uint32_t core_mask,
                          StatusCallback done) {
  if (auto open = OpenContext(context); !open.ok()) return done(open.status());
  const driver::DeviceInfo& device = parts_->device->info();
  const auto asked = ResolveCoreMask(core_mask, device);
  if (!asked.ok()) return done(asked.status());
  if ((device.limits & driver::kNoCoreMask) != 0) {
    return done(absl::InvalidArgumentError(
        absl::StrCat("core mask ", core_mask, ": the runtime of ", device.soc,
                     ", which has one core, takes none")));
  }
  if (absl::Status mine = rights_.Check(*asked, core_mask); !mine.ok()) {
    return done(mine);
  }
  const uint32_t mask = rights_.TakeMask(core_mask);
  const auto cores = ResolveCoreMask(mask, device);
  if (!cores.ok()) return done(cores.status());
  MoveTo(context, mask, *cores, std::move(done));
}

void Session::MoveTo(uint32_t context, uint32_t core_mask,
                     const CoreChoice& cores, StatusCallback done) {
  Context& changed = *contexts_.Find(context);
  const LoadedModel& model = *changed.run->model();
  const uint64_t change = changed.core_mask_change = contexts_.NewToken();
  ArenaNeed need;
  if (!parts_->vendor_sharing && NeedsArena(changed.run->traits(), model)) {
    need = {ArenasOf(cores, model), model.internal_size()};
  }
  parts_->runner->arenas().Fit(
      need, [weak = weak_from_this(), context, core_mask, cores, need, change,
             done = std::move(done)](const absl::Status& fits) {
        const auto self = weak.lock();
        if (self == nullptr || self->ended_) return;
        Context* const found = self->contexts_.Find(context);
        const bool wanted =
            found != nullptr && found->core_mask_change == change;
        if (fits.ok() && wanted) {
          const driver::DeviceInfo& device = self->parts_->device->info();
          if (device.cores <= 1 && core_mask > 1 && self->log_ != nullptr) {
            self->log_->Log(kLogDebug,
                            absl::StrCat("core mask ", core_mask, " ignored, ",
                                         device.soc, " has one core"));
          }
          found->use.Reach(need.cores);
          found->core_mask = core_mask;
          found->sram.Move(ArenasOf(cores, *found->run->model()));
          self->gate_->SetCores(context, cores);
        } else if (!wanted) {
          // Destroyed, or changed again since: as if that came after this.
          self->parts_->runner->arenas().Refit();
        }
        done(fits);
      });
}

void Session::WidenLater(const ContextRequest& request,
                         const CoreChoice& cores) {
  if (ended_ || !contexts_.IsThere(request.number)) return;
  MoveTo(
      request.number, request.core_mask, cores,
      [weak = weak_from_this(),
       number = request.number](const absl::Status& moved) {
        const auto self = weak.lock();
        if (moved.ok() || self == nullptr || !self->contexts_.IsThere(number)) {
          return;
        }
        self->Warn(absl::StrCat("context ", number, " runs on one core only: ",
                                std::string(moved.message())));
      });
}

}  // namespace rknnd::core
