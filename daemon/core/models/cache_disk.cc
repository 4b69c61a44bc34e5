#include "daemon/core/models/cache_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace rknnd::core {

base::UniqueFd CacheDisk::Create(const std::string& path) {
  return base::UniqueFd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
           S_IRUSR | S_IWUSR));
}

ssize_t CacheDisk::Write(int fd, std::span<const std::byte> bytes,
                         uint64_t offset) {
  return pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
}

int CacheDisk::Rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str());
}

}  // namespace rknnd::core
