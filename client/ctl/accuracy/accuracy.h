// rknnctl accuracy: how far each layer of a quantised model is from the same
// layer in float32, on the software NPU and on a target, as the vendor's
// rknn.accuracy_analysis tells (docs/accuracy.md).

#ifndef CLIENT_CTL_ACCURACY_ACCURACY_H_
#define CLIENT_CTL_ACCURACY_ACCURACY_H_

#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

struct AccuracyOptions {
  std::string model;
  std::vector<std::string> inputs;  // one for each input
  std::string golden;               // "": the model itself, in float32
  std::string output_dir = "./snapshot";
  // "": the software NPU alone.
  std::string target;
  bool json = false;  // no colours, no progress
};

base::Expected<Output> Accuracy(const AccuracyOptions& options);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_ACCURACY_ACCURACY_H_
