#include "tests/packaging/staging.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <utility>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::packaging {
namespace {

namespace fs = std::filesystem;

constexpr char kUnits[] = "/usr/lib/systemd/system";
constexpr char kUserUnits[] = "/usr/lib/systemd/user";

// systemd's own units that ours name, as far as a check of ours needs them.
constexpr const char* kTargets[] = {"basic", "shutdown", "sockets", "sysinit",
                                    "timers"};

base::TemporaryFolder MakeFolder() {
  auto folder = base::TemporaryFolder::Make();
  EXPECT_TRUE(folder.ok());
  return *std::move(folder);
}

}  // namespace

std::string SourceFolder() { return RKNND_SOURCE_ROOT "/systemd"; }

std::string Source(const std::string& path) {
  return integration::ReadText(SourceFolder() + "/" + path);
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Staging::Staging() : folder_(MakeFolder()) {
  for (const char* folder :
       {kUnits, kUserUnits, "/usr/lib/sysusers.d", "/usr/lib/tmpfiles.d",
        "/usr/sbin", "/usr/bin", "/bin", "/etc"}) {
    fs::create_directories(Path(folder));
  }
  for (const auto& entry : fs::directory_iterator(SourceFolder())) {
    const std::string kind = entry.path().extension();
    if (kind == ".service" || kind == ".socket" || kind == ".timer") {
      fs::copy(entry.path(), Path(kUnits));
    }
  }
  fs::copy(SourceFolder() + "/user", Path(kUserUnits));
  fs::create_directories(Path("/usr/lib/systemd/system-preset"));
  fs::copy(SourceFolder() + "/system-preset",
           Path("/usr/lib/systemd/system-preset"));
  fs::copy(SourceFolder() + "/sysusers.d", Path("/usr/lib/sysusers.d"));
  fs::copy(SourceFolder() + "/tmpfiles.d", Path("/usr/lib/tmpfiles.d"));
  for (const std::string target : kTargets) {
    integration::WriteFile(
        Path(std::string(kUnits) + "/" + target + ".target"),
        "[Unit]\nDescription=" + target + "\nDefaultDependencies=no\n");
  }
  for (const char* program : {"/usr/sbin/rknnd", "/usr/sbin/rknnd-k8s",
                              "/bin/kill", "/bin/systemctl"}) {
    const std::string path =
        integration::WriteFile(Path(program), "#!/bin/sh\n");
    fs::permissions(path, fs::perms::owner_all, fs::perm_options::add);
  }
}

Ended Staging::Run(std::vector<std::string> arguments) const {
  arguments.front() = integration::FindProgram(arguments.front());
  for (std::string& argument : arguments) {
    const size_t at = argument.find("ROOT");
    if (at != std::string::npos) argument.replace(at, 4, Path(""));
  }
  base::ChildProcess::Options options;
  options.arguments = std::move(arguments);
  options.error_file = scratch() + "/errors";
  fs::remove(options.error_file);
  // For the tools that want to be a user's; "dumb" keeps colours out.
  options.environment = {{"XDG_RUNTIME_DIR", scratch()},
                         {"HOME", scratch()},
                         {"TERM", "dumb"},
                         {"LC_ALL", "C.UTF-8"}};
  auto process = base::ChildProcess::Start(options);
  EXPECT_TRUE(process.ok()) << process.error().message;
  if (!process.ok()) return {};
  Ended ended;
  const auto output = process->ReadAll(integration::kPatience);
  if (output.ok()) ended.output = *output;
  const auto code = process->Wait(integration::kPatience);
  if (code.ok()) ended.code = *code;
  ended.errors = integration::ReadText(options.error_file);
  return ended;
}

}  // namespace rknnd::packaging
