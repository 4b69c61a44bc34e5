// CPU access to memory that a client can truncate or revoke: a SIGBUS or
// SIGSEGV inside the guarded range ends the access, not the daemon.

#ifndef DRIVER_MEMORY_FAULT_GUARD_H_
#define DRIVER_MEMORY_FAULT_GUARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rknnd::driver {

// Installs the process's handlers of SIGBUS and SIGSEGV, before whatever was
// there.
// Idempotent. Thread: any.
void InstallFaultGuard();

// Runs `access(argument)`; false when it faulted inside `range` and was
// abandoned on the spot: it must hold no lock and own nothing. Only faults of
// this very thread count: what `access` hands to other threads is not guarded.
// A fault anywhere else goes to the handler that was there before. Thread: any
// that does not block SIGBUS and SIGSEGV (blocked, a fault ends the process);
// not nested.
[[nodiscard]] bool RunGuarded(std::span<const std::byte> range,
                              void (*access)(void*), void* argument);

// The same for a lambda.
template <class Access>
[[nodiscard]] bool Guarded(std::span<const std::byte> range, Access&& access) {
  return RunGuarded(
      range, [](void* a) { (*static_cast<Access*>(a))(); }, &access);
}

// For code that cannot be abandoned on the spot, because it owns things, calls
// libraries or runs on several threads: as long as this exists, a fault of its
// thread inside `range` puts zeros there, for this process alone (in the first
// or last page, or in all pages between), notes that in `*torn`, and the code
// goes on. The range is memory for intermediate results: whoever sees `torn`
// afterwards gives the result up, and the memory may be used further. Thread:
// the one that made it; may be nested, also with Guarded.
class FaultPatch {
 public:
  FaultPatch(std::span<std::byte> range, std::atomic<bool>* torn);
  ~FaultPatch();
  FaultPatch(const FaultPatch&) = delete;
  FaultPatch& operator=(const FaultPatch&) = delete;

 private:
  friend struct FaultPatchAccess;
  uintptr_t begin_, end_;
  std::atomic<bool>* const torn_;
  FaultPatch* const outer_;
};

}  // namespace rknnd::driver

#endif  // DRIVER_MEMORY_FAULT_GUARD_H_
