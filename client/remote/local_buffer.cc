// See the header. The memory is the program's, which may do with its own
// descriptors what it likes: a range is looked at before it is touched.

#include "client/remote/local_buffer.h"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/posix/memfd.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

bool Sync(int fd, uint64_t flags) {
  dma_buf_sync sync = {flags};
  int done = 0;
  do {
    done = ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync);
  } while (done != 0 && (errno == EINTR || errno == EAGAIN));
  return done == 0;
}

// The CPU's turn at a dma-buf. Nothing is to be done for other memory.
class CpuTurn {
 public:
  CpuTurn(int fd, bool is_dma_buf, uint64_t access)
      : fd_(is_dma_buf ? fd : -1), access_(access) {
    if (fd_ >= 0) Sync(fd_, DMA_BUF_SYNC_START | access_);
  }
  ~CpuTurn() {
    if (fd_ >= 0) Sync(fd_, DMA_BUF_SYNC_END | access_);
  }
  CpuTurn(const CpuTurn&) = delete;
  CpuTurn& operator=(const CpuTurn&) = delete;

 private:
  const int fd_;
  const uint64_t access_;
};

// Other files answer this request with an error.
bool IsDmaBuf(int fd) {
  return Sync(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ) &&
         Sync(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ);
}

Expected<base::Mapping> Map(int fd, uint64_t size, bool writable) {
  if (size == 0 || size > std::numeric_limits<size_t>::max() / 2) {
    return Error{Code::kInvalidArgument,
                 "a buffer cannot have " + std::to_string(size) + " bytes"};
  }
  return base::Mapping::OfFd(fd, 0, static_cast<size_t>(size),
                             writable ? base::Mapping::Access::kReadWrite
                                      : base::Mapping::Access::kRead);
}

}  // namespace

Expected<std::shared_ptr<LocalBuffer>> LocalBuffer::Make(uint64_t size) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (size == 0 || size > std::numeric_limits<size_t>::max() / 2) {
    return Error{Code::kInvalidArgument,
                 "a buffer cannot have " + std::to_string(size) + " bytes"};
  }
  const uint64_t whole = (size + page - 1) / page * page;
  Expected<base::UniqueFd> fd = base::MakeMemfd("rknnd-buffer", whole);
  if (!fd.ok()) return std::move(fd).error();
  Expected<base::Mapping> mapping = Map(fd->get(), whole, true);
  if (!mapping.ok()) return std::move(mapping).error();
  return std::shared_ptr<LocalBuffer>(
      new LocalBuffer(*std::move(fd), *std::move(mapping), true, false));
}

Expected<std::shared_ptr<LocalBuffer>> LocalBuffer::Import(
    base::UniqueFd fd, uint64_t expected_size) {
  const bool is_dma_buf = IsDmaBuf(fd.get());
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (!is_dma_buf && (seals < 0 || (seals & F_SEAL_SHRINK) == 0)) {
    return Error{Code::kInvalidArgument,
                 "this memory is neither a dma-buf nor a memfd that is sealed "
                 "against shrinking (F_SEAL_SHRINK)"};
  }
  const off_t end = lseek(fd.get(), 0, SEEK_END);
  if (end < 0) return base::ErrnoError(errno, "size a buffer");
  const auto size = static_cast<uint64_t>(end);
  if (expected_size > size) {
    return Error{Code::kInvalidArgument,
                 "the buffer is said to have " + std::to_string(expected_size) +
                     " bytes, but the kernel says " + std::to_string(size) +
                     ": pass its true size"};
  }
  const int mode = fcntl(fd.get(), F_GETFL) & O_ACCMODE;
  const bool writable =
      mode == O_RDWR &&
      (is_dma_buf || (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) == 0);
  Expected<base::Mapping> mapping = Map(fd.get(), size, writable);
  if (!mapping.ok()) return std::move(mapping).error();
  return std::shared_ptr<LocalBuffer>(new LocalBuffer(
      std::move(fd), *std::move(mapping), writable, is_dma_buf));
}

bool LocalBuffer::Has(uint64_t offset, uint64_t size) const {
  return offset <= mapping_.size() && size <= mapping_.size() - offset;
}

bool LocalBuffer::AppendTo(std::string* to, uint64_t offset,
                           uint64_t size) const {
  if (!Has(offset, size)) return false;
  const CpuTurn turn(fd_.get(), is_dma_buf_, DMA_BUF_SYNC_READ);
  to->append(reinterpret_cast<const char*>(mapping_.data()) + offset,
             static_cast<size_t>(size));
  return true;
}

bool LocalBuffer::Store(uint64_t offset,
                        std::span<const std::byte> bytes) const {
  if (!writable_ || !Has(offset, bytes.size())) return false;
  const CpuTurn turn(fd_.get(), is_dma_buf_, DMA_BUF_SYNC_WRITE);
  std::memcpy(mapping_.data() + offset, bytes.data(), bytes.size());
  return true;
}

}  // namespace rknnd::client
