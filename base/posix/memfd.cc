// Makes and judges memfds. Called by daemon and client library on any thread;
// HasSeals is asked about fds of untrusted origin.

#include "base/posix/memfd.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <vector>

#include "base/posix/time_slice.h"

namespace rknnd::base {
namespace {

// Of Linux 6.3; Debian 12's headers are older.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

constexpr int kFixedSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr int kImmutableSeals = kFixedSizeSeals | F_SEAL_WRITE;

Expected<UniqueFd> Create(const char* name) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL));
  if (!fd.valid() && errno == EINVAL) {
    fd.reset(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  }
  if (!fd.valid() && errno == ENOSYS) {
    return Error{Code::kUnimplemented,
                 std::string("create memfd '") + name +
                     "': this kernel has no memfd_create; it takes Linux 3.17 "
                     "or later, built with CONFIG_MEMFD_CREATE"};
  }
  if (!fd.valid()) {
    return ErrnoError(errno, std::string("create memfd '") + name + "'");
  }
  return fd;
}

Expected<void> Seal(int fd, const char* name, int seals) {
  if (fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) {
    return ErrnoError(errno, std::string("seal memfd '") + name + "'");
  }
  return {};
}

}  // namespace

Expected<UniqueFd> MakeMemfd(const char* name, uint64_t size) {
  if (size > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
    return Error{Code::kOutOfRange, std::string("memfd '") + name +
                                        "' cannot have " +
                                        std::to_string(size) + " bytes"};
  }
  Expected<UniqueFd> fd = Create(name);
  if (!fd.ok()) return fd;
  if (ftruncate(fd->get(), static_cast<off_t>(size)) != 0) {
    return ErrnoError(errno, std::string("size memfd '") + name + "' to " +
                                 std::to_string(size) + " bytes");
  }
  if (Expected<void> sealed = Seal(fd->get(), name, kFixedSizeSeals);
      !sealed.ok()) {
    return std::move(sealed).error();
  }
  return fd;
}

Expected<UniqueFd> MakeImmutableMemfd(const char* name,
                                      std::span<const std::byte> bytes) {
  Expected<UniqueFd> fd = Create(name);
  if (!fd.ok()) return fd;
  // Written, not mapped: a writable mapping would forbid the write seal.
  if (Expected<void> written = AppendToMemfd(fd->get(), bytes); !written.ok()) {
    return std::move(written).error();
  }
  if (Expected<void> sealed = Seal(fd->get(), name, kImmutableSeals);
      !sealed.ok()) {
    return std::move(sealed).error();
  }
  return fd;
}

Expected<void> FillMemfd(int fd, uint64_t size) {
  constexpr uint64_t kAtOnce = uint64_t{256} << 10;
  const std::vector<std::byte> zeros(
      static_cast<size_t>(std::min(size, kAtOnce)));
  for (uint64_t at = 0; at < size;) {
    const ssize_t put = pwrite(
        fd, zeros.data(), static_cast<size_t>(std::min(size - at, kAtOnce)),
        static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      // tmpfs says so where it has no more pages.
      return ErrnoError(put < 0 && errno != ENOSPC ? errno : ENOMEM,
                        "fill a memfd of " + std::to_string(size) + " bytes");
    }
    at += static_cast<uint64_t>(put);
    EndTurn();
  }
  return {};
}

Expected<UniqueFd> MakeGrowingMemfd(const char* name) { return Create(name); }

Expected<void> AppendToMemfd(int fd, std::span<const std::byte> bytes) {
  std::span<const std::byte> rest = bytes;
  while (!rest.empty()) {
    const ssize_t written = write(fd, rest.data(), rest.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(
          errno, "write " + std::to_string(bytes.size()) + " bytes to a memfd");
    }
    rest = rest.subspan(static_cast<size_t>(written));
  }
  return {};
}

Expected<void> SealMemfd(int fd) { return Seal(fd, "", kImmutableSeals); }

bool HasSeals(int fd, Seals seals) {
  const int wanted =
      seals == Seals::kImmutable ? kImmutableSeals : kFixedSizeSeals;
  const int present = fcntl(fd, F_GET_SEALS);
  if (present < 0 || (present & wanted) != wanted) return false;
  // hugetlbfs has seals too, but a hole punched there ends in a SIGBUS.
  struct statfs filesystem = {};
  return fstatfs(fd, &filesystem) == 0 &&
         filesystem.f_type ==
             static_cast<decltype(filesystem.f_type)>(TMPFS_MAGIC);
}

}  // namespace rknnd::base
