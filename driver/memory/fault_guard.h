// CPU access to memory that a client can truncate or revoke: a SIGBUS or
// SIGSEGV inside the guarded range ends the access, not the daemon.

#ifndef DRIVER_MEMORY_FAULT_GUARD_H_
#define DRIVER_MEMORY_FAULT_GUARD_H_

#include <cstddef>
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

}  // namespace rknnd::driver

#endif  // DRIVER_MEMORY_FAULT_GUARD_H_
