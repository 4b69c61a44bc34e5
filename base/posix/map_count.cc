// Reads what the kernel says in /proc, which is believed.

#include "base/posix/map_count.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/posix/unique_fd.h"

namespace rknnd::base {
namespace {

// Calls `take` with all that is in the file, piece by piece.
template <class Take>
void ReadPieces(const char* path, Take take) {
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 16384> piece;
  ssize_t got = 0;
  while ((got = read(fd.get(), piece.data(), piece.size())) > 0) {
    take(piece.data(), piece.data() + got);
  }
}

}  // namespace

uint64_t MostMappings() {
  uint64_t most = 0;
  ReadPieces("/proc/sys/vm/max_map_count",
             [&most](const char* begin, const char* end) {
               std::from_chars(begin, end, most);
             });
  return most;
}

uint64_t CountMappings() {
  uint64_t mappings = 0;
  ReadPieces("/proc/self/maps",
             [&mappings](const char* begin, const char* end) {
               mappings += static_cast<uint64_t>(std::count(begin, end, '\n'));
             });
  return mappings;
}

}  // namespace rknnd::base
