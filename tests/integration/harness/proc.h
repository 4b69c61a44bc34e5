// What the kernel says of a process: descriptors, mappings, resident bytes.

#ifndef TESTS_INTEGRATION_HARNESS_PROC_H_
#define TESTS_INTEGRATION_HARNESS_PROC_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace rknnd::integration {

struct ProcessUse {
  size_t fds = 0, mappings = 0;
  uint64_t rss = 0;  // bytes
};
ProcessUse UseOf(pid_t pid);
void PrintTo(const ProcessUse& use, std::ostream* stream);

// A line of /proc/PID/smaps: "/memfd:rknnd-weights (deleted)".
struct NamedMapping {
  std::string name;
  uint64_t size = 0, rss = 0;  // bytes
};
// Those whose name begins so.
std::vector<NamedMapping> MappingsOf(pid_t pid, const std::string& prefix);

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_PROC_H_
