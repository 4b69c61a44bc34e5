// What the plan of a whole network costs beside its parts: for each model, the
// time of a run on one core of the software NPU, and the sum over its layers of
// what each takes by itself. Of a convolution or product that is oneDNN's
// primitive in whichever layouts it likes best (bench/layers/alone.h), of any
// other layer its own best time within the run. The ratio is to be at
// most 1.15: more would be reorders, cold caches and poor choices of kernels.
// It is below 1 where kernels of our own are quicker than oneDNN's.
//
//   rknnd-bench-layers [--out FILE] [--rounds N] [--layers N] [MODEL.onnx...]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/common/failure.h"
#include "bench/common/model_files.h"
#include "bench/layers/alone.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/run_model.h"

namespace rknnd::bench {
namespace {

namespace fs = std::filesystem;
using soft::testing::BoundModel;

constexpr double kMostOverAlone = 1.15;

struct Layer {
  std::string name, type, kernel;
  int64_t in_run_ns = 0;  // the best of all runs
  int64_t alone_ns = 0;   // the same where nothing else computes it
};

struct Figures {
  std::string model;
  int64_t run_ns = 0;  // the best of all runs
  std::vector<Layer> layers;

  [[nodiscard]] int64_t AloneNs() const {
    int64_t sum = 0;
    for (const Layer& layer : layers) sum += layer.alone_ns;
    return sum;
  }
  [[nodiscard]] double Ratio() const {
    return static_cast<double>(run_ns) / static_cast<double>(AloneNs());
  }
};

template <class T>
T Need(absl::StatusOr<T> value) {
  if (!value.ok()) {
    throw std::runtime_error(std::string(value.status().message()));
  }
  return *std::move(value);
}

void Require(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

// Floats in and out, as programs have them; other inputs as the model has them.
std::vector<driver::TensorFormat> Formats(
    const std::vector<driver::TensorAttr>& attributes, bool are_inputs) {
  std::vector<driver::TensorFormat> formats;
  for (const driver::TensorAttr& attribute : attributes) {
    const bool integer = attribute.type == driver::TensorType::kInt32 ||
                         attribute.type == driver::TensorType::kInt64;
    formats.push_back(soft::testing::PlainFormat(
        attribute,
        are_inputs && integer ? attribute.type : driver::TensorType::kFloat32));
  }
  return formats;
}

void RunInTurns(BoundModel& model, int rounds, Figures& figures) {
  std::vector<int64_t> times;
  figures.run_ns = INT64_MAX;
  for (int round = 0; round < rounds; ++round) {
    const driver::JobResult result = model.Run(0, &times);
    Require(result.status);
    figures.run_ns = std::min(figures.run_ns, result.ended - result.started);
    for (size_t i = 0; i < times.size() && i < figures.layers.size(); ++i) {
      int64_t& best = figures.layers[i].in_run_ns;
      best = round == 0 ? times[i] : std::min(best, times[i]);
    }
  }
}

Figures Measure(driver::Device& device, const fs::path& path, int rounds) {
  Figures figures;
  figures.model = ModelName(path);
  const std::vector<std::byte> bytes = soft::testing::ReadFile(path);
  const auto model = Need(device.Load({bytes, "", figures.model}));
  const driver::ProgramInfo& program = model->info().programs.at(0);
  for (const driver::LayerInfo& layer : program.layers) {
    figures.layers.push_back({layer.name, layer.type, layer.kernel});
  }
  const auto bound =
      Need(BoundModel::Make(device, *model, Formats(program.inputs, true),
                            Formats(program.outputs, false)));
  RunInTurns(*bound, rounds, figures);

  soft::Graph graph = Need(soft::ImportOnnx(bytes, figures.model));
  Require(soft::RunPasses(graph, soft::OperatorTable::Get()));
  std::map<std::string, const soft::Node*> nodes;
  for (const soft::Node& node : graph.nodes) nodes.emplace(node.name, &node);
  for (Layer& layer : figures.layers) {
    const auto node = nodes.find(layer.name);
    layer.alone_ns =
        (node == nodes.end() ? std::nullopt : BestAlone(graph, *node->second))
            .value_or(layer.in_run_ns);
  }
  return figures;
}

double Ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

// The layers that lose most.
void PrintLayers(Figures figures, size_t count) {
  std::ranges::sort(figures.layers, std::ranges::greater(),
                    [](const Layer& x) { return x.in_run_ns - x.alone_ns; });
  figures.layers.resize(std::min(count, figures.layers.size()));
  for (const Layer& layer : figures.layers) {
    std::printf("  %9.3f %9.3f  %s %s [%s]\n", Ms(layer.in_run_ns),
                Ms(layer.alone_ns), layer.type.c_str(), layer.name.c_str(),
                layer.kernel.c_str());
  }
}

nlohmann::json ToJson(const Figures& figures) {
  nlohmann::json layers = nlohmann::json::array();
  for (const Layer& layer : figures.layers) {
    layers.push_back({{"name", layer.name},
                      {"type", layer.type},
                      {"kernel", layer.kernel},
                      {"in_run_ns", layer.in_run_ns},
                      {"alone_ns", layer.alone_ns}});
  }
  return {{"model", figures.model},
          {"run_ns", figures.run_ns},
          {"alone_ns", figures.AloneNs()},
          {"ratio", figures.Ratio()},
          {"layers", layers}};
}

int Main(int argc, char** argv) {
  CLI::App app("Networks beside the sum of their layers alone");
  std::string out;
  std::vector<std::string> given;
  int rounds = 30;
  size_t shown = 0;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--rounds", rounds, "runs of each model")
      ->check(CLI::PositiveNumber);
  app.add_option("--layers", shown, "print so many layers that lose most");
  app.add_option("models", given, "ONNX files, instead of the known ones")
      ->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);
  return RunMain("layers", [&] {
    const auto device =
        Need(soft::OpenSoftDevice({.kind = "soft", .soc = "rk3588"}));
    device->EnterWorker();
    const std::vector<fs::path> models =
        given.empty() ? FindModels()
                      : std::vector<fs::path>(given.begin(), given.end());
    nlohmann::json rows = nlohmann::json::array();
    bool holds = true;
    std::printf("%-22s %10s %10s %6s\n", "model", "run, ms", "alone, ms",
                "ratio");
    for (const fs::path& path : models) {
      const Figures figures = Measure(*device, path, rounds);
      const bool above = figures.Ratio() > kMostOverAlone;
      holds = holds && !above;
      std::printf("%-22s %10.3f %10.3f %6.2f%s\n", figures.model.c_str(),
                  Ms(figures.run_ns), Ms(figures.AloneNs()), figures.Ratio(),
                  above ? "  (above 1.15)" : "");
      PrintLayers(figures, shown);
      rows.push_back(ToJson(figures));
    }
    if (!out.empty()) WriteFigures(out, {{"models", rows}, {"holds", holds}});
    return holds ? 0 : 1;
  });
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) { return rknnd::bench::Main(argc, argv); }
