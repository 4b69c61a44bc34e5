// rknnctl infer: a model run on files (or noise), its outputs shown.

#ifndef CLIENT_CTL_MODELS_INFER_H_
#define CLIENT_CTL_MODELS_INFER_H_

#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/models/network.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

struct InferOptions {
  std::string model;
  std::vector<std::string> inputs;  // one for each input; none: noise
  std::string output_dir;           // "": write none
  int repeat = 1;
};

// "the NPU", or what stood in for it: only a device without one says what
// computes its layers.
std::string ComputerOf(Network& network);

base::Expected<Output> Infer(const InferOptions& options);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_INFER_H_
