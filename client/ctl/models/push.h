// rknnctl push: sends a model to a daemon, by its hash first and its bytes only
// where they are missing, so that programs find it there.

#ifndef CLIENT_CTL_MODELS_PUSH_H_
#define CLIENT_CTL_MODELS_PUSH_H_

#include <string>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

struct PushOptions {
  std::string target;
  std::string model;
  bool json = false;
};
base::Expected<Output> Push(const PushOptions& options);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_PUSH_H_
