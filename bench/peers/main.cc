// Models beside ONNX Runtime, on one thread and on two, on this CPU and on each
// older one that it can pretend to be: on the same CPUs, in turns of a tenth of
// a second, so that both meet the same machine. The models are those of the
// shared folder and networks of well-known structure with random weights, which
// are made once. Says so and ends well where npm or the network is missing.
//
//   rknnd-bench-peers [--out FILE] [--markdown FILE] [--folder DIR]
//                     [--levels LIST] [--threads LIST] [--models REGEX]
//                     [--rounds N] [--turn-ms N]
//
// The program starts itself again, as rknnd's side (--side).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench/common/failure.h"
#include "bench/common/measures.h"
#include "bench/common/placement.h"
#include "bench/peers/comparison.h"
#include "bench/peers/cpu_name.h"
#include "bench/peers/level.h"
#include "bench/peers/model_set.h"
#include "bench/peers/networks/networks.h"
#include "bench/peers/onnxruntime.h"
#include "bench/peers/rknnd_runner.h"

namespace rknnd::bench {
namespace {

struct Options {
  std::string out, markdown, folder;
  std::vector<std::string> levels;
  std::vector<int> threads = {1, 2};
  std::string models = ".";
  int rounds = 5;
  int turn_milliseconds = 100;
};

// --- turns -------------------------------------------------------------------

// One side's runs.
class Turns {
 public:
  Turns(Side& side, double turn_microseconds)
      : side_(side), turn_microseconds_(turn_microseconds) {
    constexpr int kMost = 5;
    constexpr double kMicroseconds = 1'000'000;
    std::vector<double> first;
    double spent = 0;
    while (first.size() < kMost && spent < kMicroseconds) {
      first.push_back(side_.Run(1).at(0));
      spent += first.back();
    }
    runs_ = std::clamp(
        static_cast<int>(turn_microseconds_ / Percentile(first, 0.5)), 1, 2000);
  }

  void Take() {
    for (const double time : side_.Run(runs_)) times_.push_back(time);
  }
  [[nodiscard]] double Median() const { return Percentile(times_, 0.5); }

 private:
  Side& side_;
  const double turn_microseconds_;
  int runs_ = 1;
  std::vector<double> times_;
};

// Throws where they are no answers to one question.
double Apart(const std::vector<std::vector<float>>& ours,
             const std::vector<std::vector<float>>& theirs) {
  double difference = 0, most = 0;
  bool same = ours.size() == theirs.size();
  for (size_t i = 0; same && i < ours.size(); ++i) {
    same = ours[i].size() == theirs[i].size();
    for (size_t j = 0; same && j < ours[i].size(); ++j) {
      // A value that is no number makes both no number.
      const double apart = std::abs(double{ours[i][j]} - double{theirs[i][j]});
      difference = apart <= difference ? difference : apart;
      most = std::max(most, std::abs(double{theirs[i][j]}));
    }
  }
  if (!same) throw std::runtime_error("outputs of other sizes");
  if (!std::isfinite(difference)) throw std::runtime_error("outputs overflow");
  return most > 0 ? difference / most : difference;
}

Row Compare(const ModelSet& model, const Level& level, int threads,
            const Options& options) {
  Row row;
  row.model = model.name;
  row.precision = model.precision;
  row.is_int8 = model.is_int8();
  try {
    Side our_side = StartRknnd(model, level, threads);
    Side their_side = StartOnnxRuntime(options.folder, model, level, threads);
    const double turn = options.turn_milliseconds * 1000.0;
    Turns ours(our_side, turn), theirs(their_side, turn);
    for (int round = 0; round < options.rounds; ++round) {
      ours.Take();
      theirs.Take();
    }
    row.our_microseconds = ours.Median();
    row.their_microseconds = theirs.Median();
    row.apart = Apart(our_side.Outputs(), their_side.Outputs());
  } catch (const std::exception& error) {
    row.error = error.what();
  }
  return row;
}

// --- all ---------------------------------------------------------------------

Table Measure(const std::vector<ModelSet>& models, const Level& level,
              int threads, const Options& options) {
  Table table = {level.name, threads, {}};
  PrintHead(table, CpuName());
  for (const ModelSet& model : models) {
    table.rows.push_back(Compare(model, level, threads, options));
    PrintRow(table.rows.back());
  }
  PrintSummary(table);
  return table;
}

std::vector<ModelSet> FindModels(const Options& options) {
  std::vector<ModelSet> models = FindModelSets(options.models);
  if (models.empty()) std::puts("no such models in $RKNND_SHARED/models");
  for (ModelSet& network :
       MakeNetworks(options.folder + "/networks", options.models)) {
    models.push_back(std::move(network));
  }
  return models;
}

std::vector<Level> LevelsToMeasure(const Options& options) {
  std::vector<Level> levels = FindLevels(options.levels);
  if (std::any_of(levels.begin(), levels.end(),
                  [](const Level& level) { return level.older != nullptr; })) {
    if (const auto ready = PrepareForOlderCpus(options.folder); !ready) {
      std::printf("only the CPU as it is: %s\n", ready.error().message.c_str());
      levels = {{kNativeLevel}};
    }
  }
  return levels;
}

void Write(const std::vector<Table>& tables, const Options& options) {
  const Circumstances circumstances = {kOnnxRuntime, CpuName(), options.rounds,
                                       options.turn_milliseconds};
  if (!options.out.empty()) {
    WriteFigures(options.out, ToJson(tables, circumstances));
  }
  if (!options.markdown.empty()) {
    WriteMarkdown(options.markdown, tables, circumstances);
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Models beside ONNX Runtime");
  Options options;
  app.add_option("--out", options.out, "JSON file to write");
  app.add_option("--markdown", options.markdown, "file of tables to write");
  app.add_option("--folder", options.folder,
                 "where ONNX Runtime is installed and networks are made");
  app.add_option("--levels", options.levels,
                 "of CPU: native, sse41, avx, avx2, avx2_vnni, avx512, "
                 "avx512_vnni; this one's and all below it")
      ->delimiter(',');
  app.add_option("--threads", options.threads, "1, 2 or both")
      ->delimiter(',')
      ->check(CLI::Range(1, 2));
  app.add_option("--models", options.models, "regular expression of names");
  app.add_option("--rounds", options.rounds, "turns of each")
      ->check(CLI::Range(1, 1000));
  app.add_option("--turn-ms", options.turn_milliseconds, "of a turn")
      ->check(CLI::Range(1, 60'000));
  CLI11_PARSE(app, argc, argv);
  if (options.folder.empty()) {
    // Beside the figures, or where ./dev bench has them.
    options.folder =
        options.out.empty()
            ? std::filesystem::path(RKNND_SOURCE_ROOT "/build/bench/peers")
            : std::filesystem::absolute(options.out).parent_path() / "peers";
  }
  const auto installed = InstallOnnxRuntime(options.folder);
  if (!installed) {
    std::printf("skipped: %s\n", installed.error().message.c_str());
    return 0;
  }
  const std::vector<ModelSet> models = FindModels(options);
  const std::vector<Level> levels = LevelsToMeasure(options);
  const Placement placement = Placements().back();
  std::vector<Table> tables;
  for (const Level& level : levels) {
    for (const int threads : options.threads) {
      if (threads > 1 && placement.client_cpu == placement.server_cpu) {
        std::puts("two threads: this process may use one CPU only");
        continue;
      }
      // Both sides inherit it, with all threads they make.
      PinTo(threads == 1
                ? std::vector{placement.client_cpu}
                : std::vector{placement.client_cpu, placement.server_cpu});
      tables.push_back(Measure(models, level, threads, options));
      Write(tables, options);
    }
  }
  return 0;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  using namespace rknnd::bench;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == kRunnerArgument) {
    return RunRknnd({arguments.begin() + 1, arguments.end()});
  }
  return RunMain("peers", [&] { return Main(argc, argv); });
}
