#include "client/ctl/board/operate.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/ctl/control_connection.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Expected;

// Longer than the driver takes to give up a job and start anew.
constexpr int64_t kResetTimeoutMs = 60'000;

}  // namespace

Expected<Output> Reset(const std::string& target) {
  Expected<ControlConnection> daemon = ControlConnection::OpenAdmin(target);
  if (!daemon) return std::move(daemon).error();
  const auto begun = std::chrono::steady_clock::now();
  const Expected<wire::Empty> done = daemon->Request<wire::Empty>(
      wire::Verb::kReset, wire::ResetRequest{}, kResetTimeoutMs);
  if (!done) return done.error();
  const double us = std::chrono::duration<double, std::micro>(
                        std::chrono::steady_clock::now() - begun)
                        .count();
  return Output{{{"reset", true}, {"us", us}},
                "the NPU was reset in " + FormatMicroseconds(us) +
                    "; jobs that were on it run again\n"};
}

Expected<Output> Quarantine(const std::string& target,
                            const std::string& release) {
  Expected<ControlConnection> daemon = ControlConnection::OpenAdmin(target);
  if (!daemon) return std::move(daemon).error();
  wire::QuarantineRequest request{};
  if (release.size() >= sizeof request.release) {
    return base::Error{Code::kInvalidArgument,
                       "a hash has 64 digits, and '" + release + "' has " +
                           std::to_string(release.size())};
  }
  wire::SetText(request.release, release);
  const Expected<wire::QuarantineReply> answer =
      daemon->Request<wire::QuarantineReply>(wire::Verb::kQuarantine, request);
  if (!answer) return answer.error();
  Output output;
  output.json = Json::array();
  Table table({{"MODEL"},
               {"SHA-256"},
               {"ENDED", Table::Align::kRight},
               {"THE LAST ONE SO"}});
  for (const wire::QuarantinedModel& model : answer->models) {
    const std::string sha256 = Printable(model.sha256);
    output.json.push_back({{"sha256", sha256},
                           {"name", model.name},
                           {"deaths", model.deaths},
                           {"why", model.why}});
    table.Add({Printable(model.name), sha256.substr(0, 12),
               std::to_string(model.deaths), Printable(model.why)});
  }
  output.text =
      answer->models.empty() ? "no model is in quarantine\n" : table.ToString();
  if (!release.empty()) {
    output.text = "'" + release + "' may try again\n" + output.text;
  }
  return output;
}

DrainAnswer DrainOutput(bool idle, const std::vector<wire::SessionReport>& left,
                        std::initializer_list<uint64_t> own) {
  DrainAnswer answer;
  answer.idle = idle;
  Json sessions = Json::array();
  Table table({{"SESSION", Table::Align::kRight},
               {"PID", Table::Align::kRight},
               {"PROGRAM"},
               {"CONTEXTS", Table::Align::kRight},
               {"MEMORY", Table::Align::kRight},
               {"FROM"}});
  for (const wire::SessionReport& s : left) {
    if (std::find(own.begin(), own.end(), s.id) != own.end()) continue;
    sessions.push_back({{"id", s.id},
                        {"pid", s.pid},
                        {"comm", s.comm},
                        {"contexts", s.contexts},
                        {"memory", s.memory},
                        {"address", s.address}});
    table.Add({std::to_string(s.id), s.pid == 0 ? "-" : std::to_string(s.pid),
               Printable(s.comm), std::to_string(s.contexts),
               FormatBytes(s.memory),
               *s.address == '\0' ? "here" : Printable(s.address)});
  }
  answer.output.text =
      idle
          ? "nothing runs any more; new work waits in its programs until rknnd "
            "is started anew, or 'rknnctl drain --undo'\n"
          : "jobs still run; new work waits in its programs already\n";
  if (!sessions.empty()) {
    answer.output.text +=
        (idle ? "connected are still:\n" : "left are:\n") + table.ToString();
  }
  answer.output.json = {{"idle", idle}, {"sessions", std::move(sessions)}};
  return answer;
}

Expected<DrainAnswer> Drain(const DrainOptions& options) {
  Expected<ControlConnection> daemon =
      ControlConnection::OpenAdmin(options.target);
  if (!daemon) return std::move(daemon).error();
  const Expected<wire::DrainReply> drained = daemon->Request<wire::DrainReply>(
      wire::Verb::kDrain, wire::Empty{},
      static_cast<int64_t>(options.wait_s * 1e3));
  if (drained.ok()) {
    return DrainOutput(/*idle=*/true, drained->sessions, {daemon->session()});
  }
  if (drained.error().code != Code::kDeadlineExceeded) return drained.error();
  // The first one waits for its answer still.
  Expected<ControlConnection> observer =
      ControlConnection::OpenAdmin(options.target);
  if (!observer) return std::move(observer).error();
  const Expected<wire::Report> left =
      observer->Ask(rknnd_v1_ReportKind_REPORT_SESSIONS);
  if (!left) return left.error();
  return DrainOutput(/*idle=*/false, left->sessions,
                     {daemon->session(), observer->session()});
}

Expected<Output> UndoDrain(const std::string& target) {
  Expected<ControlConnection> daemon = ControlConnection::OpenAdmin(target);
  if (!daemon) return std::move(daemon).error();
  const Expected<wire::Empty> done =
      daemon->Request<wire::Empty>(wire::Verb::kUndoDrain, wire::Empty{});
  if (!done) return done.error();
  return Output{{{"draining", false}}, "rknnd takes new work again\n"};
}

}  // namespace rknnd::client
