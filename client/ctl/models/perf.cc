#include "client/ctl/models/perf.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "client/ctl/board/clocks.h"
#include "client/ctl/models/network.h"
#include "client/ctl/models/network_inputs.h"
#include "client/ctl/text/progress.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

using base::Expected;

double Microseconds(uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1000.0;
}

uint64_t Kilobytes(uint64_t bytes) { return (bytes + 512) / 1024; }

Expected<std::unique_ptr<Network>> LoadForPerf(const PerfOptions& options,
                                               uint32_t flags) {
  Expected<std::unique_ptr<Network>> loaded =
      Network::Load(options.model, flags);
  if (!loaded) return loaded;
  Network& network = **loaded;
  if (options.core_mask != RKNN_NPU_CORE_AUTO) {
    if (Expected<void> set = network.SetCoreMask(options.core_mask); !set) {
      return std::move(set).error();
    }
  }
  const Expected<std::vector<TensorInput>> inputs =
      MakeInputs(network, options.inputs);
  if (!inputs) return inputs.error();
  if (Expected<void> set = network.SetInputs(*inputs); !set) {
    return std::move(set).error();
  }
  return loaded;
}

// The model as a program runs it: no layer is looked at.
Expected<void> MeasureWhole(const PerfOptions& options, BoardClocks& clocks,
                            Output& output) {
  const Expected<std::unique_ptr<Network>> network = LoadForPerf(options, 0);
  if (!network) return network.error();
  Progress progress(options.json, Progress::Unit::kThings);
  std::vector<int64_t> times;
  // One more, which warms caches up.
  for (int i = 0; i <= options.runs; ++i) {
    progress.Update("perf", static_cast<uint64_t>(i),
                    static_cast<uint64_t>(options.runs) + 1);
    if (Expected<void> run = (*network)->Run(); !run) return run;
    const Expected<int64_t> time = (*network)->RunMicroseconds();
    if (!time) return time.error();
    if (i > 0) times.push_back(*time);
    // Under load, which governors follow.
    if (i == (options.runs + 1) / 2) clocks.Look();
  }
  progress.Clear();
  const int64_t total = std::accumulate(times.begin(), times.end(), int64_t{0});
  const double mean =
      static_cast<double>(total) / static_cast<double>(options.runs);
  const double fps = 1e6 / std::max(mean, 1.0);
  output.json["whole"] = {{"runs", options.runs},
                          {"total_us", total},
                          {"run_us", mean},
                          {"fps", fps},
                          {"clocks", ClocksJson(clocks.clocks())},
                          {"fixed", clocks.fixed()}};
  output.text += "Whole model: " +
                 FormatCount(static_cast<uint64_t>(options.runs), "run") +
                 " in " + FormatMicroseconds(static_cast<double>(total)) +
                 ", " + FormatMicroseconds(mean) + " each, " +
                 FormatValue(fps) + " frames per second\n";
  if (!clocks.clocks().empty()) {
    output.text += "Clocks: " + ClocksText(clocks.clocks()) + "\n";
  }
  if (!clocks.npu().empty()) {
    output.json["whole"]["npu"] = clocks.npu();
    output.text += "NPU: " + Printable(clocks.npu()) + "\n";
  }
  if (!clocks.why().empty()) {
    output.json["whole"]["why"] = clocks.why();
    output.text += (options.fix_freq ? "Clocks are not fixed: " : "Clocks: ") +
                   Printable(clocks.why()) + "\n";
  }
  return {};
}

}  // namespace

Json LayersJson(std::span<const rknnd_layer> layers,
                std::span<const rknnd_kernel> kernels) {
  // Of another shape than the one that ran, they are of no use.
  const bool known = kernels.size() == layers.size();
  Json rows = Json::array();
  for (const rknnd_layer& layer : layers) {
    const std::span mac_usage(layer.mac_usage, layer.cores);
    const std::span work_load(layer.work_load, layer.cores);
    const rknnd_kernel* kernel = known ? &kernels[rows.size()] : nullptr;
    rows.push_back(
        {{"id", rows.size() + 1},
         {"op_type", layer.type},
         {"data_type", layer.data_type},
         {"target", layer.target},
         {"input_shape", layer.input_shape},
         {"output_shape", layer.output_shape},
         {"ddr_cycles", layer.ddr_cycles},
         {"npu_cycles", layer.npu_cycles},
         {"max_cycles", std::max(layer.ddr_cycles, layer.npu_cycles)},
         {"time_us", Microseconds(layer.time_ns)},
         {"mac_usage", std::vector(mac_usage.begin(), mac_usage.end())},
         {"work_load", std::vector(work_load.begin(), work_load.end())},
         {"task_number", layer.tasks},
         {"rw_kb", Kilobytes(layer.rw_bytes)},
         {"full_name", layer.name},
         {"kernel", kernel == nullptr ? "" : kernel->kernel},
         {"is_slow", kernel != nullptr && kernel->is_slow != 0}});
  }
  return rows;
}

Json RankingJson(std::span<const rknnd_layer> layers) {
  struct Type {
    std::string name;
    uint64_t calls = 0, cpu = 0, npu = 0;
  };
  std::map<std::string, Type> types;
  uint64_t total = 0;
  for (const rknnd_layer& layer : layers) {
    Type& type = types[layer.type];
    type.name = layer.type;
    ++type.calls;
    (std::string_view(layer.target) == "CPU" ? type.cpu : type.npu) +=
        layer.time_ns;
    total += layer.time_ns;
  }
  std::vector<Type> ranking;
  for (auto& [name, type] : types) ranking.push_back(std::move(type));
  std::stable_sort(ranking.begin(), ranking.end(),
                   [](const Type& a, const Type& b) {
                     return a.cpu + a.npu > b.cpu + b.npu;
                   });
  Json rows = Json::array();
  for (const Type& type : ranking) {
    const uint64_t time = type.cpu + type.npu;
    rows.push_back(
        {{"op_type", type.name},
         {"call_number", type.calls},
         {"cpu_time_us", Microseconds(type.cpu)},
         {"gpu_time_us", 0},
         {"npu_time_us", Microseconds(type.npu)},
         {"total_time_us", Microseconds(time)},
         {"time_ratio", total == 0 ? 0.0
                                   : 100.0 * static_cast<double>(time) /
                                         static_cast<double>(total)}});
  }
  return rows;
}

Expected<Output> Perf(const PerfOptions& options) {
  Expected<BoardClocks> clocks =
      BoardClocks::Open(options.target, options.fix_freq);
  if (!clocks) return std::move(clocks).error();
  const Expected<std::unique_ptr<Network>> loaded =
      LoadForPerf(options, RKNN_FLAG_COLLECT_PERF_MASK);
  if (!loaded) return loaded.error();
  Network& network = **loaded;
  // The first run warms caches up; the second is reported.
  for (int i = 0; i < 2; ++i) {
    if (Expected<void> run = network.Run(); !run) {
      return std::move(run).error();
    }
  }
  const Expected<int64_t> run_us = network.RunMicroseconds();
  if (!run_us) return run_us.error();
  Expected<std::string> text = network.PerfText();
  if (!text) return std::move(text).error();
  const Expected<std::span<const rknnd_layer>> layers = network.Layers();
  if (!layers) return layers.error();
  const Expected<std::span<const rknnd_kernel>> kernels = network.Kernels();
  if (!kernels) return kernels.error();

  uint64_t total_ns = 0;
  uint64_t bytes = 0;
  for (const rknnd_layer& layer : *layers) {
    total_ns += layer.time_ns;
    bytes += layer.rw_bytes;
  }
  const double fps = 1e6 / static_cast<double>(std::max<int64_t>(*run_us, 1));
  Output output;
  output.json["layers"] = LayersJson(*layers, *kernels);
  output.json["ranking"] = RankingJson(*layers);
  output.json["total_us"] = Microseconds(total_ns);
  output.json["rw_kb"] = Kilobytes(bytes);
  output.json["run_us"] = *run_us;
  output.json["fps"] = fps;
  output.text = *std::move(text) +
                "Run: " + FormatMicroseconds(static_cast<double>(*run_us)) +
                ", " + FormatValue(fps) +
                " frames per second, with its layers' times taken\n";
  if (Expected<void> whole = MeasureWhole(options, *clocks, output); !whole) {
    return std::move(whole).error();
  }
  clocks->Release();
  return output;
}

}  // namespace rknnd::client
