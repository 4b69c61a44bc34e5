// rknnctl trace: writes the daemon's timeline of the jobs of late into a file.

#ifndef CLIENT_CTL_REPORTS_TRACE_H_
#define CLIENT_CTL_REPORTS_TRACE_H_

#include <string>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

struct TraceOptions {
  std::string target;  // as in RKNND_TARGET
  std::string output;  // the file; empty: rknnd-trace-<time>.json
  double seconds = 0;  // from now on; 0: all that the daemon remembers
};

base::Expected<Output> Trace(const TraceOptions& options);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_REPORTS_TRACE_H_
