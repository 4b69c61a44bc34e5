// What one scrape shows: core's reports, taken together on the loop, and what
// the kernel tells of the NPU.

#ifndef DAEMON_METRICS_BOARD_FIGURES_H_
#define DAEMON_METRICS_BOARD_FIGURES_H_

#include <array>
#include <cstdint>
#include <string>

#include "daemon/board/npu_figures.h"
#include "daemon/core/terms/types.h"

namespace rknnd::metrics {

struct BoardFigures {
  std::string version;  // of the daemon
  core::StatusReport status;
  core::JobTotalsReport jobs;
  core::MemoryReport memory;  // with all sessions and models
  board::NpuFigures npu;      // what the kernel tells
  // Requests and connections that failed, by absl::StatusCode.
  std::array<uint64_t, core::kStatusCodes> failures{};
};

}  // namespace rknnd::metrics

#endif  // DAEMON_METRICS_BOARD_FIGURES_H_
