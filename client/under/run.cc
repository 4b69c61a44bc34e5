// rknnd-run COMMAND...: starts a program that knows nothing of rknnd so that it
// gets rknnd's librknnrt.so, whether it is linked to that library, opens it by
// name or at an absolute path. The program and all that it starts inherit this.
// Nothing on the machine is changed.
//
// Exit codes: those of COMMAND; 127: not found, 126: cannot be run so, 2: bad
// usage, 1: rknnd's own files are missing.

#include <getopt.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "client/under/command.h"
#include "client/under/program_environment.h"

namespace rknnd::client {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

constexpr char kHelp[] =
    "usage: rknnd-run [OPTIONS] [--] COMMAND [ARGUMENTS]\n"
    "\n"
    "Starts COMMAND, unmodified, on rknnd's librknnrt.so in place of the\n"
    "vendor's. All that COMMAND starts gets it too.\n"
    "\n"
    "  --target T      where the daemon is: unix:PATH, tcp://HOST:PORT or\n"
    "                  local: (sets RKNND_TARGET)\n"
    "  --log-level N   what the library tells on stderr, 0 (nothing), 1\n"
    "                  (errors, as without it) to 5 (sets RKNN_LOG_LEVEL)\n"
    "  --python        rknnd's Python modules rknnlite and rknn in place of\n"
    "                  the vendor's (puts their folder into PYTHONPATH)\n"
    "  --version       print the version, and end\n"
    "  --help          print this, and end\n";

int Fail(int exit_code, const std::string& message) {
  std::fprintf(stderr, "rknnd-run: %s\n", message.c_str());
  return exit_code;
}

int BadUsage(const std::string& message) {
  return Fail(kBadUsage, message + " (rknnd-run --help)");
}

std::string FromEnv(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
  const char* const value = ::getenv(name);
  return value == nullptr ? "" : value;
}

void Set(const char* name, const std::string& value) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
  ::setenv(name, value.c_str(), 1);
}

// Where installed, and in a build tree.
std::vector<std::string> Folders() {
  std::error_code error;
  const std::filesystem::path prefix =
      std::filesystem::read_symlink("/proc/self/exe", error)
          .parent_path()
          .parent_path();
  if (error) return {RKNND_MODULE_DIR};
  return {(prefix / RKNND_MODULE_DIR_OF_PREFIX).string(),
          (prefix / "lib").string()};
}

// Of package python3-rknnd, or the build tree's link to it; "" where neither
// is.
std::string PythonFolder() {
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe", error)
          .parent_path()
          .parent_path() /
      "lib/python3/rknnd-shims";
  return std::filesystem::exists(folder / "rknnlite", error) ? folder.string()
                                                             : "";
}

struct Asked {
  std::string target;
  std::string log_level;
  bool python = false;
};

int Start(const Asked& asked, char** command) {
  const auto ours = FindOurs(Folders());
  if (!ours) return Fail(kFailed, ours.error().message);
  const auto path = FindCommand(command[0], FromEnv("PATH"));
  if (!path) return Fail(ExitCodeOf(path.error().code), path.error().message);
  if (const auto checked = CheckCommand(*path); !checked) {
    return Fail(ExitCodeOf(checked.error().code), checked.error().message);
  }

  // The module alone would do, but for programs that take LD_AUDIT out of the
  // environment of what they start.
  Set("LD_LIBRARY_PATH", PutInFront(*ours, FromEnv("LD_LIBRARY_PATH")));
  Set("LD_AUDIT", PutInFront(*ours + "/" + kUnderModule, FromEnv("LD_AUDIT")));
  if (asked.python) {
    const std::string folder = PythonFolder();
    if (folder.empty()) {
      return Fail(kFailed,
                  "--python: the modules are missing: install package "
                  "python3-rknnd");
    }
    Set("PYTHONPATH", PutInFront(folder, FromEnv("PYTHONPATH")));
  }
  if (!asked.target.empty()) Set("RKNND_TARGET", asked.target);
  if (!asked.log_level.empty()) Set("RKNN_LOG_LEVEL", asked.log_level);

  // As a shell does: a script without '#!' is one for sh.
  ::execvp(path->c_str(), command);
  const auto error = base::ErrnoError(errno, "start '" + *path + "'");
  return Fail(ExitCodeOf(error.code), error.message);
}

int Main(int argc, char** argv) {
  enum : int { kTarget = 256, kLogLevel, kPython, kVersion, kHelpOption };
  const option options[] = {
      {"target", required_argument, nullptr, kTarget},
      {"log-level", required_argument, nullptr, kLogLevel},
      {"python", no_argument, nullptr, kPython},
      {"version", no_argument, nullptr, kVersion},
      {"help", no_argument, nullptr, kHelpOption},
      {nullptr, 0, nullptr, 0}};
  Asked asked;
  int choice = 0;
  // '+': what stands behind COMMAND is COMMAND's. getopt prints what is wrong.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
  while ((choice = ::getopt_long(argc, argv, "+", options, nullptr)) != -1) {
    switch (choice) {
      case kTarget:
        asked.target = optarg;
        if (asked.target.empty()) {
          return BadUsage(
              "--target is empty: unix:PATH, tcp://HOST:PORT or local:");
        }
        break;
      case kLogLevel:
        asked.log_level = optarg;
        if (asked.log_level.size() != 1 || asked.log_level[0] < '0' ||
            asked.log_level[0] > '5') {
          return BadUsage("--log-level '" + asked.log_level +
                          "' is none of 0 to 5");
        }
        break;
      case kPython:
        asked.python = true;
        break;
      case kVersion:
        std::puts("rknnd-run " RKNND_VERSION);
        return 0;
      case kHelpOption:
        std::fputs(kHelp, stdout);
        return 0;
      default:
        return kBadUsage;
    }
  }
  if (optind == argc) return BadUsage("the command is missing");
  return Start(asked, argv + optind);
}

}  // namespace
}  // namespace rknnd::client

int main(int argc, char** argv) { return rknnd::client::Main(argc, argv); }
