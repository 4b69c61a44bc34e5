// mmap and its companions. Called by daemon and client library on any thread.
// Of files, only their size and kind are relied on here, and the kernel checks
// both: what else may change under a mapping is its user's concern.

#include "base/posix/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/mutex.h"
#include "base/posix/time_slice.h"
#include "base/posix/unique_fd.h"

namespace rknnd::base {
namespace {

// Other threads can neither map nor unmap while the kernel populates, nor run
// on this CPU: after so much, some tenths of a millisecond, they have their
// turn. A multiple of any page.
constexpr size_t kPopulateStep = size_t{1} << 20;
// Likewise while it unmaps, which is faster.
constexpr size_t kUnmapStep = size_t{2} << 20;

// Of Linux 5.14; the boards' 5.10 answers EINVAL.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

Error NoMemoryBehind(size_t size, int errno_value) {
  Error error = ErrnoError(
      errno_value, "populate a mapping of " + std::to_string(size) + " bytes");
  // EFAULT: where a plain access would have got a SIGBUS.
  if (errno_value == EFAULT) {
    error = {Code::kResourceExhausted,
             "a mapping of " + std::to_string(size) +
                 " bytes has no memory behind it: the file is shorter, or "
                 "memory is used up"};
  }
  return error;
}

std::atomic<uint64_t> live{0};

// What is still to be unmapped.
struct Leftovers {
  std::atomic<bool> any{false};
  Mutex mutex;
  std::vector<std::span<std::byte>> all RKNND_GUARDED_BY(mutex);
};

Leftovers& TheLeftovers() {
  // Never destroyed: mappings may outlive static destruction.
  static auto* const leftovers = new Leftovers;
  return *leftovers;
}

bool TryUnmap(std::span<std::byte> pages) {
  return munmap(pages.data(), pages.size()) == 0 || errno != ENOMEM;
}

}  // namespace

void Unmap(std::byte* data, size_t size) {
  Leftovers& left = TheLeftovers();
  const std::span<std::byte> pages(data, size);
  const bool done = TryUnmap(pages);
  if (done && !left.any.load(std::memory_order_relaxed)) return;
  MutexLock lock(left.mutex);
  std::erase_if(left.all, TryUnmap);
  if (!done) {
    // No pages of this process alone are held until then.
    madvise(data, size, MADV_DONTNEED);
    left.all.push_back(pages);
  }
  left.any = !left.all.empty();
}

uint64_t Mapping::Live() { return live.load(std::memory_order_relaxed); }

Mapping::Mapping(std::byte* data, size_t size, bool of_file)
    : data_(data), size_(size), of_file_(of_file) {
  live.fetch_add(1, std::memory_order_relaxed);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      of_file_(other.of_file_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(of_file_, other.of_file_);
  // What was ours goes now, not when `other` happens to.
  Mapping drop(std::move(other));
  return *this;
}

Mapping::~Mapping() {
  if (data_ == nullptr) return;
  for (size_t at = 0; at < size_; at += kUnmapStep) {
    if (at > 0) EndTurn();
    Unmap(data_ + at, std::min(kUnmapStep, size_ - at));
  }
  live.fetch_sub(1, std::memory_order_relaxed);
}

Expected<Mapping> Mapping::OfFd(int fd, uint64_t offset, size_t size,
                                Access access) {
  const std::string action = "map " + std::to_string(size) +
                             " bytes at offset " + std::to_string(offset) +
                             " of fd '" + std::to_string(fd) + "'";
  if (size == 0 ||
      offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
    return ErrnoError(EINVAL, action);
  }
  const int protection =
      access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* data = mmap(nullptr, size, protection, MAP_SHARED, fd,
                    static_cast<off_t>(offset));
  if (data == MAP_FAILED && errno == EPERM && access == Access::kRead) {
    // Before Linux 6.7 a file sealed against writing cannot be mapped shared,
    // not even to read. Never written, a private mapping is the same pages.
    data = mmap(nullptr, size, protection, MAP_PRIVATE, fd,
                static_cast<off_t>(offset));
  }
  if (data == MAP_FAILED) return ErrnoError(errno, action);
  return Mapping(static_cast<std::byte*>(data), size, /*of_file=*/true);
}

Expected<Mapping> Mapping::Anonymous(size_t size) {
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return ErrnoError(errno, "map " + std::to_string(size) + " bytes");
  }
  return Mapping(static_cast<std::byte*>(data), size, /*of_file=*/false);
}

void Mapping::ShrinkTo(size_t size) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (size >= size_) return;
  const size_t kept = (size + page - 1) / page * page;
  if (kept == 0) *this = Mapping();
  if (kept >= size_) return;
  Unmap(data_ + kept, size_ - kept);
  size_ = kept;
}

Expected<void> Mapping::MakeReadOnly() {
  if (valid() && mprotect(data_, size_, PROT_READ) != 0) {
    return ErrnoError(
        errno, "protect a mapping of " + std::to_string(size_) + " bytes");
  }
  return {};
}

Expected<void> Mapping::Populate(Access access) {
  if (!valid()) return {};
  const int advice =
      access == Access::kRead ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
  int result = 0;
  for (size_t at = 0; at < size_ && result == 0; at += kPopulateStep) {
    if (at > 0) EndTurn();
    const size_t step = std::min(kPopulateStep, size_ - at);
    do {
      result = madvise(data_ + at, step, advice);
    } while (result != 0 && errno == EINTR);
  }
  if (result == 0) return {};
  // Older kernels do not know the advice, and no kernel takes it for the
  // device memory of a dma-buf.
  if (errno == EINVAL && of_file_) return PopulateByReading();
  if (errno == EINVAL) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (size_t at = 0; at < size_; at += page) {
      volatile std::byte* byte = data_ + at;
      if (access == Access::kReadWrite) {
        *byte = *byte;
      } else {
        static_cast<void>(*byte);
      }
    }
    return {};
  }
  return NoMemoryBehind(size_, errno);
}

// Reading allocates the pages of a shared file. The kernel does the reading:
// for it, a page that cannot be had is EFAULT instead of a signal. Writing
// would race with whoever else maps the file.
Expected<void> Mapping::PopulateByReading() const {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return ErrnoError(errno, "make a pipe to populate a mapping with");
  }
  const UniqueFd out(ends[0]);
  const UniqueFd in(ends[1]);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::array<iovec, 256> pieces;
  std::array<std::byte, pieces.size()> sink;
  size_t at = 0;
  while (at < size_) {
    size_t count = 0;
    for (size_t next = at; next < size_ && count < pieces.size();
         next += page) {
      pieces[count++] = {data_ + next, 1};
    }
    const ssize_t read_pages =
        writev(in.get(), pieces.data(), static_cast<int>(count));
    if (read_pages < 0) {
      if (errno == EINTR) continue;
      return NoMemoryBehind(size_, errno);
    }
    if (read(out.get(), sink.data(), sink.size()) != read_pages) {
      return NoMemoryBehind(size_, EIO);
    }
    const size_t done = static_cast<size_t>(read_pages) * page;
    at += std::min(done, size_ - at);
  }
  return {};
}

}  // namespace rknnd::base
