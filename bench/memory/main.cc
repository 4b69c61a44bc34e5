// What contexts cost: NPU memory and processes of twelve of them, laid out as
// in the published measurement of rknn_dup_context (published.h), with our own
// detector and with one of about the proportions of YOLOv5s, which is what was
// measured there; the daemon's own memory for one context more, which is to be
// at most 4 KiB; and what a large import costs the others. Exits with 1 when a
// promise is broken.
//
//   rknnd-bench-memory [--out FILE] [--model FILE]

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/common/failure.h"
#include "bench/common/model_files.h"
#include "bench/memory/beside_import.h"
#include "bench/memory/churn.h"
#include "bench/memory/published.h"
#include "client/include/rknnd.hpp"
#include "client/launch/launcher.h"

namespace rknnd::bench {
namespace {

constexpr double kMostPerContext = 4096;
// Room for the contexts of one session, less those that come first.
constexpr int kFew = 512, kMany = 3072;
// Of ../shared/models: weights to internal memory about as 2 to 3, and most of
// the layers' outputs large pictures.
constexpr char kLikeYolov5s[] = "yolox_nano";

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
  bool holds = true;
  nlohmann::json published = nlohmann::json::array();
  const auto measure = [&](const std::string& path, Processes processes) {
    published.push_back(MeasurePublished(launcher, path, processes));
    holds = holds && published.back().at("holds").get<bool>();
  };
  if (const std::string path = FindSharedModel(kLikeYolov5s); !path.empty()) {
    measure(path, Processes::kPromised);
  } else {
    std::fprintf(stderr,
                 "left out: '%s' of ../shared/models (set RKNND_SHARED)\n",
                 kLikeYolov5s);
  }
  measure(model, Processes::kMeasured);

  const client::PrivateDaemon daemon(launcher);
  setenv("RKNND_TARGET", daemon.target().c_str(), 1);
  const double per_context = MeasureDaemon(model, daemon.pid());
  const bool small = per_context <= kMostPerContext;
  std::printf("daemon, for each further context %26.1f KiB%s\n",
              per_context / 1024, small ? "" : "  (more than 4 KiB)");
  holds = holds && small;
  const nlohmann::json churn = MeasureChurn(model, daemon.pid(), kChurnRounds);
  holds = holds && churn.at("holds").get<bool>();
  const nlohmann::json import = MeasureBesideImport(daemon.target());
  if (!out.empty()) {
    WriteFigures(out, {{"published", published},
                       {"daemon_bytes_per_context", per_context},
                       {"churn", churn},
                       {"beside_import", import},
                       {"holds", holds}});
  }
  return holds;
}

int Main(int argc, char** argv) {
  CLI::App app("Memory of contexts");
  std::string out;
  std::string model = RKNND_SOURCE_ROOT "/examples/detector/detector.onnx";
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--model", model, "the model of all contexts")
      ->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);
  return Measure(model, out) ? 0 : 1;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("memory",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
