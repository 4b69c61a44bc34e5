// See the header.

#include "daemon/process/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/known_soc.h"

namespace rknnd {
namespace {

// A file's path is from the root. That of a command is from where it is given.
void StartHere(std::optional<std::string>& path) {
  if (!path.has_value() || path->empty()) return;
  std::error_code error;
  const auto whole = std::filesystem::absolute(*path, error);
  if (!error) path = whole.lexically_normal().string();
}

}  // namespace

std::optional<CommandLine> ParseCommandLine(int argc, char** argv, int* code) {
  CommandLine line;
  CLI::App app{"rknnd: lets many processes share one NPU"};
  app.set_version_flag("--version", "rknnd " RKNND_VERSION);
  app.add_option("--config", line.config_path,
                 absl::StrCat("options in TOML (default ", kDefaultConfigPath,
                              " if there, without --socket)"));
  app.add_option(
      "--socket", line.socket,
      absl::StrCat("where clients connect (default ", kDefaultSocketPath, ")"));
  app.add_option("--device", line.device,
                 "soft, rknpu, rknnrt or auto (default)");
  app.add_option("--soc", line.soc,
                 "what the software NPU looks like (default rk3588)");
  app.add_option("--state-dir", line.state_dir, "kept over restarts");
  app.add_option("--cache-dir", line.cache_dir,
                 "models by hash; \"\" keeps none");
  app.add_option("--log-level", line.log_level,
                 "0 errors, 1 warnings, 2 notes (default), 3 to 5 everything");
  app.add_option("--pace", line.pace,
                 "on: jobs take as long as on the SoC, as far as "
                 "that is known; or off (default)")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--cache", line.cache,
                 "of the software NPU: coherent (default), or incoherent: a "
                 "forgotten rknn_mem_sync gives wrong data, as on a board")
      ->check(CLI::IsMember({"coherent", "incoherent"}));
  app.add_option("--grpc", line.grpc,
                 "serve gRPC at HOST:PORT or unix:PATH; may be repeated");
  app.add_option("--metrics", line.metrics,
                 "answer Prometheus at an address, as 127.0.0.1:9464");
  app.add_flag("--grpc-insecure", line.grpc_insecure,
               "serve gRPC without encryption beyond this machine, and let "
               "everybody there do everything");
  app.add_option("--model-repository", line.model_repository,
                 "folder of models that gRPC clients name");
  app.add_flag("--faults", line.faults,
               "let 'rknnctl fault' make things go wrong; for tests only");
  app.add_flag("--check-config", line.check_config,
               "check the options and end");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // 0 for --help and --version.
    *code = app.exit(error) == 0 ? 0 : 1;
    return std::nullopt;
  }
  StartHere(line.socket);
  StartHere(line.state_dir);
  StartHere(line.cache_dir);
  StartHere(line.model_repository);
  return line;
}

std::string ConfigFileOf(const CommandLine& line) {
  if (!line.config_path.empty()) return line.config_path;
  // One that serves elsewhere is somebody's own, not the machine's.
  if (line.socket.has_value()) return "";
  return access(kDefaultConfigPath, F_OK) == 0 ? kDefaultConfigPath : "";
}

absl::StatusOr<Config> MakeConfig(const CommandLine& line) {
  Config config;
  if (const std::string file = ConfigFileOf(line); !file.empty()) {
    RKNND_RETURN_IF_ERROR(ReadTomlFile(file, config));
  }
  if (line.socket) config.socket = *line.socket;
  if (line.device) config.device = *line.device;
  if (line.soc) config.soc = *line.soc;
  if (line.state_dir) config.state_dir = *line.state_dir;
  if (line.cache_dir) config.cache_dir = *line.cache_dir;
  if (line.pace) config.pace = *line.pace == "on";
  if (line.cache) config.cache = *line.cache;
  if (line.log_level) config.log_level = *line.log_level;
  if (line.faults) config.faults.enabled = true;
  if (!line.grpc.empty()) config.grpc.addresses = line.grpc;
  if (line.grpc_insecure) config.grpc.insecure = true;
  if (line.metrics) config.metrics = *line.metrics;
  if (line.model_repository) {
    config.grpc.model_repository = *line.model_repository;
  }
  RKNND_RETURN_IF_ERROR(CheckConfig(config));
  RKNND_RETURN_IF_ERROR(driver::CheckSoc(config.soc));
  return config;
}

}  // namespace rknnd
