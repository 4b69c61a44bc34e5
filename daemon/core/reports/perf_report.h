// What each layer did in a run: the rows of RKNN_QUERY_PERF_DETAIL and of
// rknnctl perf, and the text in the vendor's layout (its user guide, table 3-2
// and chapter 4.1.3.2). Called on the loop.

#ifndef DAEMON_CORE_REPORTS_PERF_REPORT_H_
#define DAEMON_CORE_REPORTS_PERF_REPORT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "daemon/core/contexts/run_context.h"
#include "driver/device.h"

namespace rknnd::core {

struct LayerRow {
  const driver::LayerInfo* layer = nullptr;  // the model's
  base::Nanoseconds time = 0;
  // Percent, of each core of the device: of its multiply-adds, and of the
  // layer's work.
  std::vector<float> mac_usage, work_load;
  uint32_t tasks = 0;  // for the NPU
};

// The rows of a run on the cores of `core_mask`, with its layers' times.
std::vector<LayerRow> MakeRows(const std::vector<driver::LayerInfo>& layers,
                               std::span<const int64_t> times,
                               uint32_t core_mask,
                               const driver::DeviceInfo& device);

// As the table has it: "Conv:conv1" of a ConvRelu.
std::string FullName(const driver::LayerInfo& layer);

// "(1,3,8,8),(8,3,3,3)" of "1x3x8x8,8x3x3x3", as the table has shapes.
std::string ShapesText(const std::string& shapes);

// Table, totals, and the ranking of operator types by their time.
std::string PerfTable(std::span<const LayerRow> rows,
                      const driver::DeviceInfo& device);

// Of a context's last run. FAILED_PRECONDITION, with what to do, when no times
// were recorded.
absl::StatusOr<std::vector<LayerRow>> LastRows(
    const RunContext& context, const driver::DeviceInfo& device);

// The table, or a sentence why there is none: RKNN_QUERY_PERF_DETAIL always
// answers.
std::string PerfText(const RunContext& context,
                     const driver::DeviceInfo& device);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_REPORTS_PERF_REPORT_H_
