// What the daemon adds to a frame: time at the client minus time on the core,
// beside the floor (floor.h) and gRPC (grpc_echo.h), in interleaved rounds of
// one run and one placement.
//
// A network computes for milliseconds and leaves the caches cold; a ping-pong
// that does nothing in between has them warm, and is no floor for it. Its floor
// is that of an other side which walks as much memory for as long; the warm one
// is reported beside it.
//
// Beside a flood both are measured while the flooder runs: it takes the time of
// a CPU whatever a daemon does about its doorbell. Where there is a CPU that
// neither side uses, it has that; the floor before it began is reported too.

#ifndef BENCH_HOTPATH_LATENCY_H_
#define BENCH_HOTPATH_LATENCY_H_

#include <nlohmann/json.hpp>
#include <string>

#include "bench/common/placement.h"

namespace rknnd::bench {

struct LatencySetup {
  Placement placement;
  bool spinning = false;  // may both sides wait awake
  bool flood = false;     // another session rings its doorbell without end
  int flood_cpu = 0;      // where it does
  bool grpc = false;
  std::string model;  // a file; empty: one operator
};

// All of these are for a process of their own, and one row each.
nlohmann::json MeasureLatency(const LatencySetup& setup, int rounds,
                              const std::string& folder);
// Beside 63 sessions that do nothing, and without: two daemons, each with its
// client, in turns; the ratio of each turn, and the median of these.
nlohmann::json MeasureSessions(const Placement& placement, int rounds,
                               const std::string& folder);
// The same of 999 contexts.
nlohmann::json MeasureContexts(const Placement& placement, int rounds,
                               const std::string& folder);
// The client's CPU time for a frame, beside that of FutexPeer.
nlohmann::json MeasureClientCpu(const Placement& placement, int rounds,
                                const std::string& folder);
// What an operator of the program's costs a run besides its own work: the job
// ends before it, the program is called, and another job begins behind it.
// Beside the floor.
nlohmann::json MeasureCustomOperator(const Placement& placement, int rounds,
                                     const std::string& folder);

}  // namespace rknnd::bench

#endif  // BENCH_HOTPATH_LATENCY_H_
