// How well the planner of the software NPU does: internal memory over the least
// it could be (the most that is alive at one step), for each model of
// ../shared/models and the repository's detector; layers before and after
// fusion; what a context with SRAM would save. Exits with 1 when the internal
// memory of any is more than 1.10 times the least.
//
//   rknnd-bench-plan [--out FILE] [--soc NAME] [--block N] [MODEL.onnx...]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/common/model_files.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/plan/planner.h"
#include "driver/soft/plan/sram_plan.h"
#include "driver/soft/soc.h"

namespace rknnd::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kMostOverLeast = 1.10;
// The guide's example: half of what an RK3588 has.
constexpr uint64_t kSomeSram = 512 << 10;

std::vector<std::byte> Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::byte> bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

void Require(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

nlohmann::json Measure(const fs::path& path, const soft::SocProfile& soc,
                       int block) {
  const std::string name = ModelName(path);
  absl::StatusOr<soft::Graph> graph = soft::ImportOnnx(Read(path), name);
  Require(graph.status());
  const size_t nodes = graph->nodes.size();
  Require(soft::RunPasses(*graph, soft::OperatorTable::Get()));
  soft::ModelWeights weights(0);
  absl::StatusOr<soft::Plan> plan =
      soft::MakePlan(*graph, soft::OperatorTable::Get(),
                     {.block = block,
                      .half_block = soc.half_block,
                      .int8_block = soc.int8_block,
                      .int16_block = soc.int16_block,
                      .width_alignment = soc.width_alignment,
                      .sram_bytes = soc.sram_bytes},
                     weights);
  Require(plan.status());
  Require(weights.Seal());
  const driver::ProgramInfo& info = plan->program.info;
  const uint64_t least =
      soft::LowerBound(plan->arena.tensors, plan->arena.sharing);
  uint64_t traffic = 0;
  for (const driver::TensorPlace& tensor : info.tensors) {
    traffic += tensor.traffic();
  }
  const size_t ports = info.inputs.size() + info.outputs.size();
  return {{"model", name},
          {"internal", info.internal_size},
          {"least", least},
          {"ratio", static_cast<double>(info.internal_size) /
                        static_cast<double>(std::max<uint64_t>(least, 1))},
          {"unshared_least", soft::LowerBound(plan->arena.tensors)},
          {"weights", weights.size()},
          {"nodes", nodes + ports},
          {"layers", info.layers.size()},
          {"tensors", info.tensors.size()},
          {"shared", std::count(plan->arena.sharing.granted.begin(),
                                plan->arena.sharing.granted.end(), true)},
          {"traffic", traffic},
          {"sram_saved", info.sram.saved},
          {"sram_512k_saved", soft::PlanSram(info.tensors, kSomeSram).saved}};
}

int Main(int argc, char** argv) {
  CLI::App app("Memory plans");
  std::string out;
  std::string soc_name = "rk3588";
  std::vector<std::string> given;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--soc", soc_name, "the SoC planned for");
  int block = soft::ChannelBlock();
  app.add_option("--block", block, "channels per block, as of another CPU");
  app.add_option("models", given, "ONNX files, instead of the known ones")
      ->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);
  try {
    const absl::StatusOr<soft::SocProfile> soc = soft::FindSoc(soc_name);
    Require(soc.status());
    const std::vector<fs::path> models =
        given.empty() ? FindModels()
                      : std::vector<fs::path>(given.begin(), given.end());
    nlohmann::json rows = nlohmann::json::array();
    bool holds = true;
    std::printf("%-22s %10s %10s %6s %10s %12s %7s %18s\n", "model", "internal",
                "least", "ratio", "weights", "nodes>layers", "shared",
                "SRAM saves, of");
    for (const fs::path& path : models) {
      const nlohmann::json row = Measure(path, *soc, block);
      const auto kib = [&row](const char* key) {
        return row[key].get<double>() / 1024;
      };
      const auto ratio = row["ratio"].get<double>();
      holds = holds && ratio <= kMostOverLeast;
      std::printf(
          "%-22s %8.0f K %8.0f K %6.3f %8.0f K %5d > %-4d %7d "
          "%8.0f / %.0f K%s\n",
          row["model"].get<std::string>().c_str(), kib("internal"),
          kib("least"), ratio, kib("weights"), row["nodes"].get<int>(),
          row["layers"].get<int>(), row["shared"].get<int>(), kib("sram_saved"),
          kib("traffic"), ratio > kMostOverLeast ? "  (ratio above 1.10)" : "");
      rows.push_back(row);
    }
    const nlohmann::json figures = {
        {"soc", soc->name}, {"models", rows}, {"holds", holds}};
    if (!out.empty()) std::ofstream(out) << figures.dump(1) << '\n';
    return holds ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rknnd-bench-plan: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) { return rknnd::bench::Main(argc, argv); }
