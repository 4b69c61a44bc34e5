// Internal memory: one arena per core, lent to the job that runs there, however
// many contexts, models and processes there are. Each is as large as the
// largest model that may run on its core asks for.

#ifndef DAEMON_CORE_MEMORY_ARENAS_H_
#define DAEMON_CORE_MEMORY_ARENAS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/memory/arena.h"
#include "daemon/core/memory/paging.h"
#include "daemon/core/memory/sram.h"
#include "driver/device.h"

namespace rknnd::core {

// Where some context wants to run, and what it needs there.
struct ArenaNeed {
  uint32_t cores = 0;  // as bits
  uint64_t size = 0;
};

// Thread: loop; Get any. The lock is a leaf, held for a pointer's copy.
//
// One arena is made at a time, and what for is looked at again whenever one is
// there: of several wishes at once only the newest are worked for.
class Arenas : public std::enable_shared_from_this<Arenas> {
 public:
  using StatusCallback = std::function<void(absl::Status)>;
  // `sram` is told what each core's arena has of it; null: nobody.
  Arenas(const Paging& paging, std::shared_ptr<Account> account,
         std::shared_ptr<Sram> sram = nullptr);

  // What each core's arena must have room for; asked whenever that matters.
  void set_needs(std::function<std::vector<uint64_t>()> needs) {
    needs_ = std::move(needs);
  }

  // `done` is told when there is room for `need`, at once or later, and is to
  // see that `needs` includes it from then on. When memory is lacking, others
  // keep what they have. An arena that jobs may need is there, and paid for,
  // until the larger one takes its place.
  void Fit(const ArenaNeed& need, StatusCallback done);
  // Whether there is room now.
  [[nodiscard]] bool Has(const ArenaNeed& need) const;
  // Whether Fit could be paid for, before the first arena is made: a model that
  // does not fit takes nothing away from those that do. `payer` is whose part
  // of `ledger` it would be. Nothing is charged when it returns.
  [[nodiscard]] absl::Status CheckRoom(const ArenaNeed& need, Ledger& ledger,
                                       const std::string& payer) const;
  // The needs have changed. A job that runs keeps the arena it was given; one
  // that cannot shrink stays.
  void Refit();
  // Nobody is told any more, and nothing is needed.
  void Stop();

  // The arena of `core` as it is now; null when nothing needs one.
  [[nodiscard]] std::shared_ptr<Arena> Get(uint32_t core) const;

 private:
  // What is charged for already and not there yet.
  struct Making {
    uint32_t core = 0;
    uint64_t size = 0;
  };
  struct Waiter {
    ArenaNeed need;
    StatusCallback done;
  };
  // What became of a core's arenas that could not be made.
  struct Refusals {
    uint64_t growth = kNoLimit;     // to this much and above
    uint64_t shrinkage = kNoLimit;  // to this much
  };

  [[nodiscard]] uint64_t SizeOf(uint32_t core) const;
  // By models that are there; and by those who wait.
  [[nodiscard]] uint64_t NeedOf(uint32_t core) const;
  [[nodiscard]] uint64_t MostWaitedFor(uint32_t core) const;
  // What the core's arena is to be.
  [[nodiscard]] uint64_t Wanted(uint32_t core,
                                const std::vector<uint64_t>& needs) const;
  // What to make of it next; nothing when that is done or in vain.
  [[nodiscard]] std::optional<uint64_t> NextSize(
      uint32_t core, const std::vector<uint64_t>& needs) const;
  void Step();
  void StepOnce();
  void Begin(uint32_t core, uint64_t size);
  void OnMade(uint32_t core, uint64_t size,
              absl::StatusOr<std::shared_ptr<Arena>> made);
  void Install(uint32_t core, std::shared_ptr<Arena> arena);
  // Tells those waiters for whom `picks` is true.
  template <class Predicate>
  void Answer(const Predicate& picks, const absl::Status& status);

  const Paging paging_;
  const std::shared_ptr<Account> account_;
  const std::shared_ptr<Sram> sram_;
  const uint32_t cores_;
  std::function<std::vector<uint64_t>()> needs_;
  std::vector<Waiter> waiters_;
  std::vector<Refusals> refusals_;  // by core
  std::optional<Making> making_;
  bool stepping_ = false, step_again_ = false;

  mutable base::Mutex mutex_;
  std::vector<std::shared_ptr<Arena>> arenas_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MEMORY_ARENAS_H_
