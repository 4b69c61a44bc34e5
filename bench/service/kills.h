// The rows of deaths: of clients, and of the daemon under them.

#ifndef BENCH_SERVICE_KILLS_H_
#define BENCH_SERVICE_KILLS_H_

#include "bench/common/figures.h"

namespace rknnd::bench {

// Clients that are killed while they run: what they leave in the daemon, and
// how long it takes to let it go.
void MeasureClientKills(int kills, Figures* figures);
// A daemon that is killed under eight clients: their answers, their errors, and
// how long each waits for the next answer.
void MeasureDaemonKills(int kills, Figures* figures);

}  // namespace rknnd::bench

#endif  // BENCH_SERVICE_KILLS_H_
