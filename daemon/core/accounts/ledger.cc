// Exact accounting of every byte by kind and owner. Called by whoever holds
// memory, on any thread; sizes are checked against limits here, and nowhere
// trusted to be small.

#include "daemon/core/accounts/ledger.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/accounts/common_room.h"
#include "daemon/core/accounts/holders.h"

namespace rknnd::core {
namespace {

uint64_t& BytesOf(MemoryKinds& kinds, MemoryKind kind) {
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

// Whether `limit` suffices when of what is held `before` bytes become `after`.
// By subtraction: a client may ask for any number.
template <class Step>
bool Fits(uint64_t holds, const Step& step, uint64_t limit) {
  const uint64_t others = holds - step.before;
  return others <= limit && step.after <= limit - others;
}

constexpr char kAddressSpace[] = "bytes of 'address_space'";

uint64_t FreeOf(uint64_t holds, uint64_t limit) {
  return holds < limit ? limit - holds : 0;
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
  if (account_ != nullptr)
    (void)account_->ledger_->Change(*account_, {kind_, bytes_, 0});
}

absl::Status Charge::Resize(uint64_t bytes) {
  if (account_ == nullptr) {
    return absl::FailedPreconditionError("a charge without an account");
  }
  absl::Status changed =
      account_->ledger_->Change(*account_, {kind_, bytes_, bytes});
  if (changed.ok()) bytes_ = bytes;
  return changed;
}

Ledger::Ledger(uint64_t budget, std::string budget_name)
    : budget_name_(std::move(budget_name)), budget_(budget) {}

std::shared_ptr<Ledger> Ledger::Create(uint64_t budget,
                                       std::string budget_name) {
  return std::shared_ptr<Ledger>(new Ledger(budget, std::move(budget_name)));
}

std::shared_ptr<Account> Ledger::Open(std::string holder,
                                      std::string limit_name, uint64_t limit,
                                      std::shared_ptr<Account> group) {
  auto account = std::make_shared<Account>(shared_from_this(),
                                           std::move(holder), std::move(group));
  base::MutexLock lock(mutex_);
  accounts_[account.get()] = {{}, limit, std::move(limit_name)};
  return account;
}

void Ledger::Close(const Account& account) {
  base::MutexLock lock(mutex_);
  accounts_.erase(&account);
}

void Ledger::SetLimit(const Account& account, uint64_t limit,
                      std::string name) {
  base::MutexLock lock(mutex_);
  Entry& entry = accounts_.at(&account);
  entry.limit = limit;
  entry.limit_name = std::move(name);
}

void Ledger::SetBudget(uint64_t budget, uint32_t kept_free) {
  base::MutexLock lock(mutex_);
  budget_ = budget;
  kept_free_ = kept_free;
}

absl::Status Ledger::CheckKept(const std::string& who, uint64_t own,
                               uint64_t more) {
  for (;;) {
    absl::Status why;
    {
      base::MutexLock lock(mutex_);
      const CommonRoom room{budget_, kept_free_};
      const uint64_t all = NpuBytes(totals_);
      // What does not fit at all is refused by the charge, in its words.
      if (more > budget_ || all > budget_ - more ||
          room.Allows(all, own, more)) {
        return absl::OkStatus();
      }
      why = absl::ResourceExhaustedError(absl::StrCat(
          more, " bytes more: ", room.Refusal(who, own, kAddressSpace)));
    }
    if (reclaim_ == nullptr || !reclaim_()) return why;
  }
}

uint64_t Ledger::budget() const {
  base::MutexLock lock(mutex_);
  return budget_;
}

MemoryKinds Ledger::totals() const {
  base::MutexLock lock(mutex_);
  return totals_;
}

MemoryKinds Ledger::HeldBy(const Account& account) const {
  base::MutexLock lock(mutex_);
  return accounts_.at(&account).held;
}

std::string Ledger::LargestHolders(const Account* group) const {
  std::set<const Account*> groups;
  for (const auto& [account, entry] : accounts_)
    groups.insert(account->group_.get());
  std::vector<Holding> holdings;
  for (const auto& [account, entry] : accounts_) {
    // A group is named by its members.
    if (groups.contains(account)) continue;
    if (group != nullptr && account->group_.get() != group) continue;
    holdings.push_back({account->holder_, group == nullptr
                                              ? NpuBytes(entry.held)
                                              : entry.held.total()});
  }
  return NameLargest(std::move(holdings));
}

absl::Status Ledger::Change(const Account& account, const Step& step) {
  for (;;) {
    absl::Status why;
    const Refusal refusal = TryChange(account, step, &why);
    if (refusal == Refusal::kNone) return absl::OkStatus();
    if (refusal != Refusal::kBudget || reclaim_ == nullptr || !reclaim_()) {
      return why;
    }
  }
}

Ledger::Refusal Ledger::TryChange(const Account& account, const Step& step,
                                  absl::Status* why) {
  base::MutexLock lock(mutex_);
  if (step.after > step.before) {
    const Refusal refusal = Check(account, step, why);
    if (refusal != Refusal::kNone) return refusal;
  }
  const uint64_t more = step.after - step.before;  // may be less: it wraps
  BytesOf(accounts_.at(&account).held, step.kind) += more;
  if (account.group_ != nullptr) {
    BytesOf(accounts_.at(account.group_.get()).held, step.kind) += more;
  }
  BytesOf(totals_, step.kind) += more;
  return Refusal::kNone;
}

Ledger::Refusal Ledger::Check(const Account& account, const Step& step,
                              absl::Status* why) const {
  const uint64_t more = step.after - step.before;
  const Entry& own = accounts_.at(&account);
  const uint64_t holds = own.held.total();
  if (!Fits(holds, step, own.limit)) {
    *why = absl::ResourceExhaustedError(absl::StrCat(
        account.holder_, " holds ", holds, " bytes; ", more,
        " more exceed its limit '", own.limit_name, "' of ", own.limit,
        " bytes, of which ", FreeOf(holds, own.limit),
        " are free: release buffers that are no longer used, or raise the "
        "limit"));
    return Refusal::kAccount;
  }
  if (const Account* group = account.group_.get(); group != nullptr) {
    const Entry& shared = accounts_.at(group);
    const uint64_t all = shared.held.total();
    if (!Fits(all, step, shared.limit)) {
      *why = absl::ResourceExhaustedError(absl::StrCat(
          group->holder_, " holds ", all, " bytes; ", more, " more for ",
          account.holder_, " exceed its limit '", shared.limit_name, "' of ",
          shared.limit, " bytes, of which ", FreeOf(all, shared.limit),
          " are free; the largest holders: ", LargestHolders(group),
          ". End what is not needed, or raise the limit"));
      return Refusal::kGroup;
    }
  }
  const Refusal shared = CheckShared(account, step, why);
  // What the NPU does not reach takes none of its address space.
  if (shared != Refusal::kNone || step.kind == MemoryKind::kOther) {
    return shared;
  }
  const uint64_t all = NpuBytes(totals_);
  if (!Fits(all, step, budget_)) {
    *why = absl::ResourceExhaustedError(absl::StrCat(
        "the NPU's address space holds ", all, " bytes; ", more, " more for ",
        account.holder_, " exceed the limit '", budget_name_, "' of ", budget_,
        " bytes, of which ", FreeOf(all, budget_),
        " are free; the largest holders: ", LargestHolders(nullptr),
        ". End what is not needed, or use smaller models and buffers"));
    // Buffers are never given back: where even all models would not do, none
    // of them is to go for a request that is refused in the end.
    const bool hopeless = more > budget_ || totals_.io > budget_ - more;
    return hopeless ? Refusal::kHopeless : Refusal::kBudget;
  }
  return Refusal::kNone;
}

Ledger::Refusal Ledger::CheckShared(const Account& account, const Step& step,
                                    absl::Status* why) const {
  const Account* const group = account.group_.get();
  if (group == nullptr || kept_free_ == 0) return Refusal::kNone;
  const MemoryKinds& held = accounts_.at(group).held;
  const CommonRoom room{budget_, kept_free_};
  const uint64_t most = budget_ - room.kept();
  const uint64_t more = step.after - step.before;
  if (step.kind == MemoryKind::kOther) {
    if (Fits(held.other, step, most)) return Refusal::kNone;
    *why = absl::ResourceExhaustedError(absl::StrCat(
        group->holder_, " holds ", held.other, " bytes of uploads and dumps; ",
        more, " more for ", account.holder_, " exceed the ", most,
        " that one user may have (limits 'address_space' and 'kept_free'): "
        "wait until models are loaded, and take dumps that are done"));
    return Refusal::kGroup;
  }
  const uint64_t all = NpuBytes(totals_);
  // What does not fit at all has words of its own.
  if (!Fits(all, step, budget_) || room.Allows(all, NpuBytes(held), more)) {
    return Refusal::kNone;
  }
  *why = absl::ResourceExhaustedError(absl::StrCat(
      more, " bytes more for ", account.holder_, ": ",
      room.Refusal(group->holder_, NpuBytes(held), kAddressSpace)));
  // Buffers are never given back.
  return more > most || totals_.io > most - more ? Refusal::kHopeless
                                                 : Refusal::kBudget;
}

Account::Account(std::shared_ptr<Ledger> ledger, std::string holder,
                 std::shared_ptr<Account> group)
    : ledger_(std::move(ledger)),
      holder_(std::move(holder)),
      group_(std::move(group)) {}

Account::~Account() { ledger_->Close(*this); }

absl::StatusOr<Charge> Account::TryCharge(MemoryKind kind, uint64_t bytes) {
  absl::Status changed = ledger_->Change(*this, {kind, 0, bytes});
  if (!changed.ok()) return changed;
  return Charge(shared_from_this(), kind, bytes);
}

absl::StatusOr<Charge> Account::TryChargeFree(MemoryKind kind, uint64_t bytes) {
  absl::Status why;
  if (ledger_->TryChange(*this, {kind, 0, bytes}, &why) !=
      Ledger::Refusal::kNone) {
    return why;
  }
  return Charge(shared_from_this(), kind, bytes);
}

void Account::SetLimit(uint64_t limit, std::string name) {
  ledger_->SetLimit(*this, limit, std::move(name));
}

MemoryKinds Account::held() const { return ledger_->HeldBy(*this); }

}  // namespace rknnd::core
