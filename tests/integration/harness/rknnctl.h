// The program rknnctl, as a person or a script calls it.

#ifndef TESTS_INTEGRATION_HARNESS_RKNNCTL_H_
#define TESTS_INTEGRATION_HARNESS_RKNNCTL_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace rknnd::integration {

struct RknnctlResult {
  int exit_code = -1;
  std::string out, err;
};

// Runs it with its stderr in a file in `folder`.
RknnctlResult RunRknnctl(const std::string& folder,
                         const std::vector<std::string>& arguments);
// With --json: what it prints. Fails the test when that is no JSON document or
// the exit code is not 0.
nlohmann::json AskRknnctl(const std::string& folder, const std::string& target,
                          const std::vector<std::string>& arguments);

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_RKNNCTL_H_
