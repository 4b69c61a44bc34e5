// Asks a daemon what would run a model's file, and why that: rknnd's own
// executor, the vendor's library, or nothing.

#ifndef CLIENT_CTL_MODELS_RUN_BY_H_
#define CLIENT_CTL_MODELS_RUN_BY_H_

#include <string>

#include "base/values/expected.h"

namespace rknnd::client {

struct RunBy {
  // "rknpu", "rknnrt"; "none": it cannot be run there. Empty: there is one way
  // only, or the daemon does not say.
  std::string by;
  std::string because;
};
// Sends the file if the daemon does not have it, where it then stays for the
// grace period.
base::Expected<RunBy> AskWhoRuns(const std::string& target,
                                 const std::string& file);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_RUN_BY_H_
