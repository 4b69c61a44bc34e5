// rknnd: reads its options, starts the daemon, serves until told to stop.
//
//   PrepareGrpc, Privileges, Signals  before the first thread
//   Runtime, gRPC, sockets, metrics   open all that needs rights
//   Privileges::Drop                  none are left when the first client comes
//   READY=1, Run                      until SIGTERM or SIGINT; SIGHUP reloads

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"
#include "daemon/board/files.h"
#include "daemon/board/log_tail.h"
#include "daemon/board/start_warnings.h"
#include "daemon/config/config.h"
#include "daemon/core/terms/events.h"
#include "daemon/network/grpc_library.h"
#include "daemon/network/network.h"
#include "daemon/process/command_line.h"
#include "daemon/process/fd_store.h"
#include "daemon/process/listeners.h"
#include "daemon/process/log.h"
#include "daemon/process/privileges.h"
#include "daemon/process/signals.h"
#include "daemon/process/systemd.h"
#include "daemon/process/watchdog.h"
#include "daemon/progress_watch.h"
#include "daemon/reload.h"
#include "daemon/runtime.h"
#include "daemon/runtime_options.h"
#include "daemon/start_check.h"
#include "driver/rknnrt/protocol.h"
#include "driver/rknnrt/worker/worker.h"

namespace rknnd {
namespace {

using transport::Severity;

// To start again would not help (EX_CONFIG, as the unit knows).
constexpr int kWrongConfiguration = 78;

// Models that were kept over a restart wait at least so long for clients that
// come back.
constexpr base::Nanoseconds kShortestReturn = 30 * base::kSecond;

// Large pieces are mapped one by one, and go back to the kernel when they are
// freed. By itself the C library takes ever larger ones from the heaps of its
// threads once one was freed, and what is free at the top of these is not given
// back, not even by malloc_trim.
void KeepHeapsSmall() {
  constexpr int kMapped = 1 << 20;
  constexpr int kSpare = 4 << 20;
  mallopt(M_MMAP_THRESHOLD, kMapped);
  mallopt(M_TRIM_THRESHOLD, kSpare);
}

// Each line of an error by itself.
void Print(const absl::Status& status) {
  for (const auto line :
       absl::StrSplit(status.message(), '\n', absl::SkipEmpty())) {
    std::fprintf(stderr, "rknnd: %s\n", std::string(line).c_str());
  }
}

void LogLines(transport::EventLog& log, Severity severity,
              const std::string& text, core::Event event) {
  core::EventFields fields;
  fields.event = event;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    log.WriteEvent(severity, std::string(line), fields);
  }
}

// What is opened first would have the numbers of the streams that whoever
// started us has closed, and would be sent our words.
void OpenStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR | O_CLOEXEC);
  }
}

// Each session and each buffer takes some (Session::descriptors_taken): as many
// as we may.
void RaiseFdLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

FdStore::Notify StoreNotify() {
  if (!HasServiceManager()) return nullptr;
  return NotifyServiceManager;
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

// What signals do. Thread: loop.
class Orders {
 public:
  Orders(Runtime* runtime, Reloader* reloader, FdStore* store,
         board::LogTail* log)
      : runtime_(runtime), reloader_(reloader), store_(store), log_(log) {}

  void OnSignal(int signal) {
    if (signal == SIGHUP) return Reload();
    const bool again = std::exchange(stopping_, true);
    LogLines(*log_, Severity::kInfo,
             absl::StrCat("signal ", signal,
                          again ? " again: jobs that run are all that is "
                                  "waited for"
                                : ": jobs that run end first"),
             core::Event::kStopping);
    NotifyServiceManager("STOPPING=1");
    // For the daemon after this one.
    store_->Freeze();
    runtime_->Stop();
  }

 private:
  void Reload() {
    if (stopping_) return;
    NotifyServiceManager(ReloadingState());
    const absl::Status status = reloader_->Reload();
    if (status.ok()) {
      LogLines(*log_, Severity::kInfo, "configuration read again",
               core::Event::kReloaded);
    } else {
      LogLines(*log_, Severity::kError,
               absl::StrCat("configuration not taken over, the one before it "
                            "stays in force: ",
                            std::string(status.message())),
               core::Event::kReloadFailed);
    }
    NotifyServiceManager("READY=1");
  }

  Runtime* const runtime_;
  Reloader* const reloader_;
  FdStore* const store_;
  board::LogTail* const log_;
  bool stopping_ = false;
};

void WarnAtStart(const CommandLine& line, const Config& config,
                 const Runtime& runtime, board::LogTail& log) {
  for (const std::string& warning : config.warnings) {
    log.Write(Severity::kWarning, warning);
  }
  if (const std::string warning = WarningOfFile(ConfigFileOf(line));
      !warning.empty()) {
    log.Write(Severity::kWarning, warning);
  }
  if (const absl::Status cache = runtime.service().cache_status();
      !cache.ok()) {
    log.Write(Severity::kWarning, std::string(cache.message()));
  }
  for (const std::string& warning :
       board::StartWarnings(board::Files(), config.device,
                            runtime.service().device_info().kind)) {
    log.Write(Severity::kWarning, warning);
  }
}

absl::Status Serve(const CommandLine& line, const Config& config,
                   board::LogTail& log) {
  // Rings and answers are memfds: without them no session could begin.
  RKNND_RETURN_IF_ERROR(
      base::ToStatusOr(base::MakeGrowingMemfd("rknnd-start")).status());
  FdStore store(StoreNotify(), FdStore::Limits(), &log);
  const RuntimeOptions options = RuntimeOptionsOf(config, log, &store);
  PrivilegeOptions rights;
  rights.user = config.run_as;
  rights.folders = {config.state_dir, options.cache_dir};
  PrepareGrpc();
  RKNND_ASSIGN_OR_RETURN(Privileges privileges, Privileges::Prepare(rights));
  RKNND_ASSIGN_OR_RETURN(Signals signals, Signals::Block());
  RaiseFdLimit();
  RKNND_ASSIGN_OR_RETURN(std::vector<PassedFd> passed, TakePassedFds());
  RKNND_ASSIGN_OR_RETURN(SortedFds sorted,
                         SortFds(std::move(passed), store, log));
  store.Adopt(std::move(sorted.models));
  Listeners listeners(&store, &log);
  RKNND_ASSIGN_OR_RETURN(const std::unique_ptr<Runtime> runtime,
                         Runtime::Create(options));
  WarnAtStart(line, config, *runtime, log);
  // Before the local sockets: who finds those finds all that is configured.
  Network network(config, *runtime, log);
  RKNND_RETURN_IF_ERROR(network.ServeGrpc());
  RKNND_RETURN_IF_ERROR(listeners.Listen(config, std::move(sorted.sockets),
                                         std::move(sorted.own),
                                         runtime->server()));
  RKNND_RETURN_IF_ERROR(network.ServeMetrics());
  RKNND_RETURN_IF_ERROR(privileges.Drop());

  Reloader reloader(line, config, *runtime, network, log);
  Orders orders(runtime.get(), &reloader, &store, &log);
  RKNND_RETURN_IF_ERROR(signals.Watch(
      runtime->loop(), [&orders](int signal) { orders.OnSignal(signal); }));
  const std::string about = Describe(config, *runtime, options.cache_dir);
  LogLines(log, Severity::kInfo, about, core::Event::kStarted);
  runtime->loop().RunAfter(std::max(config.grace, kShortestReturn),
                           [&store] { store.DropUnused(); });
  const base::Nanoseconds watchdog_time = WatchdogTime();
  ProgressWatch progress(&runtime->clock(), watchdog_time);
  std::unique_ptr<Watchdog> watchdog;
  if (watchdog_time > 0) {
    runtime->AddProgress(progress);
    watchdog = std::make_unique<Watchdog>(Watchdog::Parts{
        &runtime->loop(), &progress, &log, watchdog_time / 2,
        [](const std::string& state) { NotifyServiceManager(state); }, about});
  }
  NotifyServiceManager(absl::StrCat("READY=1\nSTATUS=", about));
  network.Advertise();
  runtime->Run();
  signals.Unwatch();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  KeepHeapsSmall();
  OpenStreams();
  int code = 0;
  const std::optional<CommandLine> line = ParseCommandLine(argc, argv, &code);
  if (!line.has_value()) return code;
  const absl::StatusOr<Config> config = MakeConfig(*line);
  const absl::Status wrong =
      config.ok() ? Network::CheckMetrics(*config) : config.status();
  if (!wrong.ok()) {
    Print(wrong);
    return kWrongConfiguration;
  }
  if (line->check_config) {
    const std::string file = ConfigFileOf(*line);
    std::vector<std::string> warnings = config->warnings;
    warnings.push_back(WarningOfFile(file));
    for (const std::string& warning : warnings) {
      if (warning.empty()) continue;
      std::fprintf(stderr, "rknnd: warning: %s\n", warning.c_str());
    }
    if (const absl::Status start = CheckStart(*config); !start.ok()) {
      Print(start);
      return kWrongConfiguration;
    }
    std::printf("rknnd: %s is good\n",
                file.empty() ? "what there is without a file"
                             : absl::StrCat("'", file, "'").c_str());
    return 0;
  }
  const std::unique_ptr<transport::EventLog> lines = OpenLog();
  board::LogTail log(lines.get(), config->log_level);
  const absl::Status status = Serve(*line, *config, log);
  if (status.ok()) return 0;
  LogLines(log, Severity::kError, std::string(status.message()),
           core::Event::kOther);
  return 1;
}

}  // namespace
}  // namespace rknnd

int main(int argc, char** argv) {
  // Of its own making: the process that hosts the vendor's library.
  if (argc == 2 &&
      std::string_view(argv[1]) == rknnd::rknnrt::kWorkerArgument) {
    rknnd::rknnrt::RunWorker();
  }
  return rknnd::Main(argc, argv);
}
