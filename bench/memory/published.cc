// See published.h.

#include "bench/memory/published.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "client/launch/memory_rows.h"

namespace rknnd::bench {
namespace {

constexpr int kStreams = 4, kContexts = 3;
constexpr double kAll = kStreams * kContexts;
constexpr double kTolerance = 0.01;
// Of models that share weights each has a page or two of its own.
constexpr double kToleranceOfModels = 0.05;
// Of what the processes take without reuse.
constexpr double kMostOfProcesses = 0.4;
constexpr base::Nanoseconds kPatience = 60 * base::kSecond;

double Cores(const client::Launcher& launcher) {
  const client::PrivateDaemon daemon(launcher);
  base::ChildProcess ctl = launcher.Start(
      {"rknnctl", "--target", daemon.target(), "--json", "status"});
  const auto text = ctl.ReadAll(kPatience);
  if (!text) throw std::runtime_error("rknnctl: " + text.error().message);
  return nlohmann::json::parse(*text).at("device").at("cores").get<double>();
}

// What a row is to be, with weights W and internal memory I of one context.
double Expected(const std::string& key, double weight, double internal,
                double cores) {
  if (key == "no_reuse" || key == "no_reuse_processes")
    return kAll * (weight + internal);
  if (key == "dup_per_stream") return kStreams * weight + kAll * internal;
  if (key == "dup_all") return weight + kAll * internal;
  // Four models or one: their weights are the same.
  return weight + cores * internal;
}

double MiB(double bytes) { return bytes / (1024 * 1024); }

}  // namespace

nlohmann::json MeasurePublished(const client::Launcher& launcher,
                                const std::string& model, Processes processes) {
  const client::MemoryRow one = client::MeasureSharedRow(launcher, model, 1, 1);
  const double cores = Cores(launcher);
  const auto weight = static_cast<double>(one.memory.weight);
  const double internal = static_cast<double>(one.memory.internal) / cores;
  std::vector<client::MemoryRow> rows =
      client::MeasureRows(launcher, model, kStreams, kContexts);
  rows.push_back(
      client::MeasureProcessesRow(launcher, model, kStreams, kContexts));
  rows.push_back(
      client::MeasureSharedRow(launcher, model, kStreams, kContexts));

  std::printf("%s\n", model.c_str());
  std::printf("%d streams x %d contexts, MiB %15s %9s %9s %7s %10s\n", kStreams,
              kContexts, "weights", "internal", "together", "off by",
              "processes");
  nlohmann::json table;
  bool holds = true;
  for (const client::MemoryRow& row : rows) {
    const auto measured = static_cast<double>(row.npu_bytes());
    const double expected = Expected(row.key, weight, internal, cores);
    const double off = measured / expected - 1;
    const bool as_promised =
        std::fabs(off) <=
        (row.key == "four_models" ? kToleranceOfModels : kTolerance);
    holds = holds && as_promised;
    table[row.key] = {{"weight", row.memory.weight},
                      {"internal", row.memory.internal},
                      {"expected", expected},
                      {"off", off},
                      {"processes", row.process_bytes}};
    std::printf("  %-32s %8.2f %9.2f %9.2f %6.2f%% %10.1f%s\n",
                row.name.c_str(), MiB(static_cast<double>(row.memory.weight)),
                MiB(static_cast<double>(row.memory.internal)), MiB(measured),
                100 * off, MiB(static_cast<double>(row.process_bytes)),
                as_promised ? "" : "  (off too much)");
  }
  const auto of = [&](const client::MemoryRow& row) {
    return static_cast<double>(rows.back().process_bytes) /
           static_cast<double>(row.process_bytes);
  };
  const double of_processes = of(rows[rows.size() - 2]);
  const double of_one = of(rows.front());
  const bool small =
      processes == Processes::kMeasured || of_one <= kMostOfProcesses;
  std::printf(
      "  rknnd's processes, of one without reuse %15.1f %%%s\n"
      "                     of as many without reuse %14.1f %%\n\n",
      100 * of_one, small ? "" : "  (more than 40 %)", 100 * of_processes);
  return {{"model", model},
          {"cores", cores},
          {"weight", weight},
          {"internal", internal},
          {"rows", table},
          {"processes_of_as_many", of_processes},
          {"processes_of_one", of_one},
          {"holds", holds && small}};
}

}  // namespace rknnd::bench
