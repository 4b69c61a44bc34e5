// Internal memory of one core, and whose bytes are in it.

#ifndef DAEMON_CORE_MEMORY_ARENA_H_
#define DAEMON_CORE_MEMORY_ARENA_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/memory/paging.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

// Memory for intermediate tensors, never exported to a client. Its bytes belong
// to the job that holds the core's token. What that leaves stays for the next
// job, if it is of the same session; one of another session finds zeros.
//
//             Begin                     End
//   at rest ----------> a job's own ----------> at rest
//      |                     ^
//      | Clear               | Begin: when the piece that is being
//      v                     | cleared is done
//   being cleared -----------+
//      |
//      +--- all is zero, or `wanted` ---> at rest
//
// The lock is held while a piece is cleared and never while a job runs: a job
// that begins waits for one piece at most, as none is begun once `used_` is
// set. Memory::Clear, called under it, calls nothing and takes no lock.
class Arena {
 public:
  // So much is cleared at a time: some microseconds.
  static constexpr uint64_t kPiece = uint64_t{64} << 10;

  Arena(const Paging& paging, Charge charge, PagedMemory memory, uint64_t size);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  using Callback = std::function<void(absl::StatusOr<std::shared_ptr<Arena>>)>;
  // Room for `size` bytes, which is not 0: charged now, made here or on the
  // pager. Thread: loop, where `done` is called, at once or later.
  static void Make(const Paging& paging, Account& account, uint64_t size,
                   Callback done);

  // Thread: any, as they never change.
  [[nodiscard]] driver::Memory* memory() const { return memory_.memory.get(); }
  // As asked for; the kernel may have given more.
  [[nodiscard]] uint64_t size() const { return size_; }
  // Its first bytes that lie in SRAM.
  [[nodiscard]] uint64_t sram() const { return memory_.sram; }

  // A job of `session` is about to use the first `bytes`. Clears what another
  // session left. Nobody else clears before End. Thread: whoever has the core's
  // token, as for End.
  void Begin(SessionId session, uint64_t bytes);
  // Nothing writes here any more.
  void End() { used_.store(false, std::memory_order_release); }

  // Clears what was left, piece by piece, until nothing is, a job begins or
  // `wanted` says so. True when nothing is left, or another thread is at it:
  // that one answers false if it leaves something. Thread: any.
  bool Clear(absl::FunctionRef<bool()> wanted);

 private:
  const Paging paging_;
  Charge charge_;
  PagedMemory memory_;
  const uint64_t size_;

  // Between Begin and End; written by whoever has the core's token.
  std::atomic<bool> used_{false};
  std::atomic<bool> clearing_{false};  // one thread is at it
  base::Mutex mutex_;
  // Whose the first `left_` bytes may be. The others are zero.
  SessionId session_ RKNND_GUARDED_BY(mutex_) = 0;
  uint64_t left_ RKNND_GUARDED_BY(mutex_) = 0;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MEMORY_ARENA_H_
