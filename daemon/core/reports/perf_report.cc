// Column titles are the vendor's: scripts look for them.

#include "daemon/core/reports/perf_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "daemon/core/terms/text_table.h"

namespace rknnd::core {
namespace {

uint64_t Microseconds(base::Nanoseconds time) {
  return static_cast<uint64_t>((std::max<base::Nanoseconds>(time, 0) + 500) /
                               1000);
}

uint64_t Kilobytes(uint64_t bytes) { return (bytes + 512) / 1024; }

std::string Percents(const std::vector<float>& shares, const char* format) {
  return absl::StrJoin(shares, "/", [format](std::string* out, float share) {
    absl::StrAppend(out, format[0] == '%' ? absl::StrFormat("%.1f%%", share)
                                          : absl::StrFormat("%.2f", share));
  });
}

// "0/1/2"
std::string CoreNames(uint32_t cores) {
  std::string names;
  for (uint32_t core = 0; core < cores; ++core) {
    absl::StrAppend(&names, core == 0 ? "" : "/", core);
  }
  return names;
}

bool IsHalf(const driver::LayerInfo& layer) {
  return layer.data_type != "INT8" && layer.data_type != "UINT8" &&
         layer.data_type != "INT4";
}

// FullName says what the network's own operator was: "Conv" of "ConvAddRelu".
std::string OperatorOf(const std::string& layer_type) {
  for (const char* type : {"ConvTranspose", "Conv"}) {
    if (absl::StartsWith(layer_type, type)) return type;
  }
  return layer_type;
}

std::string KernelText(const driver::LayerInfo& layer) {
  if (layer.kernel.empty()) return "\\";
  return absl::StrCat(layer.kernel, layer.is_slow ? " (slow)" : "");
}

// The time that calls of one operator type took.
struct TypeTime {
  std::string type;
  uint64_t calls = 0;
  base::Nanoseconds cpu = 0, npu = 0;
  [[nodiscard]] base::Nanoseconds total() const { return cpu + npu; }
};

std::vector<TypeTime> Rank(std::span<const LayerRow> rows) {
  std::map<std::string, TypeTime> types;
  for (const LayerRow& row : rows) {
    TypeTime& type = types[row.layer->type];
    type.type = row.layer->type;
    ++type.calls;
    (row.layer->on_cpu ? type.cpu : type.npu) += row.time;
  }
  std::vector<TypeTime> ranking;
  for (auto& [name, type] : types) ranking.push_back(std::move(type));
  std::stable_sort(ranking.begin(), ranking.end(),
                   [](const TypeTime& a, const TypeTime& b) {
                     return a.total() > b.total();
                   });
  return ranking;
}

std::string LayerTable(std::span<const LayerRow> rows,
                       const driver::DeviceInfo& device) {
  const bool several = device.cores > 1;
  std::vector<std::string> titles = {"ID",        "OpType",     "DataType",
                                     "Target",    "InputShape", "OutputShape",
                                     "DDRCycles", "NPUCycles",  "MaxCycles",
                                     "Time(us)",  "MacUsage(%)"};
  if (several) {
    titles.push_back(absl::StrCat("WorkLoad(", CoreNames(device.cores), ")"));
  }
  for (const char* title : {"TaskNumber", "RW(KB)", "FullName"}) {
    titles.emplace_back(title);
  }
  // Ours, behind those that scripts know; boards with an NPU have none.
  const bool has_kernels = std::any_of(
      rows.begin(), rows.end(),
      [](const LayerRow& row) { return !row.layer->kernel.empty(); });
  if (has_kernels) titles.emplace_back("Kernel");
  TextTable table(std::move(titles));
  size_t id = 1;
  for (const LayerRow& row : rows) {
    const driver::LayerInfo& layer = *row.layer;
    std::vector<std::string> cells = {
        absl::StrCat(id++),
        layer.type,
        layer.data_type.empty() ? "\\" : layer.data_type,
        layer.on_cpu ? "CPU" : "NPU",
        layer.input_shape.empty() ? "\\" : ShapesText(layer.input_shape),
        layer.output_shape.empty() ? "\\" : ShapesText(layer.output_shape),
        absl::StrCat(layer.ddr_cycles),
        absl::StrCat(layer.npu_cycles),
        absl::StrCat(std::max(layer.ddr_cycles, layer.npu_cycles)),
        absl::StrCat(Microseconds(row.time)),
        layer.macs == 0 ? "\\" : Percents(row.mac_usage, "")};
    if (several) cells.push_back(Percents(row.work_load, "%"));
    cells.push_back(absl::StrCat(row.tasks));
    cells.push_back(absl::StrCat(Kilobytes(layer.ddr_read)));
    cells.push_back(FullName(layer));
    if (has_kernels) cells.push_back(KernelText(layer));
    table.Add(std::move(cells));
  }
  return table.ToString("Network Layer Information Table");
}

std::string RankingTable(std::span<const LayerRow> rows,
                         base::Nanoseconds total) {
  TextTable table({"OpType", "CallNumber", "CPUTime(us)", "GPUTime(us)",
                   "NPUTime(us)", "TotalTime(us)", "TimeRatio(%)"});
  TypeTime sum;
  for (const TypeTime& type : Rank(rows)) {
    const double ratio = total <= 0
                             ? 0
                             : 100.0 * static_cast<double>(type.total()) /
                                   static_cast<double>(total);
    table.Add({type.type, absl::StrCat(type.calls),
               absl::StrCat(Microseconds(type.cpu)), "0",
               absl::StrCat(Microseconds(type.npu)),
               absl::StrCat(Microseconds(type.total())),
               absl::StrFormat("%.2f%%", ratio)});
    sum.cpu += type.cpu;
    sum.npu += type.npu;
  }
  table.AddFooter({"Total", "", absl::StrCat(Microseconds(sum.cpu)), "0",
                   absl::StrCat(Microseconds(sum.npu)),
                   absl::StrCat(Microseconds(sum.total())), ""});
  return table.ToString("Operator Time Consuming Ranking Table");
}

}  // namespace

std::vector<LayerRow> MakeRows(const std::vector<driver::LayerInfo>& layers,
                               std::span<const int64_t> times,
                               uint32_t core_mask,
                               const driver::DeviceInfo& device) {
  std::vector<uint32_t> cores;
  for (uint32_t core = 0; core < device.cores; ++core) {
    if ((core_mask >> core & 1) != 0) cores.push_back(core);
  }
  if (cores.empty()) cores.push_back(0);
  std::vector<LayerRow> rows;
  for (size_t i = 0; i < layers.size() && i < times.size(); ++i) {
    LayerRow row;
    row.layer = &layers[i];
    row.time = times[i];
    row.mac_usage.resize(device.cores);
    row.work_load.resize(device.cores);
    if (!row.layer->on_cpu) {
      const size_t sharing = row.layer->splits ? cores.size() : 1;
      row.tasks = static_cast<uint32_t>(sharing);
      // What a core could have done meanwhile.
      const double possible =
          static_cast<double>(device.macs_per_cycle) *
          (IsHalf(*row.layer) ? 0.5 : 1.0) * static_cast<double>(device.mhz) *
          (static_cast<double>(std::max<base::Nanoseconds>(row.time, 0)) /
           1000.0);
      const double macs =
          static_cast<double>(row.layer->macs) / static_cast<double>(sharing);
      for (size_t c = 0; c < sharing; ++c) {
        row.work_load[cores[c]] = 100.0F / static_cast<float>(sharing);
        row.mac_usage[cores[c]] =
            possible <= 0 ? 0 : static_cast<float>(100.0 * macs / possible);
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string FullName(const driver::LayerInfo& layer) {
  return absl::StrCat(OperatorOf(layer.type), ":", layer.name);
}

std::string ShapesText(const std::string& shapes) {
  if (shapes.empty() || shapes.front() == '(') return shapes;
  return absl::StrCat(
      "(", absl::StrReplaceAll(shapes, {{",", "),("}, {"x", ","}}), ")");
}

std::string PerfTable(std::span<const LayerRow> rows,
                      const driver::DeviceInfo& device) {
  base::Nanoseconds total = 0;
  uint64_t bytes = 0;
  for (const LayerRow& row : rows) {
    total += std::max<base::Nanoseconds>(row.time, 0);
    bytes += row.layer->ddr_read;
  }
  return absl::StrCat(
      LayerTable(rows, device),
      "Total Operator Elapsed Per Frame Time(us): ", Microseconds(total), "\n",
      "Total Memory Read/Write Per Frame Size(KB): ", Kilobytes(bytes), "\n",
      RankingTable(rows, total));
}

absl::StatusOr<std::vector<LayerRow>> LastRows(
    const RunContext& context, const driver::DeviceInfo& device) {
  if (!context.traits().collect_perf) {
    return absl::FailedPreconditionError(
        "No layer times were recorded: initialise the context with "
        "RKNN_FLAG_COLLECT_PERF_MASK (or set RKNN_LOG_LEVEL=4) and run it.");
  }
  if ((device.limits & driver::kNoLayerTimes) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "No layer times were recorded: the runtime of ", device.soc,
        " measures whole runs only (RKNN_QUERY_PERF_RUN)."));
  }
  const RunContext::LayerTimes last = context.LastTimes();
  if (last.nanoseconds.empty()) {
    return absl::FailedPreconditionError(
        "No layer times were recorded: no run yet.");
  }
  return MakeRows(context.model()->program(last.row).layers, last.nanoseconds,
                  last.core_mask, device);
}

std::string PerfText(const RunContext& context,
                     const driver::DeviceInfo& device) {
  const auto rows = LastRows(context, device);
  if (!rows.ok()) return absl::StrCat(rows.status().message(), "\n");
  return PerfTable(*rows, device);
}

}  // namespace rknnd::core
