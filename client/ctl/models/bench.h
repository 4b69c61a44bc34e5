// rknnctl bench: how many runs a model makes in a second, and how long one
// takes as its caller sees it.

#ifndef CLIENT_CTL_MODELS_BENCH_H_
#define CLIENT_CTL_MODELS_BENCH_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"
#include "rknn_api.h"

namespace rknnd::client {

struct BenchOptions {
  std::string model;
  int contexts = 1;
  int threads = 0;  // 0: one for each context; at most that many
  double seconds = 5;
  rknn_core_mask core_mask = RKNN_NPU_CORE_AUTO;
};

base::Expected<Output> Bench(const BenchOptions& options);

// "auto", "0", "1", "2", "0_1", "0_1_2", "all": cores as the API names them.
std::optional<rknn_core_mask> ParseCoreMask(std::string_view text);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_BENCH_H_
