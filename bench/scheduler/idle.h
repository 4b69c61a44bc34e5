// The rows of those who ask for nothing, and of those who ask too much.

#ifndef BENCH_SCHEDULER_IDLE_H_
#define BENCH_SCHEDULER_IDLE_H_

#include "bench/common/figures.h"
#include "bench/scheduler/board.h"
#include "bench/scheduler/loads.h"

namespace rknnd::bench {

// A daemon with 64 sessions and a context each, watched for so long.
void MeasureIdle(Board& board, const Networks& networks, double seconds,
                 Figures* figures);
// A neighbour's jobs, with and without one that rings without end.
void MeasureFlood(Board& board, const Networks& networks, double seconds,
                  Figures* figures);

}  // namespace rknnd::bench

#endif  // BENCH_SCHEDULER_IDLE_H_
