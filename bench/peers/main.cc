// Every model of the shared folder on one thread, beside ONNX Runtime on one
// thread: on the same CPU, in turns of a tenth of a second, so that both meet
// the same machine. Says so and ends well where the models, npm or the network
// are missing.
//
//   rknnd-bench-peers [--out FILE] [--folder DIR] [--rounds N]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/common/failure.h"
#include "bench/common/placement.h"
#include "bench/peers/model_set.h"
#include "bench/peers/onnxruntime.h"
#include "bench/peers/rknnd_runner.h"

namespace rknnd::bench {
namespace {

constexpr double kTurnMicroseconds = 100'000;

double Median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// How many runs make a turn, after some to warm up.
int RunsOf(const std::vector<double>& first) {
  return std::clamp(static_cast<int>(kTurnMicroseconds / Median(first)), 1,
                    2000);
}

nlohmann::json Compare(const ModelSet& model, const std::string& folder,
                       int rounds) {
  constexpr int kWarmUp = 5;
  nlohmann::json row = {{"model", model.name}, {"precision", model.precision}};
  try {
    RknndRunner ours(model);
    auto theirs = OnnxRuntime::Start(folder, model);
    if (!theirs) throw Error(RKNN_ERR_FAIL, theirs.error().message);
    const auto run_theirs = [&](int count) {
      auto times = theirs->Run(count);
      if (!times) throw Error(RKNN_ERR_FAIL, times.error().message);
      return *std::move(times);
    };
    const int our_runs = RunsOf(ours.Run(kWarmUp));
    const int their_runs = RunsOf(run_theirs(kWarmUp));
    std::vector<double> our_times, their_times;
    for (int round = 0; round < rounds; ++round) {
      for (const double time : ours.Run(our_runs)) our_times.push_back(time);
      for (const double time : run_theirs(their_runs)) {
        their_times.push_back(time);
      }
    }
    row["rknnd_us"] = Median(our_times);
    row["onnxruntime_us"] = Median(their_times);
    row["ratio"] = Median(our_times) / Median(their_times);
  } catch (const std::exception& error) {
    row["error"] = error.what();
  }
  return row;
}

int Main(int argc, char** argv) {
  CLI::App app("Models on one thread, beside ONNX Runtime");
  std::string out, folder;
  int rounds = 5;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--folder", folder, "where ONNX Runtime is installed");
  app.add_option("--rounds", rounds, "turns of each")
      ->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  if (folder.empty()) {
    // Beside the figures, or where ./dev bench has them.
    folder = out.empty()
                 ? std::filesystem::path(RKNND_SOURCE_ROOT "/build/bench/peers")
                 : std::filesystem::absolute(out).parent_path() / "peers";
  }
  const std::vector<ModelSet> models = FindModelSets();
  if (models.empty()) {
    std::puts("skipped: no models in $RKNND_SHARED/models");
    return 0;
  }
  const auto installed = InstallOnnxRuntime(folder);
  if (!installed) {
    std::printf("skipped: %s\n", installed.error().message.c_str());
    return 0;
  }
  // All threads of both sides are made after this and stay there.
  PinTo(Placements().front().client_cpu);
  setenv("RKNND_TARGET", "local:", 1);
  std::printf("%-22s %12s %12s %7s  %s\n", "microseconds, median", "rknnd",
              "ONNX Runtime", "ratio", "precision");
  nlohmann::json rows = nlohmann::json::array();
  for (const ModelSet& model : models) {
    rows.push_back(Compare(model, folder, rounds));
    const nlohmann::json& row = rows.back();
    if (row.contains("error")) {
      std::printf("%-22s %s\n", model.name.c_str(),
                  row["error"].get<std::string>().c_str());
    } else {
      std::printf("%-22s %12.0f %12.0f %7.2f  %s\n", model.name.c_str(),
                  row["rknnd_us"].get<double>(),
                  row["onnxruntime_us"].get<double>(),
                  row["ratio"].get<double>(), model.precision.c_str());
    }
    std::fflush(stdout);
  }
  if (!out.empty()) {
    const nlohmann::json figures = {{"peer", kOnnxRuntime},
                                    {"threads", 1},
                                    {"rounds", rounds},
                                    {"models", rows}};
    WriteFigures(out, figures);
  }
  return 0;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("peers",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
