// See the header. Processes come and go while their files are read: what has
// gone is passed over. Their names are theirs to choose.

#include "daemon/board/foreign_users.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace rknnd {
namespace {

namespace fs = std::filesystem;

// As the kernel's folder of platform drivers names it.
constexpr char kDriver[] = "rknpu";
// Where the driver is built without DRM.
constexpr char kMiscNode[] = "/dev/rknpu";
// The vendor's bridge to a PC, which loads models by itself.
constexpr char kVendorServer[] = "rknn_server";
// In one line of the log.
constexpr size_t kNamed = 4;

bool IsDigits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

// "card1" and "renderD129", and no connectors ("card0-HDMI-A-1").
bool IsNode(const std::string& name) {
  for (const std::string prefix : {"renderD", "card"}) {
    if (name.starts_with(prefix)) return IsDigits(name.substr(prefix.size()));
  }
  return false;
}

std::vector<std::string> FindNodes(const std::string& root) {
  std::vector<std::string> nodes;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(root + "/sys/class/drm", error)) {
    const std::string name = entry.path().filename();
    if (!IsNode(name)) continue;
    const fs::path driver =
        fs::read_symlink(entry.path() / "device" / "driver", error);
    if (absl::AsciiStrToLower(driver.filename().string()) == kDriver) {
      nodes.push_back("/dev/dri/" + name);
    }
  }
  if (fs::exists(root + kMiscNode, error)) nodes.emplace_back(kMiscNode);
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::string ReadLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Of /proc/PID/stat; 0 when it has gone. The name before it may contain
// anything, but is the last that has a bracket.
pid_t ParentOf(const fs::path& process) {
  const std::string stat = ReadLine(process / "stat");
  const size_t bracket = stat.rfind(')');
  // ") S 1 ..."
  if (bracket == std::string::npos || bracket + 4 >= stat.size()) return 0;
  pid_t parent = 0;
  std::from_chars(stat.data() + bracket + 4, stat.data() + stat.size(), parent);
  return parent;
}

}  // namespace

ForeignUsers::ForeignUsers(std::string root)
    : ForeignUsers(std::move(root), getpid()) {}

ForeignUsers::ForeignUsers(std::string root, pid_t own)
    : root_(std::move(root)), own_(own), nodes_(FindNodes(root_)) {}

std::vector<core::ForeignUser> ForeignUsers::Find() {
  std::vector<core::ForeignUser> users;
  if (nodes_.empty()) return users;
  size_t unseen = 0;
  std::error_code error;
  for (const auto& process : fs::directory_iterator(root_ + "/proc", error)) {
    const std::string name = process.path().filename();
    pid_t pid = 0;
    const auto parsed =
        std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size() ||
        pid == own_ || ParentOf(process.path()) == own_) {
      continue;
    }
    core::ForeignUser user;
    user.pid = pid;
    user.comm = ReadLine(process.path() / "comm");
    fs::directory_iterator files(process.path() / "fd", error);
    if (error == std::errc::permission_denied) ++unseen;
    for (; !error && files != fs::directory_iterator();
         files.increment(error)) {
      std::error_code gone;
      const std::string file = fs::read_symlink(files->path(), gone);
      if (std::find(nodes_.begin(), nodes_.end(), file) == nodes_.end()) {
        continue;
      }
      user.device = file;
      break;
    }
    if (!user.device.empty() || user.comm == kVendorServer) {
      users.push_back(std::move(user));
    }
  }
  std::sort(users.begin(), users.end(),
            [](const auto& a, const auto& b) { return a.pid < b.pid; });
  if (unseen > 0) {
    core::ForeignUser others;
    others.comm = absl::StrCat(unseen, unseen == 1 ? " process" : " processes",
                               " that only root may look at");
    users.push_back(std::move(others));
  }
  return users;
}

std::string Describe(const std::vector<core::ForeignUser>& users) {
  std::string text;
  size_t named = 0;
  for (const core::ForeignUser& user : users) {
    if (user.pid == 0) continue;
    if (++named > kNamed) continue;
    absl::StrAppend(&text, named == 1 ? "" : ", ", user.comm, " (pid ",
                    user.pid, user.device.empty() ? "" : ", ", user.device,
                    ")");
  }
  if (named > kNamed) absl::StrAppend(&text, " and ", named - kNamed, " more");
  if (text.empty()) return text;
  return absl::StrCat(
      "the NPU is used beside rknnd by ", text,
      ": when a job of one hangs, the driver resets the NPU under all of them. "
      "'rknnctl lease --cores N -- COMMAND' keeps our jobs off some cores "
      "while a program runs");
}

}  // namespace rknnd
