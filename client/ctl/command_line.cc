#include "client/ctl/command_line.h"

#include "client/ctl/finite_range.h"
#include "rknnd.h"

namespace rknnd::client {
namespace {

void DeclareReports(CLI::App& app, Options& options) {
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
  top->footer(
      "q or Ctrl-C ends it; n, f, l, d and m sort by NPU time, frames, "
      "latency,\n"
      "drops and memory.");
  CLI::App* trace = app.add_subcommand(
      "trace", "timeline of the jobs of late, for https://ui.perfetto.dev");
  trace
      ->add_option("--output", options.trace.output,
                   "the file to write; rknnd-trace-<time>.json if not given")
      ->type_name("FILE");
  trace
      ->add_option("--seconds", options.trace.seconds,
                   "record so long from now on, and leave out what was before")
      ->check(FiniteRange(0.01, 3600));
  CLI::Option* memory_of =
      mem->add_option("MODEL", options.memory_model,
                      "what this model takes: weights, internal, other, total");
  mem->add_flag("--sram", options.memory_sram,
                "the NPU's SRAM page by page, and who holds it")
      ->excludes(memory_of);
}

void DeclareRuns(CLI::App& app, Options& options) {
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
      "  .jpg .png\n"
      "  .bmp       stretched to the input's size; the model gets pixel "
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

void DeclarePlanning(CLI::App& app, Options& options) {
  AdmitOptions& asked = options.admit;
  CLI::App* admit = app.add_subcommand(
      "admit", "whether streams of a model's frames fit beside those admitted");
  admit->add_option("MODEL", asked.model, "the model's file")->required();
  admit->add_option("--rate", asked.rate, "frames a second of each stream")
      ->required()
      ->check(FiniteRange(0.001, 1e6));
  admit->add_option("--streams", asked.streams, "so many alike")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  admit->add_option("--priority", asked.priority, "high, medium or low")
      ->check(CLI::IsMember({"high", "medium", "low"}))
      ->capture_default_str();
  admit
      ->add_option("--core-mask", options.core_mask,
                   "auto, 0, 1, 2, 0_1, 0_1_2 or all")
      ->capture_default_str();
  admit->footer("Ends with 0 where they fit, with 1 where they do not.");

  CLI::App* lease = app.add_subcommand(
      "lease", "run a command while rknnd's jobs are kept off some cores");
  lease
      ->add_option("--cores", options.lease.cores,
                   "their numbers: 0, or 0,2, or 0-1")
      ->required();
  lease->footer(
      "rknnctl lease --cores 0 -- COMMAND...\n"
      "Waits for the jobs that run there, ends with the command's exit code.\n"
      "For programs that open the NPU's driver themselves.");
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

std::string LeaseFault(const LeaseOptions& options) {
  if (!ParseCores(options.cores)) {
    return "--cores '" + options.cores +
           "' names no cores: write 0, or 0,2, or 0-1";
  }
  if (options.command.empty()) {
    return "lease: the command is missing, behind '--': rknnctl lease --cores "
           "0 -- COMMAND";
  }
  return "";
}

}  // namespace

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

void Declare(CLI::App& app, Options& options) {
  app.fallthrough();  // --json and --target may follow the verb too
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       std::string("rknnctl ") + rknnd_version_string());
  app.add_option("--target", options.target,
                 "where the daemon is: unix:PATH or tcp://HOST:PORT, or local: "
                 "(infer, bench) for none at all")
      ->envname("RKNND_TARGET")
      ->default_str("unix:/run/rknnd/session.sock");
  app.add_flag("--json", options.json,
               "print exactly one JSON document on stdout");

  DeclareReports(app, options);
  DeclareRuns(app, options);
  DeclareFault(app, options.fault);
  DeclarePlanning(app, options);
  DeclareModelVerbs(app, options.models, options.core_mask);
  DeclareBoardVerbs(app, options.board);
}

std::string UsageFault(Options& options, std::string_view verb) {
  if (verb == "lease") return LeaseFault(options.lease);
  if (std::string fault = BoardVerbsFault(options.board, verb);
      !fault.empty()) {
    return fault;
  }
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
  options.admit.core_mask = *mask;
  return "";
}

}  // namespace rknnd::client
