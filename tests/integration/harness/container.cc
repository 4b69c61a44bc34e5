#include "tests/integration/harness/container.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/posix/child_process.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/patience.h"
#include "tests/integration/harness/sanitized.h"

namespace rknnd::integration {
namespace {

namespace fs = std::filesystem;

// Inside the namespaces: $1 is the root, then HOST:INSIDE pairs up to "--",
// then the program. A /proc of its own is not had everywhere, and not needed.
constexpr char kScript[] = R"(
set -e
root=$1
shift
mount --make-rprivate /
mount --rbind "$root" "$root"
while [ "$1" != -- ]; do
  inside=$root${1#*:}
  mount --bind "${1%%:*}" "$inside"
  mount -o remount,bind,ro "$inside"
  shift
done
shift
mount -t proc proc "$root/proc" 2>/dev/null || :
mount -o remount,bind,ro "$root"
exec /usr/sbin/chroot "$root" "$@"
)";

// What it prints; nothing when it fails.
std::optional<std::string> OutputOf(const std::vector<std::string>& arguments,
                                    const std::string& error_file) {
  base::ChildProcess::Options options;
  options.arguments = arguments;
  options.error_file = error_file;
  auto process = base::ChildProcess::Start(options);
  if (!process.ok()) return std::nullopt;
  std::string output;
  for (;;) {
    const auto line = process->ReadLine(kPatience);
    if (!line.ok()) break;
    output += *line + "\n";
  }
  const auto code = process->Wait(kPatience);
  if (!code.ok() || *code != 0) return std::nullopt;
  return output;
}

void CopyInto(const std::string& root, const std::string& path) {
  std::error_code error;
  const fs::path copy = root + path;
  fs::create_directories(copy.parent_path(), error);
  fs::copy_file(path, copy, fs::copy_options::skip_existing, error);
  EXPECT_FALSE(error) << "copy " << path << ": " << error.message();
}

std::vector<std::string> Namespaces(const std::vector<std::string>& as) {
  std::vector<std::string> command = as;
  for (const char* word :
       {"/usr/bin/unshare", "--user", "--map-root-user", "--mount", "--pid",
        "--net", "--ipc", "--uts", "--fork", "--kill-child"}) {
    command.emplace_back(word);
  }
  return command;
}

}  // namespace

void MakeMinimalRoot(const std::string& root, const std::string& program) {
  fs::create_directories(root + "/proc");
  CopyInto(root, program);
  const auto libraries = OutputOf({FindProgram("ldd"), program}, root + ".ldd");
  ASSERT_TRUE(libraries.has_value()) << ReadText(root + ".ldd");
  // "libc.so.6 => /lib/.../libc.so.6 (0x...)", and the loader by its path.
  std::istringstream words(*libraries);
  for (std::string word; words >> word;) {
    if (word.front() == '/') CopyInto(root, word);
  }
  if (!kSanitized) return;
  // Where the environment has its lists.
  CopyInto(root, RKNND_SOURCE_ROOT "/cmake/lsan.supp");
  CopyInto(root, RKNND_SOURCE_ROOT "/cmake/tsan.supp");
}

std::vector<std::string> ContainerCommand(const ContainerOptions& options) {
  std::vector<std::string> command = Namespaces(options.as);
  for (const char* word : {"/bin/sh", "-c", kScript, "container"}) {
    command.emplace_back(word);
  }
  command.push_back(options.root);
  for (const auto& [host, inside] : options.mounts) {
    command.push_back(host + ":" + inside);
  }
  command.emplace_back("--");
  command.push_back(options.program);
  return command;
}

pid_t ContainerPid(pid_t command) {
  const std::string pid = std::to_string(command);
  pid_t child = 0;
  EXPECT_TRUE(Eventually([&] {
    std::istringstream children(
        ReadText("/proc/" + pid + "/task/" + pid + "/children"));
    return static_cast<bool>(children >> child);
  })) << "the container has no process";
  return child;
}

std::string WhyNoContainers(const std::vector<std::string>& as) {
  std::vector<std::string> command = Namespaces(as);
  command.insert(command.end(),
                 {"/bin/sh", "-c", "mount --make-rprivate / && echo made"});
  if (!fs::exists("/usr/bin/unshare") || FindProgram("ldd").empty()) {
    return "unshare or ldd is not installed";
  }
  const auto output = OutputOf(command, "/dev/null");
  if (output == "made\n") return "";
  return "this machine lets nobody make user and mount namespaces";
}

}  // namespace rknnd::integration
