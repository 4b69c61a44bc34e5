// Time and order statistics of benchmarks.

#ifndef BENCH_COMMON_MEASURES_H_
#define BENCH_COMMON_MEASURES_H_

#include <vector>

namespace rknnd::bench {

double SecondsNow();
void SleepFor(double seconds);
// The value that this part of them does not exceed.
double Percentile(std::vector<double> values, double part);

}  // namespace rknnd::bench

#endif  // BENCH_COMMON_MEASURES_H_
