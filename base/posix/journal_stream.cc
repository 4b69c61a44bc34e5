// See the header. A stream is known by its file's device and inode.

#include "base/posix/journal_stream.h"

#include <sys/stat.h>

#include <string>

namespace rknnd::base {

bool IsJournalStream(const char* variable, int fd) {
  struct stat file {};
  if (variable == nullptr || fstat(fd, &file) != 0) return false;
  return variable ==
         std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino);
}

}  // namespace rknnd::base
