#include "tests/integration/harness/proc.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace rknnd::integration {
namespace {

std::string Path(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// "Rss:   12 kB" of smaps, "VmRSS: 12 kB" of status; false for other lines.
bool ReadKib(const std::string& line, const char* key, uint64_t* bytes) {
  unsigned long kib = 0;
  if (std::sscanf(line.c_str(), (std::string(key) + ": %lu kB").c_str(),
                  &kib) != 1) {
    return false;
  }
  *bytes = uint64_t{kib} * 1024;
  return true;
}

}  // namespace

ProcessUse UseOf(pid_t pid) {
  ProcessUse use;
  std::error_code error;
  const std::filesystem::directory_iterator fds(Path(pid, "fd"), error);
  use.fds = static_cast<size_t>(std::distance(begin(fds), end(fds)));
  std::ifstream maps(Path(pid, "maps"));
  for (std::string line; std::getline(maps, line);) ++use.mappings;
  std::ifstream status(Path(pid, "status"));
  for (std::string line; std::getline(status, line);) {
    if (ReadKib(line, "VmRSS", &use.rss)) break;
  }
  return use;
}

void PrintTo(const ProcessUse& use, std::ostream* stream) {
  *stream << use.fds << " fds, " << use.mappings << " mappings, " << use.rss
          << " bytes resident";
}

std::vector<NamedMapping> MappingsOf(pid_t pid, const std::string& prefix) {
  std::vector<NamedMapping> found;
  bool wanted = false;
  std::ifstream smaps(Path(pid, "smaps"));
  for (std::string line; std::getline(smaps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    int name = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %*s %n", &begin, &end,
                    &name) >= 2 &&
        name > 0) {
      const std::string text = line.substr(static_cast<size_t>(name));
      wanted = text.compare(0, prefix.size(), prefix) == 0;
      if (wanted) found.push_back({text, end - begin, 0});
    } else if (wanted) {
      ReadKib(line, "Rss", &found.back().rss);
    }
  }
  return found;
}

}  // namespace rknnd::integration
