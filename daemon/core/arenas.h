// Internal memory: one arena per core, lent to the job that runs there, however
// many contexts, models and processes there are. Each is as large as the
// largest model that may run on its core asks for.

#ifndef DAEMON_CORE_ARENAS_H_
#define DAEMON_CORE_ARENAS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/ledger.h"
#include "driver/device.h"
#include "driver/memory/heap.h"

namespace rknnd::core {

// Memory for intermediate tensors, never exported to a client. Immutable apart
// from its bytes, which belong to the job that holds the core token.
// Thread: any.
class Arena {
 public:
  // Room for `size` bytes, which is not 0.
  static absl::StatusOr<std::shared_ptr<Arena>> Create(
      driver::Device* device, const driver::Heaps* heaps, Account& account,
      uint64_t size);

  [[nodiscard]] driver::Memory* memory() const { return memory_.get(); }
  // As asked for; the kernel may have given more.
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  Arena() = default;

  Charge charge_;
  base::UniqueFd fd_;
  std::unique_ptr<driver::Memory> memory_;
  uint64_t size_ = 0;
};

// Thread: Fit loop; Get any. The lock is a leaf, held for a pointer's copy.
class Arenas {
 public:
  Arenas(driver::Device* device, const driver::Heaps* heaps,
         std::shared_ptr<Account> account);

  // Makes core c's arena as large as needs[c]; 0: none. A job that runs keeps
  // the arena it was given. When memory is lacking for growth, the cores that
  // have grown already stay so; a failure to shrink is none.
  absl::Status Fit(const std::vector<uint64_t>& needs);

  // The arena of `core` as it is now; null when nothing needs one.
  [[nodiscard]] std::shared_ptr<Arena> Get(uint32_t core) const;

 private:
  driver::Device* const device_;
  const driver::Heaps* const heaps_;
  const std::shared_ptr<Account> account_;

  mutable base::Mutex mutex_;
  std::vector<std::shared_ptr<Arena>> arenas_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ARENAS_H_
