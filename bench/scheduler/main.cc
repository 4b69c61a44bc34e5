// What the scheduler keeps, measured: real processes at full load on the
// software NPU with an RK3588's times (--pace on), beside what was asked of it.
//
//   rknnd-bench-scheduler [--out FILE] [--seconds N] [--idle-seconds N]
//                         [--only WORD]
//
// Jobs are of a network that the SoC takes 10 ms for and a CPU less than one,
// so that the machine's CPUs are not what is measured. Ends with 1 where a
// figure does not hold.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/common/failure.h"
#include "bench/common/figures.h"
#include "bench/scheduler/board.h"
#include "bench/scheduler/clients.h"
#include "bench/scheduler/idle.h"
#include "bench/scheduler/loads.h"
#include "bench/scheduler/network.h"

namespace rknnd::bench {
namespace {

// 8 us each: 10 ms and 16 ms.
constexpr int kShortLayers = 1300, kLongLayers = 2000;

std::string WriteModel(const std::string& path, int layers) {
  std::ofstream(path, std::ios::binary) << ChainModel(layers);
  return path;
}

// Of a run that has its core to itself.
double RunMilliseconds(Board& board, const std::string& model) {
  Clients clients(board.target());
  ClientPlan plan;
  plan.model = model;
  plan.seconds = 0.5;
  clients.Add(plan);
  clients.Go();
  return clients.Finish().at(0).at("run_p50_ms").get<double>();
}

int Main(int argc, char** argv) {
  CLI::App app("What the scheduler keeps");
  std::string out, only;
  double seconds = 14, idle_seconds = 60;
  std::string client;
  ClientPlan plan;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--seconds", seconds, "of the row at full load")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--idle-seconds", idle_seconds, "of the idle row")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--only", only,
                 "one of shares, contexts, classes, gangs, streams, flood, "
                 "idle");
  app.add_option("--client", client, "be a client")->group("");
  app.add_option("--model", plan.model)->group("");
  app.add_option("--contexts", plan.contexts)->group("");
  app.add_option("--priority", plan.priority)->group("");
  app.add_option("--core-mask", plan.core_mask)->group("");
  app.add_option("--period-ms", plan.period_ms)->group("");
  app.add_option("--warm-up", plan.warm_up)->group("");
  CLI11_PARSE(app, argc, argv);
  if (!client.empty()) {
    plan.work = client;
    plan.seconds = seconds;
    return RunClient(plan);
  }

  const base::TemporaryFolder folder = client::MakeTemporaryFolder();
  Board board;
  Networks networks;
  networks.short_model =
      WriteModel(folder.path() + "/short.onnx", kShortLayers);
  networks.long_model = WriteModel(folder.path() + "/long.onnx", kLongLayers);
  networks.short_ms = RunMilliseconds(board, networks.short_model);
  networks.long_ms = RunMilliseconds(board, networks.long_model);
  std::printf(
      "RK3588 paced, three cores; jobs of %.2f ms, beside gangs also "
      "of %.2f ms\n",
      networks.short_ms, networks.long_ms);
  Figures figures;
  Figures::PrintHead();
  const auto row =
      [&](const char* name, double time,
          void (*measure)(Board&, const Networks&, double, Figures*)) {
        if (only.empty() || only == name)
          measure(board, networks, time, &figures);
      };
  row("shares", seconds, MeasureShares);
  row("contexts", seconds * 0.7, MeasureManyContexts);
  row("classes", seconds, MeasureClasses);
  row("gangs", seconds * 0.7, MeasureGangs);
  row("streams", seconds * 0.4, MeasureStreams);
  row("flood", seconds * 0.4, MeasureFlood);
  if (only.empty() || only == "idle") {
    // No model of others waits for its time to go.
    Board fresh;
    MeasureIdle(fresh, networks, idle_seconds, &figures);
  }
  if (!out.empty()) {
    WriteFigures(out, {{"job_ms", networks.short_ms},
                       {"long_job_ms", networks.long_ms},
                       {"rows", figures.rows()}});
  }
  return figures.all_hold() ? 0 : 1;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("scheduler",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
