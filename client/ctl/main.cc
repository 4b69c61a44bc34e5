// rknnctl: looks at a daemon and runs models through it. Does the one verb that
// the command line names, prints its answer as text or as one JSON document.
// Exit codes: 0 done, 1 failed, 2 bad usage; of lease, its command's.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/ctl/admit.h"
#include "client/ctl/bench.h"
#include "client/ctl/command_line.h"
#include "client/ctl/control_connection.h"
#include "client/ctl/fault.h"
#include "client/ctl/infer.h"
#include "client/ctl/lease.h"
#include "client/ctl/model_memory.h"
#include "client/ctl/progress.h"
#include "client/ctl/report.h"
#include "client/ctl/sram.h"
#include "client/ctl/terminal.h"
#include "client/ctl/text.h"
#include "client/ctl/trace.h"
#include "client/ctl/watch.h"
#include "rknnd.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

constexpr std::string_view kVerbs[] = {
    "status", "sessions", "models", "contexts", "buffers", "mem",
    "top",    "trace",    "admit",  "lease",    "infer",   "bench",
    "fault",  "perf",     "dump",   "info",     "doctor",  "devices",
    "logs",   "reset",    "drain",  "push",     "accuracy"};
// Verbs that rknnctl is going to have; asking for one is no misspelling.
constexpr std::string_view kLaterVerbs[] = {"convert"};

std::string Dump(const Json& json) { return DumpJson(json) + "\n"; }

int Fail(bool json, int exit_code, const std::string& message) {
  std::fprintf(stderr, "rknnctl: %s\n", Printable(message).c_str());
  if (json) std::fputs(Dump({{"error", message}}).c_str(), stdout);
  return exit_code;
}

bool Contains(const auto& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

Expected<Output> Report(const Options& options, std::string_view verb) {
  Expected<ControlConnection> daemon = ControlConnection::Open(options.target);
  if (!daemon) return std::move(daemon).error();
  const uint64_t own = daemon->session();
  rknnd_v1_ReportKind kind = rknnd_v1_ReportKind_REPORT_STATUS;
  if (verb == "sessions") kind = rknnd_v1_ReportKind_REPORT_SESSIONS;
  if (verb == "models") kind = rknnd_v1_ReportKind_REPORT_MODELS;
  if (verb == "contexts") kind = rknnd_v1_ReportKind_REPORT_CONTEXTS;
  if (verb == "buffers") kind = rknnd_v1_ReportKind_REPORT_BUFFERS;
  if (verb == "mem") kind = rknnd_v1_ReportKind_REPORT_MEMORY;
  const Expected<wire::Report> report = daemon->Ask(kind);
  if (!report) return report.error();
  if (verb == "sessions") return SessionsOutput(*report, own);
  if (verb == "models") return ModelsOutput(*report);
  if (verb == "contexts") return ContextsOutput(*report);
  if (verb == "buffers") return BuffersOutput(*report);
  if (verb == "mem") return MemoryOutput(*report, own);
  const Expected<wire::Report> sessions =
      daemon->Ask(rknnd_v1_ReportKind_REPORT_SESSIONS);
  if (!sessions) return sessions.error();
  return StatusOutput(*report, *sessions, own);
}

// rknnctl mem --sram.
Expected<Output> Sram(const std::string& target) {
  Expected<ControlConnection> daemon = ControlConnection::Open(target);
  if (!daemon) return std::move(daemon).error();
  const Expected<wire::Report> report =
      daemon->Ask(rknnd_v1_ReportKind_REPORT_SRAM);
  if (!report) return report.error();
  return SramOutput(*report, report->sram_total == 0 ? WhyNoSram(*report) : "");
}

// rknnctl fault list, set and clear.
Expected<Output> Faults(const std::string& target,
                        const FaultOptions& options) {
  Expected<ControlConnection> daemon = ControlConnection::OpenAdmin(target);
  if (!daemon) return std::move(daemon).error();
  switch (options.action) {
    case FaultAction::kList: {
      const Expected<wire::FaultList> list = daemon->ListFaults();
      if (!list) return list.error();
      return FaultListOutput(*list);
    }
    case FaultAction::kSet: {
      const Expected<wire::FaultReport> set =
          daemon->SetFault(ToFaultMessage(options));
      if (!set) return set.error();
      return FaultSetOutput(*set);
    }
    case FaultAction::kClear: {
      // UsageFault has looked at it.
      const uint64_t id = ParseFaultId(options.id).value_or(0);
      const Expected<void> done = daemon->ClearFault(id);
      if (!done) return done.error();
      return Output{{{"cleared", options.id}},
                    id == 0 ? "all faults are cleared\n"
                            : "fault " + options.id + " is cleared\n"};
    }
  }
  return Error{Code::kInternal, "no such action"};
}

Expected<Output> Do(const Options& options, std::string_view verb) {
  if (verb == "infer") return Infer(options.infer);
  if (verb == "bench") return Bench(options.bench);
  if (verb == "top") return LookOnce(options.watch);
  if (verb == "trace") return Trace(options.trace);
  if (verb == "fault") return Faults(options.target, options.fault);
  if (verb == "perf") return Perf(options.models.perf);
  if (verb == "dump") return DumpLayers(options.models.dump);
  if (verb == "accuracy") return Accuracy(options.models.accuracy);
  if (verb == "info") return Info(options.models.info);
  if (options.memory_sram) return Sram(options.target);
  if (!options.memory_model.empty()) return MemoryOfModel(options.memory_model);
  return Report(options, verb);
}

// What the library does that takes long: another machine's model on its way,
// layers on their way into files.
class Transfers {
 public:
  explicit Transfers(bool quiet) : bar_(quiet, Progress::Unit::kBytes) {
    rknnd_set_progress(
        [](void* self, const char* what, uint64_t done, uint64_t total) {
          static_cast<Transfers*>(self)->Show(what, done, total);
        },
        this);
  }
  ~Transfers() { rknnd_set_progress(nullptr, nullptr); }
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

 private:
  void Show(const char* what, uint64_t done, uint64_t total) {
    bar_.Update(what, done, total);
    if (done >= total) bar_.Clear();
  }

  Progress bar_;
};

// The verbs whose exit code is an answer, too.
std::optional<int> DoWithExitCode(const Options& options, std::string_view verb,
                                  Expected<Output>* output) {
  if (verb == "admit") {
    Expected<AdmitAnswer> answer = Admit(options.admit);
    if (!answer) {
      *output = std::move(answer).error();
      return kFailed;
    }
    *output = std::move(answer->output);
    return answer->fits ? kOk : kFailed;
  }
  if (verb == "lease") {
    Expected<LeaseEnd> end = RunLeased(options.lease);
    if (!end) {
      *output = std::move(end).error();
      return kFailed;
    }
    *output = std::move(end->output);
    return end->exit_code;
  }
  return std::nullopt;
}

int Main(int argc, char** argv) {
  // What stands behind "--" is another program's.
  std::vector<std::string> command;
  char** const dashes =
      std::find_if(argv + 1, argv + argc,
                   [](std::string_view word) { return word == "--"; });
  if (dashes != argv + argc && FindVerb(argc, argv) == "lease") {
    command.assign(dashes + 1, argv + argc);
    argc = static_cast<int>(dashes - argv);
  }
  const bool json =
      std::any_of(argv + 1, argv + argc,
                  [](std::string_view word) { return word == "--json"; });
  const std::string verb(FindVerb(argc, argv));
  if (Contains(kLaterVerbs, verb)) {
    return Fail(json, kFailed,
                "'" + verb + "' is not supported in this version");
  }
  if (!verb.empty() && !Contains(kVerbs, verb)) {
    return Fail(json, kBadUsage,
                "no verb '" + verb + "': rknnctl --help lists them");
  }

  Options options;
  CLI::App app("Looks at an rknnd daemon, and runs models through it.",
               "rknnctl");
  Declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& fault) {
    return Fail(json, kBadUsage,
                std::string(fault.what()) + ": see rknnctl " +
                    (verb.empty() ? "" : verb + " ") + "--help");
  }
  options.lease.command = std::move(command);
  options.lease.json = json;
  if (const std::string fault = UsageFault(options, verb); !fault.empty()) {
    return Fail(json, kBadUsage, fault);
  }
  // The library reads these at its first call; no other thread is there yet.
  // Its errors are ours to print, unless the user asked for its log.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  ::setenv("RKNN_LOG_LEVEL", "0", 0);
  // What a file is can be told without a daemon, too.
  if (verb == "info" && options.target.empty() &&
      !ControlConnection::Open("")) {
    options.target = "local:";
  }
  if (!options.target.empty() &&
      // NOLINTNEXTLINE(concurrency-mt-unsafe)
      ::setenv("RKNND_TARGET", options.target.c_str(), 1) != 0) {
    return Fail(json, kFailed, "cannot set RKNND_TARGET");
  }

  options.watch.target = options.trace.target = options.lease.target =
      options.models.perf.target = options.target;
  options.models.perf.json = options.models.accuracy.json = json;
  options.models.accuracy.target = options.target;
  if (verb == "top" && !json && !options.once && Terminal::IsOne()) {
    const Expected<void> watched = Watch(options.watch);
    return watched ? kOk : Fail(json, kFailed, watched.error().message);
  }
  Expected<Output> output = Output{};
  std::optional<Transfers> transfers(std::in_place, json);
  std::optional<int> exit_code = DoWithExitCode(options, verb, &output);
  if (std::optional<VerbEnd> end =
          DoBoardVerb(verb, options.target, json, options.board)) {
    if (end->printed) return end->exit_code;
    output = std::move(end->output);
    exit_code = end->exit_code;
  } else if (!exit_code) {
    output = Do(options, verb);
  }
  transfers.reset();  // its line is not to stand before what follows
  if (!output) return Fail(json, kFailed, output.error().message);
  const std::string text = json ? Dump(output->json) : output->text;
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    std::fputs("rknnctl: cannot write to stdout\n", stderr);
    return kFailed;
  }
  return exit_code.value_or(kOk);
}

}  // namespace
}  // namespace rknnd::client

int main(int argc, char** argv) {
  try {
    return rknnd::client::Main(argc, argv);
  } catch (const std::exception& fault) {  // out of memory, mostly
    std::fprintf(stderr, "rknnctl: %s\n", fault.what());
    return 1;
  }
}
