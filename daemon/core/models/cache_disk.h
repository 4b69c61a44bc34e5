// What the model cache asks of the disk when it writes: apart, so that tests
// have a disk that is full or read-only.

#ifndef DAEMON_CORE_MODELS_CACHE_DISK_H_
#define DAEMON_CORE_MODELS_CACHE_DISK_H_

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

#include "base/posix/unique_fd.h"

namespace rknnd::core {

// Each says in errno what went wrong. Thread: the loader.
class CacheDisk {
 public:
  virtual ~CacheDisk() = default;
  // A file that was not there; invalid where it cannot be made.
  virtual base::UniqueFd Create(const std::string& path);
  // As pwrite.
  virtual ssize_t Write(int fd, std::span<const std::byte> bytes,
                        uint64_t offset);
  // As rename.
  virtual int Rename(const std::string& from, const std::string& to);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_CACHE_DISK_H_
