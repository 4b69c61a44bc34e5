// What SRAM saves of DDR traffic. First the planner: for each model of
// ../shared/models and the repository's detector, what a context that has all
// of an RK3588's SRAM, or half, saves of each run, over the most that any plan
// could. Then three models in a daemon on one core, the three that gain most:
// with RKNN_FLAG_SHARE_SRAM they take turns in one window and each is to save
// at least 90 % of what it would alone; without, the first takes what it can.
// Exits with 1 when any of them saves less.
//
//   rknnd-bench-sram [--out FILE] [MODEL.onnx...]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/common/failure.h"
#include "bench/common/model_files.h"
#include "bench/sram/bound.h"
#include "client/include/rknnd.hpp"
#include "client/launch/launcher.h"
#include "driver/device.h"

namespace rknnd::bench {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTogether = 3;
constexpr double kLeastShared = 0.90;
// The guide's example: half of what an RK3588 has.
constexpr uint64_t kSomeSram = 512 << 10;
constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

struct Planned {
  std::string name, path;
  std::unique_ptr<driver::Model> model;

  [[nodiscard]] const driver::ProgramInfo& program() const {
    return model->info().programs[model->info().largest];
  }
  [[nodiscard]] uint64_t Saved(uint64_t bytes) const {
    return model->PlanSram(model->info().largest, bytes).saved;
  }
};

Planned Load(driver::Device& device, const fs::path& path) {
  Planned planned;
  planned.path = path;
  planned.name = ModelName(path);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  driver::LoadRequest request;
  request.bytes = std::as_bytes(std::span(bytes.data(), bytes.size()));
  request.name = planned.name;
  auto model = device.Load(request);
  if (!model.ok()) {
    throw std::runtime_error(std::string(model.status().message()));
  }
  planned.model = *std::move(model);
  return planned;
}

nlohmann::json MeasurePlan(const Planned& planned, uint64_t all) {
  const driver::ProgramInfo& program = planned.program();
  uint64_t traffic = 0;
  for (const driver::TensorPlace& tensor : program.tensors) {
    traffic += tensor.traffic();
  }
  nlohmann::json row = {{"model", planned.name}, {"traffic", traffic}};
  std::printf("%-22s %9.0f K", planned.name.c_str(),
              static_cast<double>(traffic) / 1024);
  for (const uint64_t bytes : {all, kSomeSram}) {
    const auto saved = static_cast<double>(planned.Saved(bytes));
    const double most = MostSaved(program.tensors, bytes);
    const double ratio = most > 0 ? saved / most : 1;
    std::printf(" %9.0f K %6.1f %%", saved / 1024, 100 * ratio);
    row["plans"].push_back(
        {{"sram", bytes}, {"saved", saved}, {"most", most}, {"ratio", ratio}});
  }
  std::printf("\n");
  return row;
}

nlohmann::json AskSram(const client::Launcher& launcher,
                       const client::PrivateDaemon& daemon) {
  base::ChildProcess ctl = launcher.Start(
      {"rknnctl", "--target", daemon.target(), "--json", "mem", "--sram"});
  const auto text = ctl.ReadAll(kPatience);
  if (!text) throw std::runtime_error("rknnctl: " + text.error().message);
  return nlohmann::json::parse(*text);
}

// The bytes that each of `models` plans with in the daemon, on core 0.
std::vector<uint64_t> GetSram(const client::Launcher& launcher,
                              const client::PrivateDaemon& daemon,
                              const std::vector<const Planned*>& models,
                              uint32_t flags) {
  std::vector<Context> contexts;
  for (const Planned* planned : models) {
    contexts.push_back(Context::FromFile(planned->path, flags));
    contexts.back().SetCoreMask(RKNN_NPU_CORE_0);
  }
  std::vector<uint64_t> sram(models.size());
  const nlohmann::json report = AskSram(launcher, daemon);
  for (const auto& window : report.at("windows")) {
    const auto size = window.at("size").get<uint64_t>();
    const auto holder = window.at("holder").get<std::string>();
    for (size_t m = 0; m < models.size(); ++m) {
      const bool own = holder.starts_with(
          "context " + std::to_string(contexts[m].handle()) + " ");
      if (own || window.at("core_mask") == 1) {
        sram[m] = std::min(size, models[m]->program().sram.used);
      }
    }
  }
  return sram;
}

// Whether all save enough.
bool MeasureSharing(const std::vector<const Planned*>& models, uint64_t all,
                    nlohmann::json& figures) {
  const client::Launcher launcher;
  const client::PrivateDaemon daemon(launcher);
  setenv("RKNND_TARGET", daemon.target().c_str(), 1);
  const std::vector<uint64_t> shared = GetSram(
      launcher, daemon, models, RKNN_FLAG_ENABLE_SRAM | RKNN_FLAG_SHARE_SRAM);
  const std::vector<uint64_t> own =
      GetSram(launcher, daemon, models, RKNN_FLAG_ENABLE_SRAM);
  bool holds = true;
  std::printf("\n%-22s %11s %20s %20s\n", "DDR saved a run, core 0", "alone",
              "SHARE_SRAM", "ENABLE_SRAM alone");
  for (size_t m = 0; m < models.size(); ++m) {
    const auto alone = static_cast<double>(models[m]->Saved(all));
    const auto with = static_cast<double>(models[m]->Saved(shared[m]));
    const auto without = static_cast<double>(models[m]->Saved(own[m]));
    const double ratio = with / std::max(alone, 1.0);
    const bool enough = ratio >= kLeastShared;
    holds = holds && enough;
    std::printf("%-22s %9.0f K %9.0f K %6.1f %% %9.0f K %6.1f %%%s\n",
                models[m]->name.c_str(), alone / 1024, with / 1024, 100 * ratio,
                without / 1024, 100 * without / std::max(alone, 1.0),
                enough ? "" : "  (below 90 %)");
    figures.push_back({{"model", models[m]->name},
                       {"alone", alone},
                       {"shared", with},
                       {"ratio", ratio},
                       {"unshared", without}});
  }
  return holds;
}

int Main(int argc, char** argv) {
  CLI::App app("What SRAM saves");
  std::string out;
  std::vector<std::string> given;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("models", given, "ONNX files, instead of the known ones")
      ->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);

  driver::DeviceOptions options;
  options.kind = "soft";
  auto device = driver::OpenDevice(options);
  if (!device.ok()) {
    throw std::runtime_error(std::string(device.status().message()));
  }
  const uint64_t all = (*device)->info().sram_total;
  std::printf("%-22s %11s %20s %20s\n", "model", "DDR a run",
              "all SRAM, of most", "512 KiB, of most");
  std::vector<Planned> models;
  nlohmann::json plans = nlohmann::json::array();
  for (const fs::path& path :
       given.empty() ? FindModels()
                     : std::vector<fs::path>(given.begin(), given.end())) {
    models.push_back(Load(**device, path));
    plans.push_back(MeasurePlan(models.back(), all));
  }
  std::vector<const Planned*> together;
  together.reserve(models.size());
  for (const Planned& planned : models) together.push_back(&planned);
  std::stable_sort(together.begin(), together.end(),
                   [all](const Planned* a, const Planned* b) {
                     return a->Saved(all) > b->Saved(all);
                   });
  if (together.size() > kTogether) together.resize(kTogether);
  nlohmann::json sharing = nlohmann::json::array();
  const bool holds = MeasureSharing(together, all, sharing);
  if (!out.empty()) {
    WriteFigures(out, {{"soc", (*device)->info().soc},
                       {"plans", plans},
                       {"sharing", sharing},
                       {"holds", holds}});
  }
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("sram",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
