// DMA_BUF_IOCTL_SYNC. Called on any thread, hot path included: success
// allocates nothing.

#include "driver/memory/cache_sync.h"

#include <linux/dma-buf.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::driver {
namespace {

uint64_t Flags(CpuAccess access) {
  switch (access) {
    case CpuAccess::kRead:
      return DMA_BUF_SYNC_READ;
    case CpuAccess::kWrite:
      return DMA_BUF_SYNC_WRITE;
    case CpuAccess::kReadWrite:
      break;
  }
  return DMA_BUF_SYNC_RW;
}

absl::Status Sync(int fd, uint64_t flags) {
  dma_buf_sync sync = {};
  sync.flags = flags;
  while (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    // Not a dma-buf: coherent with the CPU anyway. ENOSYS is qemu-user's word,
    // on a machine whose dma-bufs are coherent.
    if (errno == ENOTTY || errno == ENOSYS) return absl::OkStatus();
    return absl::ErrnoToStatus(
        errno, absl::StrCat("synchronise the CPU's caches with dma-buf fd '",
                            fd, "'"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsDmaBuf(int fd) {
  struct statfs info = {};
  return fstatfs(fd, &info) == 0 &&
         info.f_type == static_cast<decltype(info.f_type)>(DMA_BUF_MAGIC);
}

absl::Status BeginCpuAccess(int fd, CpuAccess access) {
  return Sync(fd, DMA_BUF_SYNC_START | Flags(access));
}

absl::Status EndCpuAccess(int fd, CpuAccess access) {
  return Sync(fd, DMA_BUF_SYNC_END | Flags(access));
}

absl::StatusOr<CacheSync> CacheSync::Begin(int fd, CpuAccess access) {
  if (absl::Status status = BeginCpuAccess(fd, access); !status.ok()) {
    return status;
  }
  return CacheSync(fd, access);
}

CacheSync::CacheSync(CacheSync&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), access_(other.access_) {}

CacheSync::~CacheSync() {
  // A failure here is one that the caller chose not to hear of.
  End().IgnoreError();
}

absl::Status CacheSync::End() {
  if (fd_ < 0) return absl::OkStatus();
  return EndCpuAccess(std::exchange(fd_, -1), access_);
}

}  // namespace rknnd::driver
