// CPU caches around CPU access to a dma-buf. A memfd is ordinary memory and
// needs none of it, so that callers need not ask what they have.
// Called by daemon/core around copies, and by devices that compute on the CPU.

#ifndef DRIVER_MEMORY_CACHE_SYNC_H_
#define DRIVER_MEMORY_CACHE_SYNC_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rknnd::driver {

enum class CpuAccess { kRead, kWrite, kReadWrite };

// Whether the kernel has such calls for this memory.
bool IsDmaBuf(int fd);

// Before the first access: what the device wrote becomes visible here.
// After the last one, with the same `access`: what was written becomes visible
// there. May wait for the buffer's fences. Thread: any.
absl::Status BeginCpuAccess(int fd, CpuAccess access);
absl::Status EndCpuAccess(int fd, CpuAccess access);

// The two as one scope; the fd is borrowed for as long. Thread: any, one at a
// time.
class CacheSync {
 public:
  static absl::StatusOr<CacheSync> Begin(int fd, CpuAccess access);
  CacheSync(CacheSync&& other) noexcept;
  CacheSync& operator=(CacheSync&&) = delete;
  CacheSync(const CacheSync&) = delete;
  CacheSync& operator=(const CacheSync&) = delete;
  ~CacheSync();

  // Ends the scope now, where the caller can still act on a failure.
  absl::Status End();

 private:
  CacheSync(int fd, CpuAccess access) : fd_(fd), access_(access) {}

  int fd_;
  CpuAccess access_;
};

}  // namespace rknnd::driver

#endif  // DRIVER_MEMORY_CACHE_SYNC_H_
