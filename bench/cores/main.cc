// What a second and a third core of a gang are worth: models on the software
// NPU of this process, unpaced, with core masks 0, 0_1 and 0_1_2 in turns, so
// that all meet the same machine; and that the answers are the same to the bit.
//
//   rknnd-bench-cores [--out FILE] [--rounds N]
//
// Ends with 1 where answers differ, or where two cores are less than 1.6 times
// as fast as one on the heavy network although the machine was free: others
// took less than a tenth of a CPU, and two contexts that share nothing, one on
// each core, did at least 1.8 times the work of one in the same minute.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/cores/load.h"
#include "bench/cores/network.h"

namespace rknnd::bench {
namespace {

constexpr double kWantedRatio = 1.6;
constexpr double kFreeMachine = 0.1;
constexpr double kWantedCeiling = 1.8;
constexpr double kTurnMicroseconds = 50'000;

struct Mask {
  rknn_core_mask mask;
  const char* name;
};
constexpr Mask kMasks[] = {{RKNN_NPU_CORE_0, "0"},
                           {RKNN_NPU_CORE_0_1, "0_1"},
                           {RKNN_NPU_CORE_0_1_2, "0_1_2"}};

// A quarter of the runs were quicker: what others do on the machine now and
// then makes runs slower, never quicker.
double Typical(std::vector<double> values) {
  const auto quarter =
      values.begin() + static_cast<ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), quarter, values.end());
  return *quarter;
}

nlohmann::json Measure(const NetworkFile& file, int rounds) {
  nlohmann::json row = {{"model", file.name}, {"heavy", file.heavy}};
  Network network(file);
  Network beside(file);
  beside.SetCores(RKNN_NPU_CORE_1);
  const double first = Typical(network.Run(5));
  const int runs =
      std::clamp(static_cast<int>(kTurnMicroseconds / first), 1, 1000);
  std::vector<std::vector<double>> times(std::size(kMasks));
  std::vector<double> together;
  std::vector<char> answer;
  bool identical = true;
  network.TakeAnswer();  // and what lies between tensors is equal from now on
  const OthersLoad load;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < std::size(kMasks); ++i) {
      network.SetCores(kMasks[i].mask);
      for (const double time : network.Run(runs)) times[i].push_back(time);
      std::vector<char> given = network.TakeAnswer();
      if (answer.empty()) answer = given;
      identical = identical && given == answer;
    }
    network.SetCores(RKNN_NPU_CORE_0);
    std::thread other([&] { beside.Run(runs); });
    for (const double time : network.Run(runs)) together.push_back(time);
    other.join();
  }
  row["others_cpus"] = load.Cpus();
  row["identical"] = identical;
  row["two_contexts"] = 2 * Typical(times[0]) / Typical(together);
  for (size_t i = 0; i < std::size(kMasks); ++i) {
    row["us"][kMasks[i].name] = Typical(times[i]);
    row["ratio"][kMasks[i].name] = Typical(times[0]) / Typical(times[i]);
  }
  return row;
}

int Main(int argc, char** argv) {
  CLI::App app("Models on one, two and three cores");
  std::string out;
  int rounds = 20;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--rounds", rounds, "turns of each mask")
      ->check(CLI::Range(1, 10000));
  CLI11_PARSE(app, argc, argv);
  setenv("RKNND_TARGET", "local:", 1);
  const int cpus = UsableCpus();
  std::printf("%-22s %9s %9s %9s %7s %7s %9s  %s\n", "us, lower quartile",
              "core 0", "0_1", "0_1_2", "0_1", "0_1_2", "0 beside 1",
              "answers");
  nlohmann::json rows = nlohmann::json::array();
  int code = 0;
  for (const NetworkFile& file : FindNetworks()) {
    nlohmann::json row;
    try {
      row = Measure(file, rounds);
    } catch (const Error& error) {
      std::printf("%-22s %s\n", file.name.c_str(), error.what());
      code = 1;
      continue;
    }
    const double ratio = row["ratio"]["0_1"].get<double>();
    const bool identical = row["identical"].get<bool>();
    const double ceiling = row["two_contexts"].get<double>();
    std::printf("%-22s %9.0f %9.0f %9.0f %6.2fx %6.2fx %9.2fx  %s\n",
                file.name.c_str(), row["us"]["0"].get<double>(),
                row["us"]["0_1"].get<double>(),
                row["us"]["0_1_2"].get<double>(), ratio,
                row["ratio"]["0_1_2"].get<double>(), ceiling,
                identical ? "the same" : "DIFFER");
    std::fflush(stdout);
    const double others = row["others_cpus"].get<double>();
    const bool is_free = others < kFreeMachine && ceiling >= kWantedCeiling;
    row["machine_is_free"] = is_free;
    if (!identical) code = 1;
    if (file.heavy && ratio < kWantedRatio) {
      std::printf("  two cores are worth %.2f, %.1f wanted", ratio,
                  kWantedRatio);
      if (is_free) {
        code = 1;
        std::puts("");
      } else {
        std::printf(
            "; not judged: %d CPUs, others took %.2f, two contexts did %.2f "
            "times the work of one\n",
            cpus, others, ceiling);
      }
    }
    rows.push_back(std::move(row));
  }
  std::printf("%d CPUs: a gang has no more threads than that\n", cpus);
  if (!out.empty()) {
    const nlohmann::json figures = {
        {"cpus", cpus}, {"rounds", rounds}, {"models", rows}};
    std::ofstream(out) << figures.dump(1) << '\n';
  }
  return code;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) { return rknnd::bench::Main(argc, argv); }
