// The verbs that run models, plan what runs, or run a command instead.

#include <memory>

#include "client/ctl/board/admit.h"
#include "client/ctl/board/lease.h"
#include "client/ctl/models/bench.h"
#include "client/ctl/models/infer.h"
#include "client/ctl/verbs/finite_range.h"
#include "client/ctl/verbs/verb.h"

namespace rknnd::client {
namespace {

using base::Expected;

RunVerb DeclareInfer(CLI::App& verb) {
  const auto options = std::make_shared<InferOptions>();
  AddModel(verb, options->model);
  AddInputs(verb, options->inputs,
            "one file for each input, in order; none: noise, the same each "
            "time");
  verb.add_option("--output-dir", options->output_dir,
                  "write output_<n>.npy there")
      ->type_name("DIR");
  verb.add_option("--repeat", options->repeat, "runs; run_us is the median")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb.footer(
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
  return [options](const Common& /*common*/) -> VerbEnd {
    return {Infer(*options)};
  };
}

RunVerb DeclareBench(CLI::App& verb) {
  struct Options {
    BenchOptions bench;
    std::string core_mask = "auto";
  };
  const auto options = std::make_shared<Options>();
  AddModel(verb, options->bench.model);
  verb.add_option("--contexts", options->bench.contexts, "contexts to run")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb.add_option("--threads", options->bench.threads,
                  "threads that share them; one for each context if not given")
      ->check(CLI::Range(1, 1024));
  verb.add_option("--seconds", options->bench.seconds, "how long")
      ->check(FiniteRange(0.01, 86400))
      ->capture_default_str();
  AddCoreMask(verb, options->core_mask);
  return [options](const Common& /*common*/) -> VerbEnd {
    BenchOptions& bench = options->bench;
    const auto mask = ParseCoreMask(options->core_mask);
    if (!mask) return BadUsage(FaultOfCoreMask(options->core_mask));
    bench.core_mask = *mask;
    if (bench.threads > bench.contexts) {
      return BadUsage("--threads " + std::to_string(bench.threads) +
                      " is more than --contexts " +
                      std::to_string(bench.contexts) +
                      ": one context is used by one thread at a time");
    }
    return {Bench(bench)};
  };
}

RunVerb DeclareAdmit(CLI::App& verb) {
  struct Options {
    AdmitOptions admit;
    std::string core_mask = "auto";
  };
  const auto options = std::make_shared<Options>();
  AdmitOptions& asked = options->admit;
  AddModel(verb, asked.model);
  verb.add_option("--rate", asked.rate, "frames a second of each stream")
      ->required()
      ->check(FiniteRange(0.001, 1e6));
  verb.add_option("--streams", asked.streams, "so many alike")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  verb.add_option("--priority", asked.priority, "high, medium or low")
      ->check(CLI::IsMember({"high", "medium", "low"}))
      ->capture_default_str();
  AddCoreMask(verb, options->core_mask);
  verb.footer("Ends with 0 where they fit, with 1 where they do not.");
  return [options](const Common& /*common*/) -> VerbEnd {
    const auto mask = ParseCoreMask(options->core_mask);
    if (!mask) return BadUsage(FaultOfCoreMask(options->core_mask));
    options->admit.core_mask = *mask;
    Expected<AdmitAnswer> answer = Admit(options->admit);
    if (!answer) return {std::move(answer).error()};
    return {std::move(answer->output), answer->fits ? kOk : kFailed};
  };
}

RunVerb DeclareLease(CLI::App& verb) {
  const auto options = std::make_shared<LeaseOptions>();
  verb.add_option("--cores", options->cores, "their numbers: 0, or 0,2, or 0-1")
      ->type_name("CORES")
      ->required();
  verb.footer(
      "rknnctl lease --cores 0 -- COMMAND...\n"
      "Waits for the jobs that run there, ends with the command's exit code.\n"
      "For programs that open the NPU's driver themselves.");
  return [options](const Common& common) -> VerbEnd {
    if (!ParseCores(options->cores)) {
      return BadUsage("--cores '" + options->cores +
                      "' names no cores: write 0, or 0,2, or 0-1");
    }
    if (common.command.empty()) {
      return BadUsage(
          "lease: the command is missing, behind '--': rknnctl lease --cores "
          "0 -- COMMAND");
    }
    options->target = common.target;
    options->json = common.json;
    options->command = common.command;
    Expected<LeaseEnd> end = RunLeased(*options);
    if (!end) return {std::move(end).error()};
    return {std::move(end->output), end->exit_code};
  };
}

constexpr Verb kRunVerbs[] = {
    {"infer", "run a model on files and show its outputs", DeclareInfer},
    {"bench", "measure throughput and latency of a model", DeclareBench},
    {"admit", "whether streams of a model's frames fit beside those admitted",
     DeclareAdmit},
    {"lease", "run a command while rknnd's jobs are kept off some cores",
     DeclareLease},
};

}  // namespace

std::span<const Verb> RunVerbs() { return kRunVerbs; }

}  // namespace rknnd::client
