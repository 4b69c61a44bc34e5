// Exact accounting: every byte the daemon holds has a kind (weight, internal,
// I/O, other) and an owner (a session, a model, the arenas). Used by the
// classes of daemon/core that hold memory; read by reports.
//
// Whoever holds memory holds the Charge beside it, so that both go together,
// also when a job outlives the session that paid.

#ifndef DAEMON_CORE_LEDGER_H_
#define DAEMON_CORE_LEDGER_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "daemon/core/types.h"

namespace rknnd::core {

enum class MemoryKind : uint32_t { kWeight, kInternal, kIo, kOther };

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

  // Pays for `bytes` instead. Unchanged when the account's limit forbids it.
  absl::Status Resize(uint64_t bytes);
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  friend class Account;
  Charge(std::shared_ptr<Account> account, MemoryKind kind, uint64_t bytes);

  std::shared_ptr<Account> account_;
  MemoryKind kind_ = MemoryKind::kOther;
  uint64_t bytes_ = 0;
};

// The sum over all accounts. Thread: any. Its lock is a leaf: nothing is called
// under it.
class Ledger : public std::enable_shared_from_this<Ledger> {
 public:
  static std::shared_ptr<Ledger> Create();

  // An account that may hold `limit` bytes. `holder` names it in messages,
  // `limit_name` says which limit to raise.
  std::shared_ptr<Account> Open(
      std::string holder, std::string limit_name = "",
      uint64_t limit = std::numeric_limits<uint64_t>::max());

  [[nodiscard]] MemoryKinds totals() const;

 private:
  friend class Account;
  Ledger() = default;

  mutable base::Mutex mutex_;
  MemoryKinds totals_ RKNND_GUARDED_BY(mutex_);
};

// What one owner holds. Thread: any.
class Account : public std::enable_shared_from_this<Account> {
 public:
  Account(std::shared_ptr<Ledger> ledger, std::string holder,
          std::string limit_name, uint64_t limit);

  // RESOURCE_EXHAUSTED names the limit, the holder and what it holds.
  absl::StatusOr<Charge> TryCharge(MemoryKind kind, uint64_t bytes);

  [[nodiscard]] MemoryKinds held() const;
  [[nodiscard]] const std::string& holder() const { return holder_; }

 private:
  friend class Charge;
  // Replaces `before` bytes by `after`.
  absl::Status Change(MemoryKind kind, uint64_t before, uint64_t after);

  const std::shared_ptr<Ledger> ledger_;
  const std::string holder_;
  const std::string limit_name_;
  const uint64_t limit_;
  MemoryKinds held_ RKNND_GUARDED_BY(ledger_->mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_LEDGER_H_
