// A timeline out of the recorder's jobs, in the JSON of Chrome's trace events,
// which Perfetto and chrome://tracing open. Pure; called by the service on a
// thread that may take tenths of a second. Names in it are a client's.
//
//   process "NPU"         a track for each core: slices named by model;
//                         counters: jobs queued, jobs running
//   each client process   a track for each context: its runs, and moments when
//                         frames were dropped or runs failed; beside it a track
//                         of what waited
//
// A job that runs when the trace is taken is a slice without an end.

#ifndef DAEMON_CORE_REPORTS_TRACE_TEXT_H_
#define DAEMON_CORE_REPORTS_TRACE_TEXT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "daemon/core/reports/recorder.h"

namespace rknnd::core {

struct TraceSource {
  Recorder::Snapshot jobs;
  Recorder::Names names;
  uint32_t cores = 0;
  std::string device;           // "soft, rk3588"
  base::Nanoseconds taken = 0;  // when the jobs were read
};

// Takes the text piece by piece; what it fails with ends the writing.
using TextSink = std::function<absl::Status(std::string_view text)>;

absl::Status WriteTrace(const TraceSource& source, const TextSink& sink);

// Leaves out what ended before.
void CutTrace(base::Nanoseconds since, Recorder::Snapshot* jobs);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_REPORTS_TRACE_TEXT_H_
