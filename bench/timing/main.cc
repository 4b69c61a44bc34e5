// How well the timing model of the software NPU fits what was published: cycles
// of convolutions, which are to be reproduced exactly, and milliseconds of
// whole networks on one core, whose mean error is to be at most 8 % on the
// RK3588. Computes and compares; runs nothing. Exits with 1 when either is not
// so.
//
//   rknnd-bench-timing [--out FILE] [--layers NETWORK]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/timing/networks.h"
#include "driver/soft/soc.h"
#include "driver/soft/timing/layer_cost.h"
#include "driver/soft/timing/testing/published_cycles.h"

namespace rknnd::bench {
namespace {

constexpr double kMostMeanError = 0.08;
// That a network is the published one.
constexpr double kMostGmacError = 0.03;

soft::SocProfile Soc(const std::string& name) {
  absl::StatusOr<soft::SocProfile> soc = soft::FindSoc(name);
  if (!soc.ok()) {
    std::fprintf(stderr, "rknnd-bench-timing: %s\n",
                 std::string(soc.status().message()).c_str());
    std::exit(1);
  }
  return *soc;
}

nlohmann::json CompareCycles(bool& holds) {
  nlohmann::json tables = nlohmann::json::array();
  std::printf("%-32s %-8s %12s %8s %14s\n", "published cycles", "SoC",
              "convolutions", "exact", "DDR, worst off");
  for (const soft::PublishedTable& table : soft::PublishedTables()) {
    soft::SocProfile soc = Soc(table.soc);
    soc.estimate_gbs = table.ddr_gbs;
    uint32_t all = 0, exact = 0;
    double worst = 0;
    bool has_ddr = false;
    for (const soft::PublishedConv& row : table.rows) {
      const soft::LayerEstimate estimate =
          soft::EstimateLayer(soft::WorkOf(row, soc), soc);
      all += row.count;
      if (estimate.npu_cycles == row.npu_cycles) exact += row.count;
      if (row.ddr_cycles == 0) continue;
      has_ddr = true;
      worst =
          std::max(worst, std::fabs(static_cast<double>(estimate.ddr_cycles) /
                                        static_cast<double>(row.ddr_cycles) -
                                    1));
    }
    std::printf("%-32s %-8s %12u %8u ", table.name, table.soc, all, exact);
    if (has_ddr) {
      std::printf("%12.3f %%\n", 100 * worst);
    } else {
      std::printf("%14s\n", "-");
    }
    holds = holds && exact == all;
    nlohmann::json row = {{"table", table.name},
                          {"soc", table.soc},
                          {"convolutions", all},
                          {"exact", exact}};
    if (has_ddr) row["ddr_worst"] = worst;
    tables.push_back(std::move(row));
  }
  return tables;
}

double Milliseconds(const std::vector<soft::LayerWork>& works,
                    const soft::SocProfile& soc) {
  std::vector<soft::LayerTime> times;
  times.reserve(works.size());
  for (const soft::LayerWork& work : works) {
    times.push_back(soft::SimulateLayer(work, soc));
  }
  return static_cast<double>(soft::SimulateProgram(times, soc, {})) / 1e6;
}

double Gmac(const std::vector<soft::LayerWork>& works,
            const soft::SocProfile& soc) {
  uint64_t macs = 0;
  for (const soft::LayerWork& work : works) {
    macs += soft::EstimateLayer(work, soc).macs;
  }
  return static_cast<double>(macs) / 1e9;
}

nlohmann::json CompareTimes(const char* name, double PublishedTimes::*published,
                            double& mean, bool& rebuilt) {
  const soft::SocProfile soc = Soc(name);
  nlohmann::json rows = nlohmann::json::array();
  std::printf("\n%-14s %8s %10s %8s %10s %10s %8s\n", name, "GMAC", "published",
              "layers", "model ms", "published", "error");
  double sum = 0, worst = 0;
  for (const Network& network : Networks()) {
    const std::vector<soft::LayerWork> works = network.layers(soc);
    const double gmac = Gmac(works, soc);
    const double ms = Milliseconds(works, soc);
    const double truth = network.published.*published;
    const double error = ms / truth - 1;
    sum += std::fabs(error);
    worst = std::max(worst, std::fabs(error));
    const bool same = std::fabs(gmac / network.gmac - 1) <= kMostGmacError;
    rebuilt = rebuilt && same;
    std::printf("%-14s %8.2f %10.2f %8zu %10.2f %10.2f %+7.1f %%%s\n",
                network.name.c_str(), gmac, network.gmac, works.size(), ms,
                truth, 100 * error, same ? "" : "  (another network)");
    rows.push_back({{"network", network.name},
                    {"gmac", gmac},
                    {"published_gmac", network.gmac},
                    {"layers", works.size()},
                    {"ms", ms},
                    {"published_ms", truth},
                    {"error", error}});
  }
  mean = sum / static_cast<double>(Networks().size());
  std::printf("%-14s mean absolute error %.1f %%, worst %.1f %%\n", "",
              100 * mean, 100 * worst);
  return {{"soc", name}, {"networks", rows}, {"mean", mean}, {"worst", worst}};
}

void PrintLayers(const std::string& name) {
  const soft::SocProfile soc = Soc("rk3588");
  for (const Network& network : Networks()) {
    if (network.name != name) continue;
    for (const soft::LayerWork& work : network.layers(soc)) {
      const soft::LayerTime time = soft::SimulateLayer(work, soc);
      std::printf("%d %5llu -> %4llu  %10.0f ns: %10.0f compute %10.0f bytes\n",
                  static_cast<int>(work.kind),
                  static_cast<unsigned long long>(work.in_channels),
                  static_cast<unsigned long long>(work.out_channels),
                  time.alone(), time.compute, time.bytes / time.bytes_rate);
    }
  }
}

int Main(int argc, char** argv) {
  CLI::App app("The timing model against what was published");
  std::string out, layers;
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--layers", layers, "show a network's layers");
  CLI11_PARSE(app, argc, argv);
  if (!layers.empty()) {
    PrintLayers(layers);
    return 0;
  }
  bool exact = true, rebuilt = true;
  nlohmann::json figures;
  figures["cycles"] = CompareCycles(exact);
  double mean = 0, others = 0;
  figures["times"] = nlohmann::json::array();
  figures["times"].push_back(
      CompareTimes("rk3588", &PublishedTimes::rk3588, mean, rebuilt));
  figures["times"].push_back(
      CompareTimes("rk3576", &PublishedTimes::rk3576, others, rebuilt));
  figures["times"].push_back(
      CompareTimes("rk3562", &PublishedTimes::rk3562, others, rebuilt));
  figures["times"].push_back(
      CompareTimes("rk3568", &PublishedTimes::rk3568, others, rebuilt));
  const bool holds = exact && rebuilt && mean <= kMostMeanError;
  figures["holds"] = holds;
  if (!exact) std::printf("published cycles are not reproduced\n");
  if (mean > kMostMeanError) {
    std::printf("the mean error on the rk3588 is more than 8 %%\n");
  }
  if (!out.empty()) std::ofstream(out) << figures.dump(1) << '\n';
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace rknnd::bench

int main(int argc, char** argv) { return rknnd::bench::Main(argc, argv); }
