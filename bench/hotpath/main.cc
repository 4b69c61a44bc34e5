// What the daemon adds to a frame (latency.h), against what is asked of it; and
// what a large network pays for memory that is cleared (isolation.h).
//
//   rknnd-bench-hotpath [--out FILE] [--rounds N] [--only PART]

#include <sched.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/common/failure.h"
#include "bench/common/placement.h"
#include "bench/hotpath/apart.h"
#include "bench/hotpath/grpc_echo.h"
#include "bench/hotpath/isolation.h"
#include "bench/hotpath/latency.h"

namespace rknnd::bench {
namespace {

// What is asked of a figure, and what it is.
class Checks {
 public:
  void AtMost(const std::string& what, double asked, double measured) {
    Add(what, "<=", asked, measured, measured <= asked);
  }
  void AtLeast(const std::string& what, double asked, double measured) {
    Add(what, ">=", asked, measured, measured >= asked);
  }
  void Print() const {
    std::printf("\n%-62s %9s %9s\n", "figure", "asked", "measured");
    for (const nlohmann::json& check : checks_) {
      std::printf("%-62s %s %6.2f %9.2f%s\n",
                  check["figure"].get<std::string>().c_str(),
                  check["relation"].get<std::string>().c_str(),
                  check["asked"].get<double>(), check["measured"].get<double>(),
                  check["holds"].get<bool>() ? "" : "  missed");
    }
  }
  [[nodiscard]] const nlohmann::json& json() const { return checks_; }

 private:
  void Add(const std::string& what, const char* relation, double asked,
           double measured, bool holds) {
    checks_.push_back({{"figure", what},
                       {"relation", relation},
                       {"asked", asked},
                       {"measured", measured},
                       {"holds", holds}});
  }
  nlohmann::json checks_ = nlohmann::json::array();
};

// Where a flooder disturbs by its doorbell only, if there is such a CPU.
int FloodCpu(const Placement& placement) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set) && cpu != placement.client_cpu &&
        cpu != placement.server_cpu) {
      return cpu;
    }
  }
  return placement.server_cpu;
}

std::vector<LatencySetup> Setups() {
  const std::string yolox = IsolationModel();
  std::vector<LatencySetup> setups;
  for (const Placement& placement : Placements()) {
    LatencySetup asleep;
    asleep.placement = placement;
    LatencySetup setup = asleep;
    setup.grpc = true;
    setups.push_back(setup);
    setup = asleep;
    setup.flood = true;
    setup.flood_cpu = FloodCpu(placement);
    setups.push_back(setup);
    setup = asleep;
    setup.model = yolox;
    if (!yolox.empty()) setups.push_back(setup);
    // On one CPU the other side cannot go on while this one is awake.
    if (placement.client_cpu == placement.server_cpu) continue;
    setup = asleep;
    setup.spinning = true;
    setups.push_back(setup);
  }
  return setups;
}

void PrintHeader() {
  std::printf("%-9s %-7s %-13s %-6s %9s %9s %9s %9s %9s %8s %9s\n", "placement",
              "waits", "model", "flood", "floor us", "p99", "client us",
              "core us", "added us", "x floor", "gRPC us");
}

void PrintRow(const nlohmann::json& row) {
  std::printf("%-9s %-7s %-13s %-6s %9.2f %9.2f %9.2f %9.2f %9.2f %8.2f",
              row["placement"].get<std::string>().c_str(),
              row["waits"].get<std::string>().c_str(),
              row["model"].get<std::string>().c_str(),
              row["flood"].get<bool>() ? "yes" : "no",
              row["floor_us"]["p50"].get<double>(),
              row["floor_us"]["p99"].get<double>(),
              row["client_us"]["p50"].get<double>(),
              row["core_us"]["p50"].get<double>(),
              row["added_us"].get<double>(),
              row["added_per_floor"].get<double>());
  if (row.contains("grpc_unary_us")) {
    std::printf(" %9.2f", row["grpc_unary_us"]["p50"].get<double>());
  }
  if (row.contains("warm_floor_us")) {
    std::printf(
        "  (warm floor %.2f, p99 %.2f; cold floor %.2f, p99 %.2f: %.2f x)",
        row["warm_floor_us"]["p50"].get<double>(),
        row["warm_floor_us"]["p99"].get<double>(),
        row["cold_floor_us"]["p50"].get<double>(),
        row["cold_floor_us"]["p99"].get<double>(),
        row["added_per_cold_floor"].get<double>());
  }
  if (row.contains("calls_floor_us")) {
    const double calls = row["calls_floor_us"]["p50"].get<double>();
    const nlohmann::json& switches = row["switches"];
    std::printf(
        "\n  of the %.2f us the kernel charges %.2f (the same system calls "
        "behind as long a work), the rest is ours: %.2f, the daemon's between "
        "entry and core %.2f and from the core to the answer %.2f of it\n"
        "  CPU given up and lost by switches in a frame: client %.1f %.1f, "
        "daemon %.1f %.1f",
        row["added_us"].get<double>(), calls,
        row["added_us"].get<double>() - calls,
        row["before_core_us"]["p50"].get<double>(),
        row["behind_core_us"]["p50"].get<double>(),
        switches["client_gives"].get<double>(),
        switches["client_loses"].get<double>(),
        switches["daemon_gives"].get<double>(),
        switches["daemon_loses"].get<double>());
  }
  if (row.contains("quiet_floor_us")) {
    std::printf("  (floor without the flood %.2f, p99 %.2f)",
                row["quiet_floor_us"]["p50"].get<double>(),
                row["quiet_floor_us"]["p99"].get<double>());
  }
  std::putchar('\n');
  std::fflush(stdout);
}

nlohmann::json MeasureLatencies(int rounds, bool networks_only,
                                Checks* checks) {
  nlohmann::json rows = nlohmann::json::array();
  PrintHeader();
  for (const LatencySetup& setup : Setups()) {
    if (networks_only && setup.model.empty()) continue;
    const nlohmann::json row = MeasureApart([&](const std::string& folder) {
      return MeasureLatency(setup, rounds, folder);
    });
    PrintRow(row);
    const std::string where = row["placement"].get<std::string>() + ", " +
                              row["waits"].get<std::string>() + ", " +
                              row["model"].get<std::string>() +
                              (setup.flood ? ", beside a flood" : "");
    if (!setup.flood) {
      checks->AtMost("added / floor: " + where, setup.spinning ? 0.5 : 1.5,
                     row["added_per_floor"]);
    }
    checks->AtMost("added p99 / floor p99: " + where, 3,
                   row["p99_per_floor_p99"]);
    if (row.contains("cold_floor_us")) {
      checks->AtMost("added / cold floor: " + where, 1.5,
                     row["added_per_cold_floor"]);
    }
    if (setup.grpc &&
        setup.placement.client_cpu == setup.placement.server_cpu) {
      checks->AtLeast("gRPC unary / added: " + where, 8, row["grpc_per_added"]);
    }
    rows.push_back(row);
  }
  return rows;
}

nlohmann::json MeasureClientCpus(int rounds, Checks* checks) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Placement& placement : Placements()) {
    const nlohmann::json row = MeasureApart([&](const std::string& folder) {
      return MeasureClientCpu(placement, rounds, folder);
    });
    std::printf(
        "%-9s client's CPU %.2f us a frame, eventfd and futex %.2f us\n",
        placement.name.c_str(), row["frame_cpu_us"].get<double>(),
        row["peer_cpu_us"].get<double>());
    checks->AtMost(
        "client's CPU / eventfd write and futex wait: " + placement.name, 1.5,
        row["ratio"]);
    rows.push_back(row);
  }
  return rows;
}

nlohmann::json MeasureCustomOperators(int rounds, Checks* checks) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Placement& placement : Placements()) {
    const nlohmann::json row = MeasureApart([&](const std::string& folder) {
      return MeasureCustomOperator(placement, rounds, folder);
    });
    std::printf(
        "%-9s run %.2f us, with an operator of the program's %.2f us; without "
        "what the cores compute %.2f us more, floor %.2f us\n",
        placement.name.c_str(), row["run_us"].get<double>(),
        row["interrupted_us"].get<double>(), row["round_trip_us"].get<double>(),
        row["floor_us"].get<double>());
    checks->AtMost("custom operator / floor: " + placement.name, 4,
                   row["per_floor"]);
    rows.push_back(row);
  }
  return rows;
}

nlohmann::json MeasureGrowths(int rounds, Checks* checks) {
  const Placement placement = Placements().front();
  const nlohmann::json sessions = MeasureApart([&](const std::string& folder) {
    return MeasureSessions(placement, rounds, folder);
  });
  checks->AtMost("added, 64 sessions / 1", 1.1, sessions["growth"]);
  const nlohmann::json contexts = MeasureApart([&](const std::string& folder) {
    return MeasureContexts(placement, rounds, folder);
  });
  checks->AtMost("added, 1000 contexts / 1", 1.1, contexts["growth"]);
  return {{"sessions", sessions}, {"contexts", contexts}};
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
  std::string out, only, serve_grpc;
  int rounds = 20;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--rounds", rounds, "interleaved rounds")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--only", only,
         "latency, networks (of it), client, custom, growth or isolation")
      ->check(CLI::IsMember(std::vector<std::string>{
          "latency", "networks", "client", "custom", "growth", "isolation"}));
  app.add_option("--serve-grpc", serve_grpc, "be the gRPC peer")->group("");
  CLI11_PARSE(app, argc, argv);
  if (!serve_grpc.empty()) ServeGrpcEcho(serve_grpc);

  Checks checks;
  nlohmann::json figures;
  const auto wanted = [&only](const char* part) {
    return only.empty() || only == part;
  };
  if (wanted("latency") || wanted("networks")) {
    figures["latency"] = MeasureLatencies(rounds, only == "networks", &checks);
  }
  if (wanted("client")) {
    figures["client_cpu"] = MeasureClientCpus(rounds, &checks);
  }
  if (wanted("custom")) {
    figures["custom_operator"] = MeasureCustomOperators(rounds, &checks);
  }
  if (wanted("growth")) figures["growth"] = MeasureGrowths(rounds, &checks);
  if (const std::string model = IsolationModel(); !model.empty()) {
    if (wanted("isolation")) figures["isolation"] = MeasureIsolations(model);
  } else {
    std::puts("yolox_nano left out: it is not in $RKNND_SHARED/models");
  }
  checks.Print();
  figures["checks"] = checks.json();
  if (!out.empty()) WriteFigures(out, figures);
  return 0;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) {
  return rknnd::bench::RunMain("hotpath",
                               [&] { return rknnd::bench::Main(argc, argv); });
}
