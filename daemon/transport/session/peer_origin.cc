// Called by the server on the loop. /proc answers from memory.

#include "daemon/transport/session/peer_origin.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/unique_fd.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::transport {
namespace {

constexpr size_t kLongestUnit = 100;
constexpr size_t kIdDigits = 64;  // of docker, podman and containerd alike
constexpr size_t kShownDigits = 12;

// The part of a path that is a container's id: 64 hexadecimal digits, which
// runtimes put between words of their own ("docker-<id>.scope").
std::string ContainerIn(std::string_view part) {
  size_t digits = 0;
  for (size_t i = 0; i <= part.size(); ++i) {
    if (i < part.size() &&
        std::isxdigit(static_cast<unsigned char>(part[i])) != 0) {
      ++digits;
      continue;
    }
    if (digits == kIdDigits) {
      return std::string(part.substr(i - kIdDigits, kShownDigits));
    }
    digits = 0;
  }
  return "";
}

bool IsUnit(std::string_view part) {
  return part.ends_with(".service") || part.ends_with(".scope");
}

// Takes what stands before the next `end`, or all of it.
std::string_view Take(std::string_view& text, char end) {
  const size_t size = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return taken;
}

}  // namespace

PeerOrigin ParseControlGroups(std::string_view text) {
  // "ID:CONTROLLERS:PATH": version 2 has one line, with ID 0; of version 1 the
  // line of systemd's own hierarchy tells the same.
  std::string_view path;
  while (!text.empty()) {
    std::string_view line = Take(text, '\n');
    const std::string_view id = Take(line, ':');
    const bool systemds = Take(line, ':') == "name=systemd";
    if (id == "0" || systemds) path = line;
    if (systemds) break;
  }
  PeerOrigin home;
  // The innermost of each counts: a container's process has the runtime's
  // unit around it.
  while (!path.empty()) {
    const std::string_view part = Take(path, '/');
    if (std::string id = ContainerIn(part); !id.empty()) {
      home.container = std::move(id);
    } else if (IsUnit(part)) {
      home.unit = Printable(part.substr(0, kLongestUnit));
    }
  }
  return home;
}

PeerOrigin FindPeerOrigin(int pid) {
  if (pid <= 0) return {};
  const base::UniqueFd file(open(absl::StrCat("/proc/", pid, "/cgroup").c_str(),
                                 O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  std::array<char, 8192> text{};
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size <= 0) return {};
  return ParseControlGroups({text.data(), static_cast<size_t>(size)});
}

}  // namespace rknnd::transport
