// The rows of a service that nobody uses, and of its package.

#ifndef BENCH_SERVICE_REST_H_
#define BENCH_SERVICE_REST_H_

#include "bench/common/figures.h"

namespace rknnd::bench {

// From the fork to READY=1.
void MeasureStart(int starts, Figures* figures);
// Resident bytes and wake-ups of a daemon without clients, watched for so long.
void MeasureIdle(double seconds, Figures* figures);
// Says how to make the package where it is not there.
void MeasurePackage(Figures* figures);

}  // namespace rknnd::bench

#endif  // BENCH_SERVICE_REST_H_
