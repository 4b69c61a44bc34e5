// The rows at full load: shares, classes, gangs, streams.

#ifndef BENCH_SCHEDULER_LOADS_H_
#define BENCH_SCHEDULER_LOADS_H_

#include <string>

#include "bench/common/figures.h"
#include "bench/scheduler/board.h"

namespace rknnd::bench {

// Files, and how long a run of them takes on one core.
struct Networks {
  std::string short_model, long_model;
  double short_ms = 0, long_ms = 0;
};

// Each makes its own clients and takes its own time. `seconds`: of the row at
// full load; others are shorter.
void MeasureShares(Board& board, const Networks& networks, double seconds,
                   Figures* figures);
void MeasureManyContexts(Board& board, const Networks& networks, double seconds,
                         Figures* figures);
void MeasureClasses(Board& board, const Networks& networks, double seconds,
                    Figures* figures);
void MeasureGangs(Board& board, const Networks& networks, double seconds,
                  Figures* figures);
void MeasureStreams(Board& board, const Networks& networks, double seconds,
                    Figures* figures);

}  // namespace rknnd::bench

#endif  // BENCH_SCHEDULER_LOADS_H_
