// Whose model is loaded next. One at a time is; the next is that of the user
// who has had least of the loader's time, whatever others have queued. Used by
// the model registry, one for each thread that loads.

#ifndef DAEMON_CORE_MODELS_LOAD_TURNS_H_
#define DAEMON_CORE_MODELS_LOAD_TURNS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"

namespace rknnd::core {

// Who asks for a load: a user, or an allocation, by its tenant's name.
struct LoadPayer {
  std::string name;
  uint32_t weight = 100;  // of its share; twice as much gets twice the time
  // Whoever waits for it: a load is dropped before it begins when all who asked
  // for it have gone. Nothing: it is wanted whoever goes.
  std::optional<std::weak_ptr<const void>> asker = {};

  [[nodiscard]] bool gone() const {
    return asker.has_value() && asker->expired();
  }
  [[nodiscard]] bool IsSameAs(const LoadPayer& other) const {
    return asker.has_value() && other.asker.has_value() &&
           !asker->owner_before(*other.asker) &&
           !other.asker->owner_before(*asker);
  }
};

// Each payer has a virtual time: what its loads took, over its weight. The next
// load is the oldest of the payer whose virtual time would be the least with
// what that load is expected to take. Who comes back counts as having had what
// those had who were served meanwhile, so that nobody saves time up, and nobody
// owes more than one load.
//
// Thread: loop. `run` is called on the thread that loads, then `ended` on the
// loop; or, of a load that nobody wants, `ended` only.
class LoadTurns : public std::enable_shared_from_this<LoadTurns> {
 public:
  // One load that waits, or runs; it may be that of several payers.
  class Work;

  static std::shared_ptr<LoadTurns> Create(base::Executor* loop,
                                           base::Executor* loader,
                                           const base::Clock* clock);

  enum class End { kRan, kUnwanted };
  std::shared_ptr<Work> Add(const LoadPayer& payer, base::Nanoseconds expected,
                            std::function<void()> run,
                            std::function<void(End)> ended);
  // `payer` waits for it, too: it has its turn when the first of them has.
  void Join(const std::shared_ptr<Work>& work, const LoadPayer& payer);
  // What waits is dropped; nothing is called on the loop from now on.
  void Stop();

  // That have not begun.
  [[nodiscard]] size_t waiting() const { return waiting_; }

 private:
  struct Account {
    uint64_t time = 0;  // virtual; it wraps
    uint32_t weight = 100;
    uint64_t order = 0;  // who comes first among equals
    std::deque<std::shared_ptr<Work>> loads;
  };
  using Accounts = std::map<std::string, Account>;

  LoadTurns(base::Executor* loop, base::Executor* loader,
            const base::Clock* clock)
      : loop_(loop), loader_(loader), clock_(clock) {}
  void Queue(const std::shared_ptr<Work>& work, const LoadPayer& payer);
  void BeginNext();
  // Whose oldest load has its turn; end: nobody's.
  Accounts::iterator Next();
  // It will not begin, as nobody wants it.
  void Drop(const std::shared_ptr<Work>& work);
  void OnEnded(const std::shared_ptr<Work>& work, base::Nanoseconds took);

  base::Executor* const loop_;
  base::Executor* const loader_;
  const base::Clock* const clock_;
  Accounts accounts_;
  bool busy_ = false;
  bool stopped_ = false;
  size_t waiting_ = 0;
  uint64_t next_order_ = 0;
  uint64_t level_ = 0;  // what the last one had who was begun with
};

// What a model of so many bytes is expected to take where it was not loaded
// before. That is an order among those who have had as much as each other: what
// it did take is what counts afterwards.
base::Nanoseconds ExpectedLoad(uint64_t bytes);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_LOAD_TURNS_H_
