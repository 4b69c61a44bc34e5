// See layer_tables.h.

#include "client/rknnrt/context/layer_tables.h"

#include <algorithm>
#include <utility>

namespace rknnd::client {

using base::Expected;

std::span<char> LayerTables::KeepText(Expected<std::string> text) {
  const base::MutexLock lock(mutex_);
  // Programs take any failure here for the end of the world.
  text_ = text.ok() ? *std::move(text)
                    : "no per-layer times: " + text.error().message + "\n";
  return text_;
}

Expected<std::span<const rknnd_layer>> LayerTables::Layers() {
  Expected<wire::PerfDetail> detail = target_.PerfReport(number_);
  if (!detail.ok()) return std::move(detail).error();
  const base::MutexLock lock(mutex_);
  layer_reports_ = std::move(detail->layers);
  layers_.clear();
  for (const wire::LayerReport& report : layer_reports_) {
    rknnd_layer layer{};
    layer.type = report.type;
    layer.name = report.name;
    layer.data_type = report.data_type;
    layer.target = report.on_cpu ? "CPU" : "NPU";
    layer.input_shape = report.input_shape;
    layer.output_shape = report.output_shape;
    layer.ddr_cycles = report.ddr_cycles;
    layer.npu_cycles = report.npu_cycles;
    layer.time_ns = report.time_ns;
    layer.rw_bytes = report.rw_bytes;
    layer.tasks = report.tasks;
    layer.cores = std::min<uint32_t>(
        std::min(report.mac_usage_count, report.work_load_count),
        RKNND_MAX_CORES);
    std::copy_n(report.mac_usage, layer.cores, layer.mac_usage);
    std::copy_n(report.work_load, layer.cores, layer.work_load);
    layers_.push_back(layer);
  }
  return std::span<const rknnd_layer>(layers_);
}

Expected<std::span<const rknnd_kernel>> LayerTables::Kernels() {
  Expected<std::vector<wire::LayerReport>> reports = target_.Kernels(number_);
  if (!reports.ok()) return std::move(reports).error();
  const base::MutexLock lock(mutex_);
  kernel_reports_ = *std::move(reports);
  kernels_.clear();
  for (const wire::LayerReport& report : kernel_reports_) {
    rknnd_kernel kernel{};
    kernel.type = report.type;
    kernel.name = report.name;
    kernel.input_shape = report.input_shape;
    kernel.output_shape = report.output_shape;
    kernel.kernel = report.kernel;
    kernel.is_slow = report.is_slow ? 1 : 0;
    kernels_.push_back(kernel);
  }
  return std::span<const rknnd_kernel>(kernels_);
}

}  // namespace rknnd::client
