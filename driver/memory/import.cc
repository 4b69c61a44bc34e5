// Judges fds that clients send. Called by daemon/core on the loop thread, once
// per import. Everything about the fd is the client's choice; what is reported
// comes from the kernel alone.

#include "driver/memory/import.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/posix/unique_fd.h"

namespace rknnd::driver {
namespace {

constexpr std::string_view kWhatItMustBe =
    "a buffer must be a dma-buf, or a memfd on tmpfs sealed with F_SEAL_SHRINK";

absl::Status Refused(std::string_view what_it_is) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the fd is ", std::string(what_it_is), ": ", std::string(kWhatItMustBe)));
}

bool IsOn(const struct statfs& filesystem, long magic) {  // NOLINT: statfs's
  return filesystem.f_type == static_cast<decltype(filesystem.f_type)>(magic);
}

// What the kernel calls an open file: of all that is no file with a path, its
// kind. Takes no lock that a client can hold. Empty where there is no /proc.
std::string LinkOf(int fd) {
  std::array<char, 64> link{};
  const std::string path = absl::StrCat("/proc/self/fd/", fd);
  const ssize_t size = readlink(path.c_str(), link.data(), link.size());
  return size <= 0 ? "" : std::string(link.data(), static_cast<size_t>(size));
}

// "/dmabuf:" and the name of it; the second is Linux's before 5.3. A client can
// call a file of its own the first, which does no harm: the fdinfo of files
// takes nobody's locks.
bool MayBeDmaBuf(std::string_view link) {
  return link.starts_with("/dmabuf:") || link == "anon_inode:dmabuf";
}

// Who exported a dma-buf, from the line "exp_name:" of its fdinfo; empty of all
// other kinds, nothing where there is no /proc. That line stands before the
// name a client can set. The fdinfo of no other kind is looked at: that of an
// epoll set waits for a lock which its owner can hold for ever, with events
// that are written into a page that never comes.
std::optional<std::string> ExporterOf(int fd) {
  const std::string link = LinkOf(fd);
  if (link.empty()) return std::nullopt;
  if (!MayBeDmaBuf(link)) return std::string();
  const std::string path = absl::StrCat("/proc/self/fdinfo/", fd);
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size <= 0) return std::nullopt;
  std::string_view rest(text.data(), static_cast<size_t>(size));
  constexpr std::string_view kKey = "\nexp_name:";
  const size_t at = rest.find(kKey);
  if (at == std::string_view::npos) return std::string();
  rest.remove_prefix(at + kKey.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  return std::string(rest.substr(0, rest.find('\n')));
}

absl::Status RefusedByKind(const struct stat& file,
                           const struct statfs& filesystem, int fd) {
  switch (file.st_mode & S_IFMT) {
    case S_IFIFO:
      return Refused("a pipe");
    case S_IFSOCK:
      return Refused("a socket");
    case S_IFDIR:
      return Refused("a directory");
    case S_IFCHR:
      return Refused("a character device");
    case S_IFBLK:
      return Refused("a block device");
    case S_IFLNK:
      return Refused("a symbolic link");
    case S_IFREG:
      break;
    default:
      return Refused("no memory but an eventfd, epoll set or the like");
  }
  if (IsOn(filesystem, HUGETLBFS_MAGIC)) {
    return Refused(
        "in hugetlbfs, where a hole punched later would be a fault; make the "
        "memfd without MFD_HUGETLB");
  }
  // Files of tmpfs that are no memfd have seals too: the one against sealing.
  if (IsOn(filesystem, TMPFS_MAGIC) && fcntl(fd, F_GET_SEALS) >= 0) {
    return Refused(
        "memory on tmpfs that can be truncated; seal it with F_SEAL_SHRINK "
        "(made by memfd_create with MFD_ALLOW_SEALING)");
  }
  return Refused("a regular file");
}

}  // namespace

absl::StatusOr<ImportCheck> CheckImport(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0) return Refused("not open");
  if ((flags & O_PATH) != 0) {
    return Refused("opened with O_PATH, which gives no access to its contents");
  }
  struct stat file = {};
  struct statfs filesystem = {};
  std::optional<std::string> exporter;
  if (fcntl(fd, F_GET_SEALS) < 0) exporter = ExporterOf(fd);
  if (exporter.has_value() && exporter->empty()) {
    // Neither kind. A file system in user space would be asked what it is, and
    // answers when it likes: without news of it.
    struct statx look = {};
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &look) !=
        0) {
      return absl::ErrnoToStatus(errno, "look at an fd to import");
    }
    file.st_mode = look.stx_mode;
    return RefusedByKind(file, filesystem, fd);
  }
  if (fstat(fd, &file) != 0 || fstatfs(fd, &filesystem) != 0) {
    return absl::ErrnoToStatus(errno, "look at an fd to import");
  }
  const int mode = flags & O_ACCMODE;
  if (mode == O_WRONLY) return Refused("opened for writing only");

  ImportCheck check;
  check.identity = {file.st_dev, file.st_ino};
  check.writable = mode == O_RDWR;
  check.is_dma_buf = IsOn(filesystem, DMA_BUF_MAGIC);
  if (check.is_dma_buf) {
    const off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0) return absl::ErrnoToStatus(errno, "size a dma-buf");
    check.size = static_cast<uint64_t>(size);
    check.heap =
        exporter.has_value() ? "dma-buf:" + *exporter : std::string("dma-buf");
  } else {
    const int seals = fcntl(fd, F_GET_SEALS);
    if (!S_ISREG(file.st_mode) || !IsOn(filesystem, TMPFS_MAGIC) || seals < 0 ||
        (seals & F_SEAL_SHRINK) == 0) {
      return RefusedByKind(file, filesystem, fd);
    }
    check.size = static_cast<uint64_t>(file.st_size);
    check.heap = "memfd";
    // Linux 5.1's F_SEAL_FUTURE_WRITE, too, forbids new writable mappings.
    check.writable =
        check.writable && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) == 0;
  }
  if (check.size == 0) return Refused("empty (0 bytes)");
  return check;
}

}  // namespace rknnd::driver
