// What the daemon adds to a frame: time at the client minus time on the core,
// for a network of one operator, beside the floor (floor.h) and gRPC
// (grpc_echo.h), in interleaved rounds of one run and one placement. And what
// a large network pays for its memory being cleared (isolation.h).
//
//   rknnd-bench-hotpath [--out FILE] [--rounds N]

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/posix/clock.h"
#include "bench/common/failure.h"
#include "bench/common/one_operator.h"
#include "bench/common/placement.h"
#include "bench/hotpath/floor.h"
#include "bench/hotpath/grpc_echo.h"
#include "bench/hotpath/isolation.h"
#include "bench/hotpath/samples.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/launch/launcher.h"

namespace rknnd::bench {
namespace {

constexpr int kPerRound = 500;
constexpr int kGrpcPerRound = 50;

void RunRound(rknn_context context, int count, Samples* client, Samples* core) {
  const base::MonotonicClock clock;
  for (int i = 0; i < count; ++i) {
    const base::Nanoseconds start = clock.Now();
    if (rknn_run(context, nullptr) != RKNN_SUCC) Fail("rknn_run");
    client->Add(clock.Now() - start);
    rknnd_run_report report;
    if (rknnd_last_run(context, &report) != RKNN_SUCC) Fail("rknnd_last_run");
    core->Add(static_cast<int64_t>(report.run_ns));
  }
}

nlohmann::json Measure(const Placement& placement, int rounds,
                       const std::string& folder) {
  PinTo(placement.client_cpu);
  const std::string address = "unix:" + folder + "/grpc.sock";
  const client::Launcher launcher;
  const client::PrivateDaemon daemon(launcher, placement.server_cpu);
  setenv("RKNND_TARGET", daemon.target().c_str(), 1);
  const base::ChildProcess grpc =
      launcher.Start({"rknnd-bench-hotpath", "--serve-grpc", address}, {},
                     placement.server_cpu);
  PingPong floor(placement.server_cpu);
  GrpcEchoClient grpc_client(address);
  const OneOperatorContext context;

  Samples floor_times, client_times, core_times, grpc_times, warm_up;
  floor.Round(kPerRound, &warm_up);
  RunRound(context.get(), kPerRound, &warm_up, &warm_up);
  grpc_client.Round(kGrpcPerRound, &warm_up);
  for (int round = 0; round < rounds; ++round) {
    floor.Round(kPerRound, &floor_times);
    RunRound(context.get(), kPerRound, &client_times, &core_times);
    grpc_client.Round(kGrpcPerRound, &grpc_times);
  }
  const double floor_p50 = floor_times.Percentile(0.5);
  const double added =
      client_times.Percentile(0.5) - core_times.Percentile(0.5);
  return {
      {"placement", placement.name},
      {"runs", client_times.size()},
      {"floor_us", {{"p50", floor_p50}, {"p99", floor_times.Percentile(0.99)}}},
      {"client_us",
       {{"p50", client_times.Percentile(0.5)},
        {"p99", client_times.Percentile(0.99)}}},
      {"core_us", {{"p50", core_times.Percentile(0.5)}}},
      {"added_us", added},
      {"added_per_floor", added / floor_p50},
      {"grpc_unary_us",
       {{"p50", grpc_times.Percentile(0.5)},
        {"p99", grpc_times.Percentile(0.99)}}},
      {"grpc_per_added", grpc_times.Percentile(0.5) / added}};
}

// In a process of its own: the client library holds one session for the life
// of its process, and threads keep the CPU they were made on.
template <class Body>
nlohmann::json MeasureApart(Body body) {
  const base::TemporaryFolder folder = client::MakeTemporaryFolder();
  const std::string result = folder.path() + "/row.json";
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    // What stands on this stack is the parent's to put away.
    std::_Exit(RunMain("hotpath", [&] {
      WriteFigures(result, body(folder.path()));
      return 0;
    }));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  std::ifstream file(result);
  nlohmann::json row = nlohmann::json::parse(file, nullptr, false);
  if (status != 0 || row.is_discarded()) {
    throw std::runtime_error("the measuring process failed");
  }
  return row;
}

void Print(const nlohmann::json& rows) {
  std::printf("%-10s %10s %10s %10s %10s %8s %10s\n", "placement", "floor us",
              "client us", "core us", "added us", "x floor", "gRPC us");
  for (const auto& row : rows) {
    std::printf("%-10s %10.2f %10.2f %10.2f %10.2f %8.2f %10.2f\n",
                row["placement"].get<std::string>().c_str(),
                row["floor_us"]["p50"].get<double>(),
                row["client_us"]["p50"].get<double>(),
                row["core_us"]["p50"].get<double>(),
                row["added_us"].get<double>(),
                row["added_per_floor"].get<double>(),
                row["grpc_unary_us"]["p50"].get<double>());
  }
}

// One after the other and again: what the machine does meanwhile hits both.
nlohmann::json MeasureIsolations(const std::string& model) {
  constexpr int kRounds = 3, kRuns = 60;
  nlohmann::json best[2];
  for (int round = 0; round < kRounds; ++round) {
    for (const bool isolate : {false, true}) {
      const nlohmann::json row = MeasureApart([&](const std::string&) {
        return MeasureIsolation(model, isolate, kRuns);
      });
      nlohmann::json& kept = best[isolate ? 1 : 0];
      if (kept.is_null() || row["frame_us"] < kept["frame_us"]) kept = row;
    }
  }
  const double ratio =
      best[1]["frame_us"].get<double>() / best[0]["frame_us"].get<double>();
  std::printf("%-10s %10s %10s %10s %14s\n", "isolate", "frame us", "core us",
              "wait us", "internal bytes");
  for (const nlohmann::json& row : best) {
    std::printf("%-10s %10.2f %10.2f %10.2f %14u\n",
                row["isolate"].get<std::string>().c_str(),
                row["frame_us"].get<double>(), row["core_us"].get<double>(),
                row["wait_us"].get<double>(),
                row["internal_bytes"].get<uint32_t>());
  }
  std::printf("yolox_nano, strict / off: %.3f of a frame's time\n", ratio);
  return {{"model", "yolox_nano"}, {"rows", best}, {"strict_per_off", ratio}};
}

int Main(int argc, char** argv) {
  CLI::App app("Latency that the daemon adds to a frame");
  std::string out, serve_grpc;
  int rounds = 20;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--rounds", rounds, "interleaved rounds")
      ->check(CLI::PositiveNumber);
  app.add_option("--serve-grpc", serve_grpc, "be the gRPC peer")->group("");
  CLI11_PARSE(app, argc, argv);
  if (!serve_grpc.empty()) ServeGrpcEcho(serve_grpc);

  nlohmann::json rows = nlohmann::json::array();
  for (const Placement& placement : Placements()) {
    rows.push_back(MeasureApart([&](const std::string& folder) {
      return Measure(placement, rounds, folder);
    }));
  }
  Print(rows);
  if (const std::string model = IsolationModel(); !model.empty()) {
    rows.push_back({{"isolation", MeasureIsolations(model)}});
  } else {
    std::puts("isolation left out: no yolox_nano in $RKNND_SHARED/models");
  }
  if (!out.empty()) WriteFigures(out, rows);
  return 0;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("hotpath",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
