// rknnctl dump: each layer's output of one run, as .npy files.

#ifndef CLIENT_CTL_MODELS_DUMP_H_
#define CLIENT_CTL_MODELS_DUMP_H_

#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

struct DumpOptions {
  std::string model;
  std::vector<std::string> inputs;  // one for each input; none: noise
  std::string output_dir;
};

base::Expected<Output> DumpLayers(const DumpOptions& options);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_DUMP_H_
