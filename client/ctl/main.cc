// rknnctl: looks at a daemon and runs models through it. Parses the command
// line, does one verb, prints its answer as text or as one JSON document.
// Exit codes: 0 done, 1 failed, 2 bad usage.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/ctl/bench.h"
#include "client/ctl/control_connection.h"
#include "client/ctl/fault.h"
#include "client/ctl/finite_range.h"
#include "client/ctl/infer.h"
#include "client/ctl/model_memory.h"
#include "client/ctl/model_verbs.h"
#include "client/ctl/report.h"
#include "client/ctl/sram.h"
#include "client/ctl/terminal.h"
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
    "status", "sessions", "models", "contexts", "buffers", "mem", "top",
    "infer",  "bench",    "fault",  "perf",     "dump",    "info"};
// Verbs that rknnctl is going to have; asking for one is no misspelling.
constexpr std::string_view kLaterVerbs[] = {
    "accuracy", "convert", "devices", "doctor", "reset",
    "drain",    "lease",   "admit",   "logs",   "trace"};

struct Options {
  std::string target;
  bool json = false;
  std::string memory_model;
  bool memory_sram = false;
  InferOptions infer;
  BenchOptions bench;
  WatchOptions watch;
  FaultOptions fault;
  ModelVerbs models;
  bool once = false;
  std::string core_mask = "auto";
};

// Text that came from elsewhere may be no UTF-8; JSON has to be.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int Fail(bool json, int exit_code, const std::string& message) {
  std::fprintf(stderr, "rknnctl: %s\n", message.c_str());
  if (json) std::fputs(Dump({{"error", message}}).c_str(), stdout);
  return exit_code;
}

// The first word that is neither an option nor the value of --target.
std::string_view FindVerb(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--target") {
      ++i;
    } else if (!word.starts_with('-')) {
      return word;
    }
  }
  return "";
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

void Declare(CLI::App& app, Options& options) {
  app.fallthrough();  // --json and --target may follow the verb too
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       std::string("rknnctl ") + rknnd_version_string());
  app.add_option("--target", options.target,
                 "where the daemon is: unix:PATH, or local: (infer, bench) for "
                 "none at all")
      ->envname("RKNND_TARGET")
      ->default_str("unix:/run/rknnd/session.sock");
  app.add_flag("--json", options.json,
               "print exactly one JSON document on stdout");

  app.add_subcommand("status", "the device, what uses it, memory in all");
  app.add_subcommand("sessions", "connected processes");
  app.add_subcommand("models", "loaded models");
  app.add_subcommand("contexts", "contexts of all processes");
  app.add_subcommand("buffers", "memory that processes allocated or imported");
  CLI::App* mem = app.add_subcommand(
      "mem", "memory by kind, model and process, and without sharing");
  CLI::App* top = app.add_subcommand(
      "top", "live view: load of each core, jobs, latency, memory, sessions");
  top->add_option("--interval", options.watch.interval_s,
                  "seconds between two looks")
      ->check(FiniteRange(0.05, 3600))
      ->capture_default_str();
  top->add_flag("--once", options.once,
                "one frame, and end; also where stdout is no terminal");
  top->footer("q or Ctrl-C ends it.");
  CLI::Option* memory_of =
      mem->add_option("MODEL", options.memory_model,
                      "what this model takes: weights, internal, other, total");
  mem->add_flag("--sram", options.memory_sram,
                "the NPU's SRAM page by page, and who holds it")
      ->excludes(memory_of);

  CLI::App* infer =
      app.add_subcommand("infer", "run a model on files and show its outputs");
  infer->add_option("MODEL", options.infer.model, "the model's file")
      ->required();
  infer
      ->add_option("--input", options.infer.inputs,
                   "one file for each input, in order; none: noise, the same "
                   "each time")
      ->allow_extra_args(false)
      ->type_name("FILE");
  infer
      ->add_option("--output-dir", options.infer.output_dir,
                   "write output_<n>.npy there")
      ->type_name("DIR");
  infer
      ->add_option("--repeat", options.infer.repeat,
                   "runs; run_us is the "
                   "median")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  infer->footer(
      "Inputs, told by their names:\n"
      "  .jpg .png  stretched to the input's size; the model gets pixel "
      "values\n"
      "             0..255 (RGB, or grey for one channel), nothing is "
      "normalised\n"
      "             but what the model's own options say\n"
      "  .npy       NCHW or NHWC, whichever the shape fits (NCHW if both)\n"
      "  .bin       elements in row-major order: FP32, FP16 or UINT8 by the "
      "size\n"
      "             (or the input's own integer type); 4-D inputs in NCHW "
      "order,\n"
      "             but UINT8 in NHWC order");

  CLI::App* bench =
      app.add_subcommand("bench", "measure throughput and latency of a model");
  bench->add_option("MODEL", options.bench.model, "the model's file")
      ->required();
  bench->add_option("--contexts", options.bench.contexts, "contexts to run")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  bench
      ->add_option("--threads", options.bench.threads,
                   "threads that share them; one for each context if not given")
      ->check(CLI::Range(1, 1024));
  bench->add_option("--seconds", options.bench.seconds, "how long")
      ->check(FiniteRange(0.01, 86400))
      ->capture_default_str();
  bench
      ->add_option("--core-mask", options.core_mask,
                   "auto, 0, 1, 2, 0_1, 0_1_2 or all")
      ->capture_default_str();
}

void DeclareFault(CLI::App& app, FaultOptions& options) {
  CLI::App* fault = app.add_subcommand(
      "fault", "make things go wrong, in a daemon started with --faults");
  fault->require_subcommand(1);
  fault->add_subcommand("list", "what is set, and how often it hit")
      ->callback([&options] { options.action = FaultAction::kList; });
  CLI::App* clear = fault->add_subcommand("clear", "end one fault, or all");
  clear->add_option("ID", options.id, "a fault's number, or all")
      ->capture_default_str();
  clear->callback([&options] { options.action = FaultAction::kClear; });

  CLI::App* set = fault->add_subcommand("set", "from the next job on");
  set->callback([&options] { options.action = FaultAction::kSet; });
  set->add_option("KIND", options.kind,
                  "slow, hang, wrong-status, out-of-memory, dead-core, crash, "
                  "incoherent or throttle")
      ->required();
  set->add_option("--core", options.core, "only jobs on this core");
  set->add_option("--model", options.model,
                  "only jobs of this model: its name, or 8 or more digits of "
                  "its SHA-256");
  set->add_option("--after", options.after, "so many go well first");
  set->add_option("--every", options.every, "then each N-th is hit")
      ->capture_default_str();
  set->add_option("--times", options.times, "so often in all; 0: no end")
      ->capture_default_str();
  set->add_option("--ms", options.ms,
                  "slow: so much later; hang: until it goes on; crash: until "
                  "the device is back; 0: until cleared");
  set->add_option("--factor", options.factor,
                  "slow, throttle: so many times as long");
  set->add_option("--bytes", options.bytes,
                  "out-of-memory: only what is larger");
  set->add_option("--status", options.status,
                  "wrong-status: what the core reports; 0: done, without "
                  "having run");
}

// What the options say beyond what each alone may be; "" if all is well.
std::string UsageFault(Options& options) {
  if (!ParseFaultId(options.fault.id)) {
    return "fault clear: '" + options.fault.id +
           "' is no fault's number, and not 'all'";
  }
  if (options.fault.model.size() >= sizeof wire::Fault::model) {
    return "--model has " + std::to_string(options.fault.model.size()) +
           " characters: no model's name has";
  }
  const auto mask = ParseCoreMask(options.core_mask);
  if (!mask) {
    return "--core-mask '" + options.core_mask +
           "' is none of auto, 0, 1, 2, 0_1, 0_1_2, all";
  }
  options.bench.core_mask = *mask;
  if (options.bench.threads > options.bench.contexts) {
    return "--threads " + std::to_string(options.bench.threads) +
           " is more than --contexts " +
           std::to_string(options.bench.contexts) +
           ": one context is used by one thread at a time";
  }
  options.models.perf.core_mask = *mask;
  return "";
}

Expected<Output> Do(const Options& options, std::string_view verb) {
  if (verb == "infer") return Infer(options.infer);
  if (verb == "bench") return Bench(options.bench);
  if (verb == "top") return LookOnce(options.watch);
  if (verb == "fault") return Faults(options.target, options.fault);
  if (verb == "perf") return Perf(options.models.perf);
  if (verb == "dump") return DumpLayers(options.models.dump);
  if (verb == "info") return Info(options.models.info_file);
  if (options.memory_sram) return Sram(options.target);
  if (!options.memory_model.empty()) return MemoryOfModel(options.memory_model);
  return Report(options, verb);
}

int Main(int argc, char** argv) {
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
  DeclareFault(app, options.fault);
  DeclareModelVerbs(app, options.models, options.core_mask);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& fault) {
    return Fail(json, kBadUsage,
                std::string(fault.what()) + ": see rknnctl " +
                    (verb.empty() ? "" : verb + " ") + "--help");
  }
  if (const std::string fault = UsageFault(options); !fault.empty()) {
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

  options.watch.target = options.target;
  if (verb == "top" && !json && !options.once && Terminal::IsOne()) {
    const Expected<void> watched = Watch(options.watch);
    return watched ? kOk : Fail(json, kFailed, watched.error().message);
  }
  const Expected<Output> output = Do(options, verb);
  if (!output) return Fail(json, kFailed, output.error().message);
  const std::string text = json ? Dump(output->json) : output->text;
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    std::fputs("rknnctl: cannot write to stdout\n", stderr);
    return kFailed;
  }
  return kOk;
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
