// rknnctl perf: what each layer of a model costs.

#ifndef CLIENT_CTL_MODELS_PERF_H_
#define CLIENT_CTL_MODELS_PERF_H_

#include <span>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"
#include "rknn_api.h"
#include "rknnd.h"

namespace rknnd::client {

struct PerfOptions {
  std::string target;  // as in RKNND_TARGET, which the library follows
  bool json = false;
  std::string model;
  std::vector<std::string> inputs;  // one for each input; none: noise
  rknn_core_mask core_mask = RKNN_NPU_CORE_AUTO;
  int runs = 10;          // of the whole model, without its layers' times
  bool fix_freq = false;  // the board's clocks, meanwhile
};

base::Expected<Output> Perf(const PerfOptions& options);

// The parts of its JSON: rows as in the table, and operator types by their
// time.
// `kernels`: of the same layers, or none.
Json LayersJson(std::span<const rknnd_layer> layers,
                std::span<const rknnd_kernel> kernels);
Json RankingJson(std::span<const rknnd_layer> layers);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_PERF_H_
