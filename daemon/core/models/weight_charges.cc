#include "daemon/core/models/weight_charges.h"

#include <algorithm>
#include <utility>

#include "base/status/status.h"
#include "daemon/core/memory/paging.h"

namespace rknnd::core {

WeightCharges::WeightCharges(std::shared_ptr<Ledger> ledger,
                             base::Executor* pager,
                             std::shared_ptr<SpareMemory> spare)
    : ledger_(std::move(ledger)), pager_(pager), spare_(std::move(spare)) {}

absl::Status WeightCharges::Enter(const driver::Model& model,
                                  const std::string& holder) {
  const uint64_t holds = model.held_weights();
  {
    // From here on what it shares is not given back, whoever leaves meanwhile.
    base::MutexLock lock(mutex_);
    charges_[&model].coming = holds;
  }
  // Not under the lock: to make room for it, other models may be let go.
  absl::StatusOr<Charge> charge =
      ledger_->Open(holder)->TryCharge(MemoryKind::kWeight, holds);
  base::MutexLock lock(mutex_);
  if (!charge.ok()) {
    charges_.erase(&model);
  } else {
    charges_[&model] = {*std::move(charge), 0};
  }
  GiveBackExcess({});
  return charge.status();
}

void WeightCharges::Update(const driver::Model& model) {
  base::MutexLock lock(mutex_);
  const auto found = charges_.find(&model);
  if (found == charges_.end()) return;
  const uint64_t held = model.held_weights();
  // Less is never refused.
  Charge& charge = found->second.charge;
  if (held < charge.bytes()) (void)charge.Resize(held);
}

void WeightCharges::Leave(std::unique_ptr<driver::Model> model) {
  if (pager_ == nullptr || model->held_weights() <= kInlineBytes) {
    return Free(std::move(model));
  }
  {
    base::MutexLock lock(mutex_);
    waiting_.push_back(std::move(model));
  }
  pager_->Post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self != nullptr) self->FreeOne();
  });
}

bool WeightCharges::FreeWaiting() {
  bool any = false;
  while (FreeOne()) any = true;
  return any;
}

bool WeightCharges::FreeOne() {
  std::unique_ptr<driver::Model> model;
  {
    base::MutexLock lock(mutex_);
    if (waiting_.empty()) return false;
    model = std::move(waiting_.front());
    waiting_.pop_front();
  }
  Free(std::move(model));
  return true;
}

void WeightCharges::Free(std::unique_ptr<driver::Model> model) {
  Charge leaving;
  {
    base::MutexLock lock(mutex_);
    const auto found = charges_.find(model.get());
    if (found != charges_.end()) {
      leaving = std::move(found->second.charge);
      charges_.erase(found);
    }
  }
  // Not under the lock: it may be large.
  const uint64_t freed = model->held_weights();
  model = nullptr;
  if (spare_ != nullptr) spare_->NoteFreed(freed);
  base::MutexLock lock(mutex_);
  GiveBackExcess(std::move(leaving));
}

void WeightCharges::GiveBackExcess(Charge leaving) {
  uint64_t held = 0;
  uint64_t charged = 0;
  for (const auto& [model, paid] : charges_) {
    held += model->held_weights();
    charged += paid.charge.bytes() + paid.coming;
  }
  if (leaving.bytes() > 0) left_.push_back(std::move(leaving));
  for (const Charge& charge : left_) charged += charge.bytes();
  // The newest first: most of what it paid for has gone with it.
  for (auto at = left_.rbegin(); at != left_.rend() && charged > held; ++at) {
    const uint64_t excess = std::min(charged - held, at->bytes());
    if (!at->Resize(at->bytes() - excess).ok()) break;
    charged -= excess;
  }
  left_.erase(
      std::remove_if(left_.begin(), left_.end(),
                     [](const Charge& charge) { return charge.bytes() == 0; }),
      left_.end());
}

}  // namespace rknnd::core
