// Cores that are lent to programs which use the NPU without this daemon, for
// as long as an operator's connection lasts (Service::Lease).
//
//             Take            no job of ours is on its cores any more
//   (nobody) ------> kWaiting ----------------------------------------> kHeld
//       ^                |                                                 |
//       `----------------+---------------- GiveBack ----------------------'
//
// From Take on no job is begun on a lent core: what may run elsewhere does, and
// what may not is answered at once, by its gate or, when it was queued already,
// by AnswerStranded. All cores may be lent: then every run is answered so.

#ifndef DAEMON_CORE_SCHEDULING_LEASES_H_
#define DAEMON_CORE_SCHEDULING_LEASES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/mutex.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Lent to one holder.
struct LentCores {
  uint32_t cores = 0;
  std::string command;
  int32_t pid = 0;

  // "'command' (pid 12)".
  [[nodiscard]] std::string Holder() const;
};

// Thread: loop.
class Leases {
 public:
  using Callback = std::function<void(absl::Status)>;

  // `cores` that the device has.
  explicit Leases(uint32_t cores) : cores_(cores) {}

  // FAILED_PRECONDITION names who has one of the cores; ALREADY_EXISTS: this
  // session has a lease. Called back by Settle.
  absl::Status Take(SessionId session, LentCores cores, Callback held);
  // Whether it had any.
  bool GiveBack(SessionId session);
  // Calls back those whose cores nobody of ours is on.
  void Settle(uint32_t busy);

  [[nodiscard]] uint32_t lent() const;
  // Of these, for whom Settle is to come.
  [[nodiscard]] uint32_t awaited() const;
  [[nodiscard]] std::vector<LentCores> list() const;
  // Who has any of these cores: "'command' (pid 12)". Empty: nobody.
  [[nodiscard]] std::string HolderOf(uint32_t cores) const;

 private:
  struct Lease {
    SessionId session = 0;
    LentCores lent;
    Callback held;  // null: kHeld
  };

  const uint32_t cores_;
  std::vector<Lease> leases_;
};

// The same for those who refuse jobs that could run nowhere else: written by
// the loop, read by gates. Its lock is a leaf. Thread: any.
class LeasedCores {
 public:
  // Until the next call. The answer is all of these cores.
  uint32_t Set(std::vector<LentCores> lent);
  // Why jobs of a context with these cores are not run.
  [[nodiscard]] absl::Status Error(uint32_t context,
                                   const CoreChoice& cores) const;

 private:
  mutable base::Mutex mutex_;
  std::vector<LentCores> lent_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SCHEDULING_LEASES_H_
