// What rknnd is told when it is started. The command line stays in force when
// the configuration file is read again.

#ifndef DAEMON_PROCESS_COMMAND_LINE_H_
#define DAEMON_PROCESS_COMMAND_LINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/config/config.h"

namespace rknnd {

struct CommandLine {
  std::string config_path;
  std::optional<std::string> socket, device, soc, state_dir, cache_dir, pace;
  std::optional<std::string> cache;
  std::optional<uint32_t> log_level;
  std::vector<std::string> grpc;
  std::optional<std::string> metrics;
  std::optional<std::string> model_repository;
  bool grpc_insecure = false;
  bool faults = false;
  bool check_config = false;
};

// What the arguments say; relative paths begin in the current folder. Without a
// value: there is nothing to do but to exit with `code` (--help, --version, a
// mistake; the text is out).
std::optional<CommandLine> ParseCommandLine(int argc, char** argv, int* code);

// The file that is read: the one asked for, else the default one where there
// is one and no socket was asked for; empty: none.
std::string ConfigFileOf(const CommandLine& line);

// Defaults, the file, and the command line over it, checked.
absl::StatusOr<Config> MakeConfig(const CommandLine& line);

}  // namespace rknnd

#endif  // DAEMON_PROCESS_COMMAND_LINE_H_
