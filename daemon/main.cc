// rknnd: reads its options, starts the daemon, serves until told to stop.

#include <fcntl.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "daemon/board/log_tail.h"
#include "daemon/config.h"
#include "daemon/grpc_library.h"
#include "daemon/network.h"
#include "daemon/power.h"
#include "daemon/runtime.h"
#include "daemon/systemd.h"

namespace rknnd {
namespace {

// Clients: owner and group. Operators: owner.
constexpr unsigned int kSessionMode = 0660;
constexpr unsigned int kAdminMode = 0600;

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

// Lines for people, on stderr; the service manager adds time and name.
class StderrLog final : public transport::EventLog {
 public:
  StderrLog() : log_("rknnd", Sink()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread is started
    const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
    log_.set_pattern(journal ? "%v" : "%Y-%m-%d %H:%M:%S.%e %l: %v");
    // What comes here has passed the level that operators set.
    log_.set_level(spdlog::level::debug);
    log_.flush_on(spdlog::level::trace);
  }

  void Write(transport::Severity severity, const std::string& text) override {
    switch (severity) {
      case transport::Severity::kError:
        return log_.error(text);
      case transport::Severity::kWarning:
        return log_.warn(text);
      case transport::Severity::kInfo:
        return log_.info(text);
      case transport::Severity::kDebug:
        return log_.debug(text);
    }
  }

 private:
  static std::shared_ptr<spdlog::sinks::sink> Sink() {
    return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }

  spdlog::logger log_;
};

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "rknnd: %s\n", std::string(status.message()).c_str());
  return 1;
}

absl::StatusOr<Config> MakeConfig(const CommandLine& line) {
  Config config;
  if (!line.config_path.empty()) {
    RKNND_RETURN_IF_ERROR(ReadTomlFile(line.config_path, config));
  } else if (access(kDefaultConfigPath, F_OK) == 0) {
    RKNND_RETURN_IF_ERROR(ReadTomlFile(kDefaultConfigPath, config));
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
  return config;
}

// Where a pin of the clocks is noted: beside the socket unless told where, as a
// reboot undoes it anyway.
std::string PinRecord(const Config& config) {
  constexpr char kName[] = "/pinned-clocks";
  if (!config.state_dir.empty()) return config.state_dir + kName;
  const size_t slash = config.socket.rfind('/');
  return slash == std::string::npos ? ""
                                    : config.socket.substr(0, slash) + kName;
}

// A folder of ours, made when missing.
absl::Status MakeFolder(const std::string& path) {
  if (path.empty() || mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) {
    return absl::OkStatus();
  }
  return base::ToStatus(
      base::ErrnoError(errno, absl::StrCat("mkdir '", path, "'")));
}

// Each session takes four fds and each buffer one: as many as we may.
void RaiseFdLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// SIGTERM and SIGINT as an fd; they stay blocked in all threads.
absl::StatusOr<base::UniqueFd> MakeSignalFd() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  base::UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return base::ToStatus(base::ErrnoError(errno, "signalfd"));
  return fd;
}

// Listens on what the service manager passed, else on the configured path.
// Names made here are in `names`.
absl::Status Listen(const Config& config, Runtime& runtime,
                    std::vector<std::string>& names) {
  RKNND_ASSIGN_OR_RETURN(std::vector<PassedSocket> passed, TakePassedSockets());
  for (PassedSocket& socket : passed) {
    RKNND_RETURN_IF_ERROR(
        runtime.server().Serve(std::move(socket.fd), socket.admin));
  }
  if (!passed.empty()) return absl::OkStatus();
  const std::string admin = AdminSocketFor(config.socket);
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd operators,
                         transport::ListenAt(admin, kAdminMode));
  names.push_back(admin);
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd clients,
                         transport::ListenAt(config.socket, kSessionMode));
  names.push_back(config.socket);
  RKNND_RETURN_IF_ERROR(runtime.server().Serve(std::move(operators), true));
  return runtime.server().Serve(std::move(clients), false);
}

// Tells the service manager that the loop turns, as often as it wants.
void KeepWatchdogFed(Runtime& runtime, base::Nanoseconds period) {
  NotifyServiceManager("WATCHDOG=1");
  runtime.loop().RunAfter(
      period, [&runtime, period] { KeepWatchdogFed(runtime, period); });
}

std::string Describe(const Config& config, const Runtime& runtime,
                     const std::string& cache_dir) {
  const driver::DeviceInfo& device = runtime.service().device_info();
  return absl::StrCat(
      "rknnd " RKNND_VERSION " serves device '", device.kind, "' as ",
      device.soc, " with ", device.cores, " core(s) at '", config.socket,
      "'; heaps, best first: ", runtime.heaps().Describe(), "; ",
      cache_dir.empty() ? "no model cache"
                        : absl::StrCat("model cache '", cache_dir, "'"));
}

absl::Status Serve(const Config& config, board::LogTail& log) {
  std::signal(SIGPIPE, SIG_IGN);
  RKNND_ASSIGN_OR_RETURN(const base::UniqueFd signals, MakeSignalFd());
  RaiseFdLimit();
  RuntimeOptions options;
  options.device = config.device;
  options.soc = config.soc;
  options.pace = config.pace;
  options.incoherent = config.cache == "incoherent";
  options.heaps = config.heaps;
  options.isolate = config.isolate;
  options.limits = config.limits;
  options.address_space = config.address_space;
  options.user_limits = config.user_limits;
  options.users = config.users;
  options.scheduling = config.scheduling;
  options.trace_dir = config.state_dir;
  options.scheduling.spin = config.spin.value_or(AutomaticSpin());
  options.server_limits = config.server_limits;
  options.physical_memory = config.physical_memory;
  options.model_grace = config.grace;
  options.cache_dir = config.cache_dir.value_or(DefaultCacheDir());
  options.cache_bytes = config.cache_bytes;
  options.preload = config.preload;
  if (config.faults.enabled) {
    options.faults = RuntimeFaults{config.faults.give_up, config.faults.preset};
  }
  options.log = &log;
  options.board = RuntimeBoard{"", PinRecord(config), RKNND_VERSION, &log};
  RKNND_RETURN_IF_ERROR(MakeFolder(config.state_dir));
  RKNND_RETURN_IF_ERROR(MakeFolder(options.cache_dir));
  RKNND_ASSIGN_OR_RETURN(const std::unique_ptr<Runtime> runtime,
                         Runtime::Create(options));
  if (const absl::Status cache = runtime->service().cache_status();
      !cache.ok()) {
    log.Write(transport::Severity::kWarning, std::string(cache.message()));
  }
  // Before the local sockets: who finds those finds all that is configured.
  Network network(config, *runtime, log);
  RKNND_RETURN_IF_ERROR(network.ServeGrpc());
  std::vector<std::string> names;
  absl::Status status = Listen(config, *runtime, names);
  if (status.ok()) status = network.ServeMetrics();
  if (status.ok()) {
    status = base::ToStatusOr(
                 runtime->loop().Watch(
                     signals.get(), EPOLLIN,
                     [&](uint32_t) {
                       signalfd_siginfo signal{};
                       if (read(signals.get(), &signal, sizeof signal) <= 0)
                         return;
                       log.Write(transport::Severity::kInfo,
                                 absl::StrCat("signal ", signal.ssi_signo,
                                              ": jobs that run end first"));
                       NotifyServiceManager("STOPPING=1");
                       runtime->Stop();
                     }))
                 .status();
  }
  if (status.ok()) {
    const std::string line = Describe(config, *runtime, options.cache_dir);
    log.Write(transport::Severity::kInfo, line);
    if (const base::Nanoseconds period = WatchdogPeriod(); period > 0) {
      KeepWatchdogFed(*runtime, period);
    }
    NotifyServiceManager(absl::StrCat("READY=1\nSTATUS=", line));
    network.Advertise();
    runtime->Run();
  }
  for (const std::string& name : names) unlink(name.c_str());
  return status;
}

int Main(int argc, char** argv) {
  CommandLine line;
  CLI::App app{"rknnd: lets many processes share one NPU"};
  app.set_version_flag("--version", "rknnd " RKNND_VERSION);
  app.add_option("--config", line.config_path,
                 absl::StrCat("options in TOML (default ", kDefaultConfigPath,
                              " if there)"));
  app.add_option(
      "--socket", line.socket,
      absl::StrCat("where clients connect (default ", kDefaultSocketPath, ")"));
  app.add_option("--device", line.device, "soft, rknnrt or auto (default)");
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
    return app.exit(error) == 0 ? 0 : 1;
  }
  const absl::StatusOr<Config> config = MakeConfig(line);
  if (!config.ok()) return Fail(config.status());
  if (line.check_config) {
    if (config->grpc.addresses.empty()) return 0;
    const absl::Status grpc = CheckGrpcServer(config->grpc);
    return grpc.ok() ? 0 : Fail(grpc);
  }
  StderrLog lines;
  board::LogTail log(&lines, config->log_level);
  const absl::Status status = Serve(*config, log);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace
}  // namespace rknnd

int main(int argc, char** argv) { return rknnd::Main(argc, argv); }
