// Texts of calls that end without an answer: who has the cores that a run
// waited for, and what is known of daemons that went away under a call.

#include "client/session/unanswered.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client/session/losses.h"
#include "client/session/requests.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;

// Of a daemon that is well. Its caller has waited for minutes already.
constexpr Nanoseconds kReportPatience = 2 * base::kSecond;

std::string Seconds(uint64_t ns) {
  return std::to_string(ns / uint64_t{base::kSecond}) + " s";
}

// "core 0 for 118 s by session 4 (pid 12 'cam') with 'net.onnx', core 1 ...";
// empty: no core has a job.
std::string HoldersOf(const std::vector<wire::CoreReport>& cores) {
  std::string text;
  for (size_t i = 0; i < cores.size(); ++i) {
    const wire::CoreReport& core = cores[i];
    const bool lent = *core.lent_to != '\0';
    if (core.running_ns == 0 && !lent) continue;
    text += (text.empty() ? "core " : ", core ") + std::to_string(i);
    if (lent) {
      text += std::string(" is lent to '") + core.lent_to + "'";
      continue;
    }
    text += std::string(" is held for ") + Seconds(core.running_ns) + " by " +
            core.holder + " with '" + core.model + "'";
  }
  return text;
}

}  // namespace

std::string WhyUnanswered(SessionLink& link) {
  const base::MonotonicClock clock;
  const Nanoseconds deadline = clock.Now() + kReportPatience;
  const SocketAccess access(link, deadline);
  if (!access.granted()) {
    return "why is not known, as another call of this program waits for rknnd, "
           "too (rknnctl status)";
  }
  const std::shared_ptr<Connection> connection = link.Current();
  if (connection == nullptr) return kSilent;
  const wire::ReportRequest request{rknnd_v1_ReportKind_REPORT_STATUS};
  const auto report =
      SendFor<wire::Report>(*connection, wire::Verb::kReport, request,
                            std::max<Nanoseconds>(deadline - clock.Now(), 1));
  if (!report.ok()) return kSilent;
  const std::string holders = HoldersOf(report->core_reports);
  if (holders.empty()) {
    return "rknnd answers and has no job on a core: does the run wait for a "
           "fence that nobody signals? (rknnctl contexts)";
  }
  return holders + ", and " + std::to_string(report->jobs_queued) +
         " wait (rknnctl top; scheduler.longest_run bounds each)";
}

Error Losses::ToError(const std::string& last) const {
  std::string text =
      "rknnd went away " + std::to_string(deaths_) + " times during this call";
  text += suspected_ >= kMost
              ? ", which may be why (journalctl -u rknnd)"
              : " and it was not answered meanwhile (journalctl -u rknnd; "
                "RKNND_RESTART_WAIT is how long it is tried again)";
  if (!last.empty()) text += "; at last: " + last;
  return {Code::kUnavailable, std::move(text)};
}

}  // namespace rknnd::client
