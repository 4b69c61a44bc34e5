// The rows of the benchmark. Each starts what it needs and adds its figures.

#ifndef BENCH_REMOTE_ROWS_H_
#define BENCH_REMOTE_ROWS_H_

#include <string>

#include "bench/common/figures.h"

namespace rknnd::bench {

// What ModelInfer adds to a job, beside a bare call with the same bytes.
void MeasureInfer(double seconds, Figures* figures);
// The C API with eight frames in flight, local and over gRPC.
void MeasureFrames(double seconds, Figures* figures);
// A local gRPC client whose tensors lie in registered memory.
void MeasureRegions(double seconds, Figures* figures);
// Sending a model of 100 MB, beside a bare stream of as many bytes.
void MeasurePush(double seconds, Figures* figures);
// A local program beside 1,000 connections with 10,000 requests; `scheduled` as
// RolePlan::crowd.
void MeasureCrowd(double seconds, const std::string& scheduled,
                  Figures* figures);
// What 1,000 connections are served beside what eight are, and how evenly.
void MeasureGoodput(double seconds, const std::string& scheduled,
                    Figures* figures);

// Processes of the measurements: this program again, with its role's options.
struct RolePlan {
  // "bare", "local", "frames", "beat", "push" or "crowd"
  std::string role;
  std::string address, model, method, request;
  double seconds = 1;
  double period_ms = 0;
  int connections = 1, calls = 1, frames = 1;
  uint64_t bytes = 0;
  std::string crowd = "idle";  // or "nice": when it gets a CPU (crowd.cc)
  double warm = 0;             // a crowd's time before it counts
  double stop_after = 0;  // stops itself after so long: a peer that never reads
};
int RunRole(const RolePlan& plan);
int RunLocal(const RolePlan& plan);
int RunFrames(const RolePlan& plan);
int RunBeat(const RolePlan& plan);
int RunPush(const RolePlan& plan);
int RunCrowd(const RolePlan& plan);

}  // namespace rknnd::bench

#endif  // BENCH_REMOTE_ROWS_H_
