// Called on the program's threads.

#include "client/rknnrt/buffer.h"

#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/values/overflow.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

uint64_t SyncFlags(CpuAccess access) {
  switch (access) {
    case CpuAccess::kRead:
      return DMA_BUF_SYNC_READ;
    case CpuAccess::kWrite:
      return DMA_BUF_SYNC_WRITE;
    case CpuAccess::kReadWrite:
      return DMA_BUF_SYNC_RW;
  }
  return DMA_BUF_SYNC_RW;
}

// 0, or the errno.
int Sync(int fd, uint64_t flags) {
  dma_buf_sync sync = {flags};
  while (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) != 0) {
    if (errno != EINTR && errno != EAGAIN) return errno;
  }
  return 0;
}

// Other files answer this request with an error.
bool IsDmaBuf(int fd) {
  return Sync(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ) == 0 &&
         Sync(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ) == 0;
}

}  // namespace

Expected<std::unique_ptr<Buffer>> Buffer::Allocate(
    std::shared_ptr<Target> target, uint64_t size, uint32_t flags) {
  Expected<BufferHandle> made = target->AllocateBuffer(size, flags);
  if (!made.ok()) return std::move(made).error();
  std::unique_ptr<Buffer> buffer(new Buffer);
  buffer->target_ = std::move(target);
  buffer->number_ = made->number;
  buffer->fd_ = made->fd;
  buffer->size_ = size;
  Expected<base::Mapping> mapping =
      base::Mapping::OfFd(made->fd, 0, static_cast<size_t>(size),
                          base::Mapping::Access::kReadWrite);
  if (!mapping.ok()) return std::move(mapping).error();
  buffer->mapping_ = *std::move(mapping);
  buffer->dma_buf_ = IsDmaBuf(made->fd);
  return buffer;
}

Expected<std::unique_ptr<Buffer>> Buffer::Import(std::shared_ptr<Target> target,
                                                 int fd, uint64_t offset,
                                                 uint64_t size, bool map) {
  const auto end = base::CheckedAdd(offset, size);
  if (!end || *end > SIZE_MAX) {
    return Error{Code::kOutOfRange,
                 "memory of " + std::to_string(size) + " bytes at offset " +
                     std::to_string(offset) + " does not exist"};
  }
  Expected<BufferHandle> made = target->ImportBuffer(fd, *end);
  if (!made.ok()) return std::move(made).error();
  std::unique_ptr<Buffer> buffer(new Buffer);
  buffer->target_ = std::move(target);
  buffer->number_ = made->number;
  buffer->fd_ = made->fd;
  buffer->offset_ = offset;
  buffer->size_ = size;
  buffer->dma_buf_ = IsDmaBuf(made->fd);
  if (map) {
    Expected<base::Mapping> mapping = base::Mapping::OfFd(
        fd, 0, static_cast<size_t>(*end), base::Mapping::Access::kReadWrite);
    // A camera's driver exports for reading unless it is asked for more.
    if (!mapping.ok() && mapping.error().code == Code::kPermissionDenied) {
      mapping = base::Mapping::OfFd(fd, 0, static_cast<size_t>(*end),
                                    base::Mapping::Access::kRead);
    }
    if (!mapping.ok()) return std::move(mapping).error();
    buffer->mapping_ = *std::move(mapping);
  }
  return buffer;
}

Expected<std::unique_ptr<Buffer>> Buffer::ImportPhysical(
    std::shared_ptr<Target> target, uint64_t address, uint64_t size) {
  Expected<BufferHandle> made = target->ImportPhysical(address, size);
  if (!made.ok()) return std::move(made).error();
  std::unique_ptr<Buffer> buffer(new Buffer);
  buffer->target_ = std::move(target);
  buffer->number_ = made->number;
  buffer->size_ = size;
  return buffer;
}

Expected<uint64_t> SizeOfMemory(int fd) {
  struct stat file = {};
  if (fstat(fd, &file) != 0) {
    return base::ErrnoError(errno, "look at fd " + std::to_string(fd));
  }
  if (file.st_size > 0) return static_cast<uint64_t>(file.st_size);
  // Some kernels tell a dma-buf's size by this alone.
  const off_t end = IsDmaBuf(fd) ? lseek(fd, 0, SEEK_END) : 0;
  return static_cast<uint64_t>(std::max<off_t>(end, 0));
}

Buffer::~Buffer() {
  if (number_ != 0) target_->ReleaseBuffer(number_);
}

Expected<void> Buffer::Synchronize(CpuAccess access) const {
  Expected<void> told = target_->SyncBuffer(number_, access != CpuAccess::kRead,
                                            access != CpuAccess::kWrite);
  if (!told.ok() || !dma_buf_) return told;
  // Begin and end in one: some exporters refuse an end without its begin. What
  // the CPU holds of data the device wrote is dropped by the begin, what it
  // wrote itself is cleaned by the end.
  const uint64_t flags = SyncFlags(access);
  int result = Sync(fd_, DMA_BUF_SYNC_START | flags);
  if (result == 0) result = Sync(fd_, DMA_BUF_SYNC_END | flags);
  if (result == 0) return {};
  return base::ErrnoError(
      result, "synchronise the cache of buffer " + std::to_string(number_));
}

void Buffer::BeginCpuAccess(CpuAccess access) const {
  if (access != CpuAccess::kWrite) {
    (void)target_->SyncBuffer(number_, false, true);
  }
  if (dma_buf_) Sync(fd_, DMA_BUF_SYNC_START | SyncFlags(access));
}

void Buffer::EndCpuAccess(CpuAccess access) const {
  if (dma_buf_) Sync(fd_, DMA_BUF_SYNC_END | SyncFlags(access));
  if (access != CpuAccess::kRead) {
    (void)target_->SyncBuffer(number_, true, false);
  }
}

}  // namespace rknnd::client
