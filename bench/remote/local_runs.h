// The same work by a program on the board: what rows are compared with.

#ifndef BENCH_REMOTE_LOCAL_RUNS_H_
#define BENCH_REMOTE_LOCAL_RUNS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "bench/remote/board.h"
#include "bench/remote/calls.h"
#include "client/include/rknn_api.h"

namespace rknnd::bench {

// A context of the C API with memory for its input and output. The target is
// RKNND_TARGET's. Throws std::runtime_error.
class LocalContext {
 public:
  // The input is bound as NCHW of this type, or as NHWC for bytes.
  LocalContext(std::string model, rknn_tensor_type type);
  ~LocalContext();
  LocalContext(const LocalContext&) = delete;
  LocalContext& operator=(const LocalContext&) = delete;

  [[nodiscard]] rknn_context get() const { return context_; }
  void Run();
  // Memory 0, the input's, or 1, the output's, as gRPC names it.
  [[nodiscard]] Region RegionOf(size_t memory) const;

 private:
  void Bind(rknn_query_cmd which, rknn_tensor_type type);

  rknn_context context_ = 0;
  std::vector<rknn_tensor_mem*> memories_;
};

struct LocalRuns {
  double run_us = 0;         // on the core, the median
  double daemon_cpu_us = 0;  // of the daemon's process, for each run
};
// By a process of its own, which runs FloatImageModel.
LocalRuns RunLocally(const RemoteBoard& board, double seconds);

}  // namespace rknnd::bench

#endif  // BENCH_REMOTE_LOCAL_RUNS_H_
