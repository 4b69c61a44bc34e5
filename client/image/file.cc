#include "client/image/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/posix/unique_fd.h"

namespace rknnd::client {

using base::Code;
using base::ErrnoError;
using base::Error;
using base::Expected;
using base::UniqueFd;

Expected<std::vector<std::byte>> ReadFile(const std::string& path) {
  // O_NONBLOCK: a FIFO given by mistake is refused below instead of waited for.
  const UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return ErrnoError(errno, "open '" + path + "'");
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return ErrnoError(errno, "stat '" + path + "'");
  }
  if (!S_ISREG(info.st_mode)) {
    return Error{Code::kInvalidArgument, "'" + path + "' is no regular file"};
  }
  if (static_cast<uint64_t>(info.st_size) > kMaxFileBytes) {
    return Error{Code::kInvalidArgument,
                 "file '" + path + "' is larger than 1 GiB"};
  }
  std::vector<std::byte> bytes(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        ::read(fd.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "read '" + path + "'");
    if (got == 0) break;  // it became shorter: what is there is the file
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

Expected<void> WriteFile(const std::string& path,
                         std::span<const std::byte> bytes) {
  const UniqueFd fd(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
  if (!fd.valid()) return ErrnoError(errno, "create '" + path + "'");
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return ErrnoError(errno, "write '" + path + "'");
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

}  // namespace rknnd::client
