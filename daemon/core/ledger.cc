// Exact accounting of every byte by kind and owner. Called by whoever holds
// memory, on any thread; sizes are checked against limits here, and nowhere
// trusted to be small.

#include "daemon/core/ledger.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::core {
namespace {

uint64_t& Entry(MemoryKinds& kinds, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kWeight:
      return kinds.weight;
    case MemoryKind::kInternal:
      return kinds.internal;
    case MemoryKind::kIo:
      return kinds.io;
    case MemoryKind::kOther:
      break;
  }
  return kinds.other;
}

}  // namespace

Charge::Charge(std::shared_ptr<Account> account, MemoryKind kind,
               uint64_t bytes)
    : account_(std::move(account)), kind_(kind), bytes_(bytes) {}

Charge::Charge(Charge&& other) noexcept
    : account_(std::move(other.account_)),
      kind_(other.kind_),
      bytes_(std::exchange(other.bytes_, 0)) {}

Charge& Charge::operator=(Charge&& other) noexcept {
  std::swap(account_, other.account_);
  std::swap(kind_, other.kind_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Charge::~Charge() {
  // Paying less never fails.
  if (account_ != nullptr) (void)account_->Change(kind_, bytes_, 0);
}

absl::Status Charge::Resize(uint64_t bytes) {
  if (account_ == nullptr) {
    return absl::FailedPreconditionError("a charge without an account");
  }
  absl::Status changed = account_->Change(kind_, bytes_, bytes);
  if (changed.ok()) bytes_ = bytes;
  return changed;
}

std::shared_ptr<Ledger> Ledger::Create() {
  return std::shared_ptr<Ledger>(new Ledger);
}

std::shared_ptr<Account> Ledger::Open(std::string holder,
                                      std::string limit_name, uint64_t limit) {
  return std::make_shared<Account>(shared_from_this(), std::move(holder),
                                   std::move(limit_name), limit);
}

MemoryKinds Ledger::totals() const {
  base::MutexLock lock(mutex_);
  return totals_;
}

Account::Account(std::shared_ptr<Ledger> ledger, std::string holder,
                 std::string limit_name, uint64_t limit)
    : ledger_(std::move(ledger)),
      holder_(std::move(holder)),
      limit_name_(std::move(limit_name)),
      limit_(limit) {}

absl::StatusOr<Charge> Account::TryCharge(MemoryKind kind, uint64_t bytes) {
  absl::Status changed = Change(kind, 0, bytes);
  if (!changed.ok()) return changed;
  return Charge(shared_from_this(), kind, bytes);
}

MemoryKinds Account::held() const {
  base::MutexLock lock(ledger_->mutex_);
  return held_;
}

absl::Status Account::Change(MemoryKind kind, uint64_t before, uint64_t after) {
  uint64_t holds = 0;
  {
    base::MutexLock lock(ledger_->mutex_);
    holds = held_.total();
    const uint64_t others = holds - before;
    if (after <= before || (others <= limit_ && after <= limit_ - others)) {
      Entry(held_, kind) += after - before;
      Entry(ledger_->totals_, kind) += after - before;
      return absl::OkStatus();
    }
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      holder_, " holds ", holds, " bytes; ", after - before,
      " more exceed its limit '", limit_name_, "' of ", limit_,
      " bytes: release buffers that are no longer used, or raise the limit"));
}

}  // namespace rknnd::core
