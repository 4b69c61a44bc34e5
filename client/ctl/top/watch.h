// rknnctl top's loop: looks at a daemon again and again and shows what happened
// in between (top.h). A daemon that goes away is waited for.

#ifndef CLIENT_CTL_TOP_WATCH_H_
#define CLIENT_CTL_TOP_WATCH_H_

#include <string>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

struct WatchOptions {
  std::string target;  // as in RKNND_TARGET
  double interval_s = 1;
};

// Two looks, one interval apart.
base::Expected<Output> LookOnce(const WatchOptions& options);
// On the terminal, until the user has seen enough.
base::Expected<void> Watch(const WatchOptions& options);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TOP_WATCH_H_
