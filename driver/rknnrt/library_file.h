// The vendor's library as a file: whether it is one that may be loaded, and
// whether it is still the one that was looked at.

#ifndef DRIVER_RKNNRT_LIBRARY_FILE_H_
#define DRIVER_RKNNRT_LIBRARY_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rknnd::rknnrt {

struct LibraryFile {
  std::string path;
  dev_t device = 0;
  ino_t inode = 0;
  uint64_t size = 0;
  int64_t changed = 0;  // nanoseconds

  friend bool operator==(const LibraryFile&, const LibraryFile&) = default;
};

// NOT_FOUND: there is none. Other errors say why it is not loaded: it is no
// library of this machine, or somebody but root and us could change it.
absl::StatusOr<LibraryFile> CheckLibraryFile(const std::string& path);

// Where the vendor's library is when nobody says so: where `rknnd-divert` puts
// it. Empty: nowhere.
std::string FindLibraryFile();

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_LIBRARY_FILE_H_
