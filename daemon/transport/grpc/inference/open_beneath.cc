// The kernel's own walk where it has one, else ours, with the same answers.

#include "daemon/transport/grpc/inference/open_beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status/status.h"
#include "base/values/expected.h"

namespace rknnd::transport {
namespace {

constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

absl::Status Failed(int error, const std::string& path) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(
          absl::StrCat("'", path, "' is not in the model repository"));
    case ELOOP:
    case EXDEV:
      return absl::InvalidArgumentError(
          absl::StrCat("'", path,
                       "' leads out of the model repository or over a symbolic "
                       "link: copy the file there"));
    default:
      return base::ToStatus(base::ErrnoError(
          error, absl::StrCat("open '", path, "' of the model repository")));
  }
}

absl::StatusOr<base::UniqueFd> BySteps(int folder, const std::string& path,
                                       bool directory) {
  base::UniqueFd at;
  std::vector<std::string> parts = absl::StrSplit(path, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty() || parts[i] == "." || parts[i] == "..") {
      return Failed(EXDEV, path);
    }
    const bool last = i + 1 == parts.size();
    base::UniqueFd next;
    do {
      next.reset(openat(i == 0 ? folder : at.get(), parts[i].c_str(),
                        kFlags | O_CLOEXEC | O_NOFOLLOW |
                            (last && !directory ? 0 : O_DIRECTORY)));
    } while (!next.valid() && errno == EINTR);
    if (!next.valid()) {
      const int error = errno;
      struct stat status {};
      // With O_DIRECTORY a link is no folder, and only that is said.
      const bool link = error == ENOTDIR &&
                        fstatat(i == 0 ? folder : at.get(), parts[i].c_str(),
                                &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                        S_ISLNK(status.st_mode);
      return Failed(link ? ELOOP : error, path);
    }
    at = std::move(next);
  }
  return at;
}

}  // namespace

absl::StatusOr<base::UniqueFd> OpenBeneath(int folder, const std::string& path,
                                           bool directory, BeneathBy by) {
  if (by == BeneathBy::kSteps) return BySteps(folder, path, directory);
  struct open_how how {};
  how.flags = static_cast<uint64_t>(kFlags | (directory ? O_DIRECTORY : 0));
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (;;) {
    base::UniqueFd fd(static_cast<int>(
        syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how)));
    if (fd.valid()) return fd;
    // EAGAIN: a folder above was renamed meanwhile.
    if (errno == EINTR || errno == EAGAIN) continue;
    // The second is what old filters say of calls they do not know; a file that
    // may not be opened says it again below.
    if (errno == ENOSYS || errno == EPERM) {
      return BySteps(folder, path, directory);
    }
    return Failed(errno, path);
  }
}

}  // namespace rknnd::transport
