// What contexts cost: the NPU memory of twelve of them in four processes, which
// is to be one copy of the weights and one internal memory per core, and the
// daemon's own memory for one more, which is to be at most 4 KiB. Exits with 1
// when either is not so.
//
//   rknnd-bench-memory [--out FILE] [--model FILE]

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/common/failure.h"
#include "client/include/rknnd.hpp"
#include "client/launch/launcher.h"

namespace rknnd::bench {
namespace {

constexpr int kProcesses = 4, kContextsEach = 3;
constexpr double kTolerance = 0.01;
constexpr double kMostPerContext = 4096;
// Room for the contexts of one session, less those that come first.
constexpr int kFew = 512, kMany = 3072;
constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

// A context that has run, with memory of its own on all sides.
struct Bound {
  explicit Bound(Context made) : context(std::move(made)) {
    for (uint32_t i = 0; i < context.inputs().size(); ++i) {
      memory.push_back(context.AllocateInput(i));
      context.BindInput(i, memory.back());
    }
    for (uint32_t i = 0; i < context.outputs().size(); ++i) {
      memory.push_back(context.AllocateOutput(i));
      context.BindOutput(i, memory.back());
    }
    context.Run();
  }

  Context context;
  std::vector<Memory> memory;
};

// A process of the first measurement: says when its contexts are there.
void Hold(const std::string& model) {
  std::vector<Bound> held;
  for (int i = 0; i < kContextsEach; ++i) {
    held.emplace_back(Context::FromFile(model));
  }
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}

uint32_t Cores(const client::Launcher& launcher,
               const client::PrivateDaemon& daemon) {
  base::ChildProcess ctl = launcher.Start(
      {"rknnctl", "--target", daemon.target(), "--json", "status"});
  const auto text = ctl.ReadAll(kPatience);
  if (!text) throw std::runtime_error("rknnctl: " + text.error().message);
  return nlohmann::json::parse(*text).at("device").at("cores").get<uint32_t>();
}

// Bytes of a process that are neither a file's nor shared.
double AnonymousBytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    unsigned long kib = 0;
    if (std::sscanf(line.c_str(), "RssAnon: %lu kB", &kib) == 1) {
      return static_cast<double>(kib) * 1024;
    }
  }
  throw std::runtime_error("no RssAnon of the daemon");
}

nlohmann::json MeasureSharing(const client::Launcher& launcher,
                              const client::PrivateDaemon& daemon,
                              const std::string& model) {
  std::vector<base::ChildProcess> holders;
  for (int i = 0; i < kProcesses; ++i) {
    holders.push_back(
        launcher.Start({"rknnd-bench-memory", "--hold", "--model", model}));
    const std::string line =
        launcher.NextLine(holders.back(), "a process with contexts", kPatience);
    if (line != "ready") throw std::runtime_error("it said: " + line);
  }
  // One that answers questions and never runs.
  const Context asker =
      Context::FromFile(model, RKNN_FLAG_COLLECT_MODEL_INFO_ONLY);
  const rknn_mem_size needs = asker.ModelMemory();
  const rknnd_memory held = asker.NpuMemory();
  const uint32_t cores = Cores(launcher, daemon);
  const double expected =
      static_cast<double>(needs.total_weight_size) +
      static_cast<double>(needs.total_internal_size) * cores;
  const auto measured = static_cast<double>(held.weight + held.internal);
  const double contexts = kProcesses * kContextsEach;
  return {{"weight", needs.total_weight_size},
          {"internal", needs.total_internal_size},
          {"cores", cores},
          {"expected", expected},
          {"measured", measured},
          {"off", measured / expected - 1},
          {"unshared",
           contexts * (static_cast<double>(needs.total_weight_size) +
                       static_cast<double>(needs.total_internal_size))}};
}

double MeasureDaemon(const std::string& model, pid_t daemon) {
  std::vector<Context> contexts;
  contexts.push_back(Context::FromFile(model));
  const Bound first(contexts[0].Duplicate());
  double few = 0;
  for (int i = 0; i < kFew + kMany; ++i) {
    if (i == kFew) few = AnonymousBytes(daemon);
    contexts.push_back(contexts[0].Duplicate());
    // Bound, as contexts in use are; to memory that is there already.
    Context& context = contexts.back();
    size_t at = 0;
    for (const Tensor& input : context.inputs()) {
      context.Bind(input, first.memory[at++]);
    }
    for (uint32_t k = 0; k < context.outputs().size(); ++k) {
      context.BindOutput(k, first.memory[at++]);
    }
  }
  return (AnonymousBytes(daemon) - few) / kMany;
}

// Whether what is promised holds.
bool Measure(const std::string& model, const std::string& out) {
  const client::Launcher launcher;
  const client::PrivateDaemon daemon(launcher);
  setenv("RKNND_TARGET", daemon.target().c_str(), 1);
  nlohmann::json figures = MeasureSharing(launcher, daemon, model);
  const double per_context = MeasureDaemon(model, daemon.pid());
  const bool shared = std::fabs(figures["off"].get<double>()) <= kTolerance;
  const bool small = per_context <= kMostPerContext;
  figures["model"] = model;
  figures["processes"] = kProcesses;
  figures["contexts"] = kProcesses * kContextsEach;
  figures["daemon_bytes_per_context"] = per_context;
  figures["holds"] = shared && small;

  const auto row = [](const char* name, double bytes) {
    std::printf("%-44s %10.1f KiB\n", name, bytes / 1024);
  };
  row("weights", figures["weight"].get<double>());
  row("internal memory of one core", figures["internal"].get<double>());
  row("12 contexts, 4 processes, without sharing",
      figures["unshared"].get<double>());
  row("  weights + cores x internal", figures["expected"].get<double>());
  row("  measured", figures["measured"].get<double>());
  std::printf("  off by                                     %10.3f %%%s\n",
              100 * figures["off"].get<double>(),
              shared ? "" : "  (more than 1 %)");
  row("daemon, for each further context", per_context);
  if (!small) std::printf("  (more than 4 KiB)\n");
  if (!out.empty()) WriteFigures(out, figures);
  return shared && small;
}

int Main(int argc, char** argv) {
  CLI::App app("Memory of contexts");
  std::string out;
  std::string model = RKNND_SOURCE_ROOT "/examples/detector/detector.onnx";
  bool hold = false;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--model", model, "the model of all contexts")
      ->check(CLI::ExistingFile);
  app.add_flag("--hold", hold)->group("");
  CLI11_PARSE(app, argc, argv);
  if (!hold) return Measure(model, out) ? 0 : 1;
  Hold(model);
  return 0;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("memory",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
