// Arenas grow when a model comes and shrink when one leaves. Sizes come from
// models the device has compiled.

#include "daemon/core/memory/arenas.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/posix/hot_path.h"
#include "base/status/status.h"

namespace rknnd::core {
namespace {

// Where there is an arena of `has` bytes. It stays until the next one is there:
// jobs go on.
std::string WhereOf(uint32_t core, uint64_t has) {
  if (has == 0) return absl::StrCat("core ", core);
  return absl::StrCat("core ", core, ", beside the ", has,
                      " bytes it has until then");
}

}  // namespace

Arenas::Arenas(const Paging& paging, std::shared_ptr<Account> account,
               std::shared_ptr<Sram> sram)
    : paging_(paging),
      account_(std::move(account)),
      sram_(std::move(sram)),
      cores_(paging.device->info().cores),
      refusals_(cores_),
      arenas_(cores_) {}

void Arenas::Fit(const ArenaNeed& need, StatusCallback done) {
  if (Has(need)) return done(absl::OkStatus());
  waiters_.push_back({need, std::move(done)});
  Refit();
}

void Arenas::Refit() {
  // What was refused may be possible by now.
  refusals_.assign(cores_, {});
  Step();
}

void Arenas::Stop() {
  waiters_.clear();
  needs_ = nullptr;
  Refit();
}

absl::Status Arenas::CheckRoom(const ArenaNeed& need, Ledger& ledger,
                               const std::string& payer) const {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto whole = [page](uint64_t size) {
    return (size + page - 1) / page * page;
  };
  const uint64_t pages = whole(need.size);
  uint64_t growth = 0;
  uint64_t replaced = 0;  // while the last one is made
  uint64_t leaving = 0;   // charged, and given back before
  for (uint32_t core = 0; core < cores_; ++core) {
    const std::shared_ptr<Arena> arena = Get(core);
    uint64_t has = arena == nullptr ? 0 : whole(arena->size());
    // Of one that is being made and the one before it the larger will stay.
    if (making_.has_value() && making_->core == core) {
      const uint64_t coming = whole(making_->size);
      leaving = std::min(has, coming);
      has = std::max(has, coming);
    }
    if ((need.cores >> core & 1) == 0 || has >= pages) continue;
    replaced = has;
    growth += pages - replaced;
  }
  if (growth == 0) return absl::OkStatus();
  // Given back at once: each arena is charged when it is made.
  const uint64_t most = growth + replaced;
  RKNND_RETURN_IF_ERROR(
      base::Annotate(ledger.CheckKept(payer, 0, growth),
                     absl::StrCat("internal memory of ", need.size, " bytes")));
  const auto charge = account_->TryCharge(MemoryKind::kInternal,
                                          most - std::min(most, leaving));
  if (charge.ok()) return absl::OkStatus();
  std::string what = absl::StrCat("internal memory of ", need.size, " bytes");
  if (replaced > 0) {
    absl::StrAppend(&what, " (beside the ", replaced,
                    " bytes that a core has until then)");
  }
  return base::Annotate(charge.status(), what);
}

uint64_t Arenas::SizeOf(uint32_t core) const {
  const std::shared_ptr<Arena> arena = Get(core);
  return arena == nullptr ? 0 : arena->size();
}

bool Arenas::Has(const ArenaNeed& need) const {
  for (uint32_t core = 0; core < cores_; ++core) {
    if ((need.cores >> core & 1) != 0 && SizeOf(core) < need.size) return false;
  }
  return true;
}

uint64_t Arenas::NeedOf(uint32_t core) const {
  const std::vector<uint64_t> needs =
      needs_ == nullptr ? std::vector<uint64_t>() : needs_();
  return core < needs.size() ? needs[core] : 0;
}

uint64_t Arenas::MostWaitedFor(uint32_t core) const {
  uint64_t most = 0;
  for (const Waiter& waiter : waiters_) {
    if ((waiter.need.cores >> core & 1) == 0) continue;
    most = std::max(most, waiter.need.size);
  }
  return most;
}

uint64_t Arenas::Wanted(uint32_t core,
                        const std::vector<uint64_t>& needs) const {
  return std::max(core < needs.size() ? needs[core] : 0, MostWaitedFor(core));
}

std::optional<uint64_t> Arenas::NextSize(
    uint32_t core, const std::vector<uint64_t>& needs) const {
  const uint64_t has = SizeOf(core);
  const uint64_t wanted = Wanted(core, needs);
  const Refusals& refused = refusals_[core];
  if (wanted == has) return std::nullopt;
  if (wanted < has) {
    if (wanted == refused.shrinkage) return std::nullopt;
    return wanted;
  }
  if (wanted < refused.growth) return wanted;
  // In vain for the largest; perhaps not for who waits.
  const uint64_t waited = MostWaitedFor(core);
  if (waited > has && waited < refused.growth) return waited;
  return std::nullopt;
}

void Arenas::Step() {
  // Whoever is told here may ask for the next thing.
  step_again_ = true;
  if (stepping_) return;
  stepping_ = true;
  while (step_again_) {
    step_again_ = false;
    StepOnce();
  }
  stepping_ = false;
}

void Arenas::StepOnce() {
  Answer([this](const ArenaNeed& need) { return Has(need); }, absl::OkStatus());
  const std::vector<uint64_t> needs =
      needs_ == nullptr ? std::vector<uint64_t>() : needs_();
  for (uint32_t core = 0; core < cores_; ++core) {
    const std::optional<uint64_t> size = NextSize(core, needs);
    if (!size.has_value()) continue;
    if (*size == 0) {
      Install(core, nullptr);
    } else if (!making_.has_value()) {
      Begin(core, *size);
    }
  }
}

void Arenas::Begin(uint32_t core, uint64_t size) {
  making_ = {core, size};
  Arena::Make(paging_, *account_, size,
              [weak = weak_from_this(), core,
               size](absl::StatusOr<std::shared_ptr<Arena>> made) {
                const auto self = weak.lock();
                if (self != nullptr) self->OnMade(core, size, std::move(made));
              });
}

void Arenas::OnMade(uint32_t core, uint64_t size,
                    absl::StatusOr<std::shared_ptr<Arena>> made) {
  making_.reset();
  const uint64_t has = SizeOf(core);
  if (!made.ok()) {
    if (size < has) {
      refusals_[core].shrinkage = size;
    } else if (has > 0 && NeedOf(core) == 0) {
      // The last that needed the old one has gone, to make room perhaps: what
      // it takes may be what is lacking.
      Install(core, nullptr);
    } else {
      refusals_[core].growth = std::min(refusals_[core].growth, size);
      Answer(
          [core, size](const ArenaNeed& need) {
            return (need.cores >> core & 1) != 0 && need.size >= size;
          },
          base::Annotate(made.status(), WhereOf(core, has)));
    }
  } else {
    // The needs may have changed meanwhile: what is too small for them now must
    // not take the place of what is large enough.
    const uint64_t wanted = std::max(NeedOf(core), MostWaitedFor(core));
    if (wanted != 0 && (size >= wanted || size > has)) {
      Install(core, *std::move(made));
    }
  }
  Step();
}

void Arenas::Install(uint32_t core, std::shared_ptr<Arena> arena) {
  if (sram_ != nullptr) {
    sram_->BackCore(core, arena == nullptr ? 0 : arena->sram());
  }
  base::MutexLock lock(mutex_);
  arenas_[core].swap(arena);
  // The old one goes with `arena`, after the lock.
}

template <class Predicate>
void Arenas::Answer(const Predicate& picks, const absl::Status& status) {
  std::vector<Waiter> picked;
  for (Waiter& waiter : waiters_) {
    if (!picks(waiter.need)) continue;
    picked.push_back({waiter.need, std::exchange(waiter.done, nullptr)});
  }
  std::erase_if(waiters_,
                [](const Waiter& waiter) { return waiter.done == nullptr; });
  for (const Waiter& waiter : picked) waiter.done(status);
}

RKNND_HOT_PATH std::shared_ptr<Arena> Arenas::Get(uint32_t core) const {
  base::MutexLock lock(mutex_);
  return arenas_[core];
}

}  // namespace rknnd::core
