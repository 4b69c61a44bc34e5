#include "daemon/transport/session/translate_profile.h"

#include <algorithm>
#include <iterator>

namespace rknnd::transport {
namespace {

wire::LayerReport ToLayerReport(const driver::LayerInfo& layer) {
  wire::LayerReport out{};
  wire::SetText(out.type, layer.type);
  wire::SetText(out.name, core::FullName(layer));
  wire::SetText(out.data_type, layer.data_type);
  wire::SetText(out.input_shape, core::ShapesText(layer.input_shape));
  wire::SetText(out.output_shape, core::ShapesText(layer.output_shape));
  out.on_cpu = layer.on_cpu;
  out.ddr_cycles = layer.ddr_cycles;
  out.npu_cycles = layer.npu_cycles;
  out.rw_bytes = layer.ddr_read;
  wire::SetText(out.kernel, layer.kernel);
  out.is_slow = layer.is_slow;
  return out;
}

wire::LayerReport ToLayerReport(const core::LayerRow& row) {
  wire::LayerReport out = ToLayerReport(*row.layer);
  out.time_ns = static_cast<uint64_t>(std::max<base::Nanoseconds>(row.time, 0));
  out.mac_usage_count = static_cast<pb_size_t>(
      std::min(row.mac_usage.size(), std::size(out.mac_usage)));
  std::copy_n(row.mac_usage.begin(), out.mac_usage_count, out.mac_usage);
  out.work_load_count = static_cast<pb_size_t>(
      std::min(row.work_load.size(), std::size(out.work_load)));
  std::copy_n(row.work_load.begin(), out.work_load_count, out.work_load);
  out.tasks = row.tasks;
  return out;
}

}  // namespace

std::vector<wire::LayerReport> ToLayerReports(
    const std::vector<core::LayerRow>& rows) {
  std::vector<wire::LayerReport> out;
  out.reserve(rows.size());
  for (const core::LayerRow& row : rows) out.push_back(ToLayerReport(row));
  return out;
}

std::vector<wire::LayerReport> ToLayerReports(
    std::span<const driver::LayerInfo> layers) {
  std::vector<wire::LayerReport> out;
  out.reserve(layers.size());
  for (const driver::LayerInfo& layer : layers) {
    out.push_back(ToLayerReport(layer));
  }
  return out;
}

wire::DumpReply ToDumpReply(const core::DumpReport& report) {
  wire::DumpReply out;
  out.size = report.dump.size;
  for (const core::DumpedTensor& tensor : report.dump.tensors) {
    wire::DumpedTensor entry{};
    entry.layer = tensor.layer;
    if (tensor.layer < report.program->layers.size()) {
      wire::SetText(entry.type, report.program->layers[tensor.layer].type);
    }
    wire::SetText(entry.name, tensor.name);
    entry.data_type = static_cast<uint32_t>(tensor.type);
    entry.dims_count = static_cast<pb_size_t>(
        std::min(tensor.shape.size(), std::size(entry.dims)));
    std::transform(tensor.shape.begin(),
                   tensor.shape.begin() + entry.dims_count, entry.dims,
                   [](int64_t dim) { return static_cast<uint64_t>(dim); });
    entry.offset = tensor.offset;
    entry.size = tensor.size;
    out.tensors.push_back(entry);
  }
  return out;
}

}  // namespace rknnd::transport
