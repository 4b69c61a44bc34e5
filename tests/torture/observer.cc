// See observer.h.

#include "tests/torture/observer.h"

#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "client/ctl/control_connection.h"

namespace rknnd::torture {
namespace {

uint64_t EntriesOf(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  return static_cast<uint64_t>(std::distance(begin(entries), end(entries)));
}

// "Name:   12 kB": 12; nothing added for other lines.
uint64_t NumberIn(const std::string& line, const std::string& name) {
  const size_t at = line.find(name);
  if (at == std::string::npos) return 0;
  return std::strtoull(line.c_str() + at + name.size(), nullptr, 10);
}

}  // namespace

ProcessUse UseOf(pid_t pid) {
  ProcessUse use;
  const std::string proc = "/proc/" + std::to_string(pid);
  use.fds = EntriesOf(proc + "/fd");
  std::ifstream maps(proc + "/maps");
  for (std::string line; std::getline(maps, line);) {
    ++use.mappings;
    if (line.find("/memfd:") != std::string::npos ||
        line.find("/dmabuf") != std::string::npos ||
        line.find("/dev/") != std::string::npos) {
      ++use.shared_mappings;
    }
  }
  std::ifstream status(proc + "/status");
  for (std::string line; std::getline(status, line);) {
    use.rss += NumberIn(line, "VmRSS:") * 1024;
  }
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator(proc + "/task", error)) {
    ++use.threads;
    std::ifstream file(task.path() / "status");
    for (std::string line; std::getline(file, line);) {
      use.switches += NumberIn(line, "ctxt_switches:");
    }
  }
  return use;
}

ProcessUse SettledUseOf(pid_t pid) {
  constexpr int kLooks = 10, kPauseMs = 20;
  ProcessUse least = UseOf(pid);
  for (int look = 0; look < kLooks; ++look) {
    poll(nullptr, 0, kPauseMs);
    const ProcessUse use = UseOf(pid);
    if (use.fds <= least.fds) least = use;
  }
  return least;
}

base::Expected<Holdings> HoldingsOf(const std::string& target) {
  auto line = client::ControlConnection::Open(target);
  if (!line) return std::move(line).error();
  const auto status = line->Ask(rknnd_v1_ReportKind_REPORT_STATUS);
  if (!status) return base::Error(status.error());
  const auto memory = line->Ask(rknnd_v1_ReportKind_REPORT_MEMORY);
  if (!memory) return base::Error(memory.error());
  Holdings holdings;
  holdings.sessions = status->session_count - 1;
  holdings.contexts = status->context_count;
  holdings.buffers = status->buffer_count;
  holdings.models = status->model_count;
  holdings.weight = memory->memory.weight;
  holdings.internal = memory->memory.internal;
  holdings.io = memory->memory.io;
  holdings.other = memory->memory.other;
  return holdings;
}

std::string ToText(const ProcessUse& use) {
  char text[160];
  std::snprintf(text, sizeof text,
                "%llu descriptors, %llu mappings (%llu shared), %llu threads, "
                "%.1f MB resident",
                static_cast<unsigned long long>(use.fds),
                static_cast<unsigned long long>(use.mappings),
                static_cast<unsigned long long>(use.shared_mappings),
                static_cast<unsigned long long>(use.threads),
                static_cast<double>(use.rss) / 1e6);
  return text;
}

std::string ToText(const Holdings& holdings) {
  const auto count = [](uint64_t number, const char* what) {
    return std::to_string(number) + " " + what;
  };
  return count(holdings.sessions, "sessions, ") +
         count(holdings.contexts, "contexts, ") +
         count(holdings.buffers, "buffers, ") +
         count(holdings.models, "models, ") + count(holdings.bytes(), "bytes");
}

}  // namespace rknnd::torture
