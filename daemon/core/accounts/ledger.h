// Exact accounting: every byte the daemon holds has a kind (weight, internal,
// I/O, other) and an owner (a session, a model, the arenas). Used by the
// classes of daemon/core that hold memory; read by reports.
//
//   session 1 --+
//   session 2 --+-- user 1000 --+
//   session 3 ----- user 1001 --+-- what the NPU's MMU maps (not kOther)
//   model 'a' ------------------+
//   internal memory ------------+
//
// A charge is paid by its account and all above it, or by none.
//
// Whoever holds memory holds the Charge beside it, so that both go together,
// also when a job outlives the session that paid.

#ifndef DAEMON_CORE_ACCOUNTS_LEDGER_H_
#define DAEMON_CORE_ACCOUNTS_LEDGER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

enum class MemoryKind : uint32_t { kWeight, kInternal, kIo, kOther };

inline constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// Of them, what the NPU reaches: it takes part of its address space.
inline uint64_t NpuBytes(const MemoryKinds& kinds) {
  return kinds.weight + kinds.internal + kinds.io;
}

class Account;

// Bytes that an account pays for; given back when destroyed.
// Thread: any, one at a time.
class Charge {
 public:
  Charge() = default;
  Charge(Charge&& other) noexcept;
  Charge& operator=(Charge&& other) noexcept;
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge();

  // Pays for `bytes` instead. Unchanged when a limit forbids it.
  absl::Status Resize(uint64_t bytes);
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  friend class Account;
  Charge(std::shared_ptr<Account> account, MemoryKind kind, uint64_t bytes);

  std::shared_ptr<Account> account_;
  MemoryKind kind_ = MemoryKind::kOther;
  uint64_t bytes_ = 0;
};

// The sum over all accounts, and its limit. Thread: any. Its lock is a leaf:
// nothing is called under it.
class Ledger : public std::enable_shared_from_this<Ledger> {
 public:
  // `budget`: what the NPU can map at one time. `budget_name` names it.
  static std::shared_ptr<Ledger> Create(uint64_t budget = kNoLimit,
                                        std::string budget_name = "");

  // An account that may hold `limit` bytes. `holder` names it in messages,
  // `limit_name` says which limit to raise. `group`: what it holds counts
  // there too.
  std::shared_ptr<Account> Open(std::string holder, std::string limit_name = "",
                                uint64_t limit = kNoLimit,
                                std::shared_ptr<Account> group = nullptr);

  // Called when the budget does not suffice: gives something back, or says that
  // there is nothing. Charges of what the NPU reaches are then taken on the
  // thread that `reclaim` needs. Thread: before the first charge.
  void set_reclaim(std::function<bool()> reclaim) {
    reclaim_ = std::move(reclaim);
  }

  [[nodiscard]] MemoryKinds totals() const;
  [[nodiscard]] uint64_t budget() const;
  // From now on; what is charged beyond it stays. `kept_free`: percent of it
  // that groups leave to those who have little (common_room.h); as much may no
  // group have in other memory.
  void SetBudget(uint64_t budget, uint32_t kept_free = 0);
  // Whether `who`, who has had `own` bytes charged to accounts without a group,
  // may have `more`: gives back what is not in use first, where that helps.
  absl::Status CheckKept(const std::string& who, uint64_t own, uint64_t more);

 private:
  friend class Account;
  friend class Charge;
  // What of `kind` is to change from `before` to `after` bytes.
  struct Step {
    MemoryKind kind;
    uint64_t before, after;
  };
  // kBudget: giving back what is not in use might help.
  enum class Refusal { kNone, kAccount, kGroup, kBudget, kHopeless };

  Ledger(uint64_t budget, std::string budget_name);

  // Takes the step, after reclaiming where that helps.
  absl::Status Change(const Account& account, const Step& step);
  Refusal TryChange(const Account& account, const Step& step,
                    absl::Status* why);
  Refusal Check(const Account& account, const Step& step,
                absl::Status* why) const RKNND_REQUIRES(mutex_);
  // "session 4 (pid 12 'cam') with 700 bytes, ...": of `group`, or of all.
  [[nodiscard]] std::string LargestHolders(const Account* group) const
      RKNND_REQUIRES(mutex_);
  // Of `account`, in its group.
  Refusal CheckShared(const Account& account, const Step& step,
                      absl::Status* why) const RKNND_REQUIRES(mutex_);
  [[nodiscard]] MemoryKinds HeldBy(const Account& account) const;
  void SetLimit(const Account& account, uint64_t limit, std::string name);
  void Close(const Account& account);

  // What an account holds, and may hold.
  struct Entry {
    MemoryKinds held;
    uint64_t limit = kNoLimit;
    std::string limit_name;
  };

  const std::string budget_name_;
  std::function<bool()> reclaim_;

  mutable base::Mutex mutex_;
  uint64_t budget_ RKNND_GUARDED_BY(mutex_);
  uint32_t kept_free_ RKNND_GUARDED_BY(mutex_) = 0;
  MemoryKinds totals_ RKNND_GUARDED_BY(mutex_);
  // All accounts that are open.
  std::map<const Account*, Entry> accounts_ RKNND_GUARDED_BY(mutex_);
};

// What one owner holds. Thread: any.
class Account : public std::enable_shared_from_this<Account> {
 public:
  Account(std::shared_ptr<Ledger> ledger, std::string holder,
          std::shared_ptr<Account> group);
  ~Account();
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  // RESOURCE_EXHAUSTED names the limit, what is asked and what is free; the
  // holder and what it holds, or, of several, the largest of them.
  absl::StatusOr<Charge> TryCharge(MemoryKind kind, uint64_t bytes);
  // The same of what is free now: nobody gives anything back for it, so that
  // threads may ask on which that cannot be done. Thread: any.
  absl::StatusOr<Charge> TryChargeFree(MemoryKind kind, uint64_t bytes);

  // From now on; what is charged beyond it stays. `name`: the key to raise.
  void SetLimit(uint64_t limit, std::string name);

  [[nodiscard]] MemoryKinds held() const;
  [[nodiscard]] const std::string& holder() const { return holder_; }

 private:
  friend class Charge;
  friend class Ledger;

  const std::shared_ptr<Ledger> ledger_;
  const std::string holder_;
  const std::shared_ptr<Account> group_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ACCOUNTS_LEDGER_H_
