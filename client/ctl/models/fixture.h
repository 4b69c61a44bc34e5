// rknnctl record: a run of a network as a folder that another machine can
// compare with: what went in, what came out, and each layer's tensor between.
// Board owners record, and tests (or anybody with the model) compare.
//
//   fixture.json        the model's hash, who computed it, the ports
//   input_<n>.bin       as rknn_inputs_set got it
//   output_<n>.npy      floats and whole numbers
//   layers/*.npy        as rknnctl dump writes them; absent where the device
//                       shows none

#ifndef CLIENT_CTL_MODELS_FIXTURE_H_
#define CLIENT_CTL_MODELS_FIXTURE_H_

#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

struct RecordOptions {
  std::string model;
  std::vector<std::string> inputs;  // one for each input; none: noise
  std::string output_dir;           // empty, or not there
};
base::Expected<Output> RecordFixture(const RecordOptions& options);

struct FixtureComparison {
  Output output;
  bool same = false;
};
// Runs the model of a fixture's hash with its inputs, and compares outputs and
// layers to the byte.
base::Expected<FixtureComparison> CompareFixture(const std::string& model,
                                                 const std::string& folder);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_FIXTURE_H_
