// See board.h.

#include "bench/scheduler/board.h"

#include <fstream>
#include <stdexcept>

#include "base/posix/clock.h"

namespace rknnd::bench {
namespace {

double Seconds(uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

}  // namespace

Board::Board() : folder_(client::MakeTemporaryFolder()) {
  const std::string config = folder_.path() + "/rknnd.toml";
  std::ofstream(config) << "[limits.user]\nmax_priority = \"high\"\n";
  daemon_.emplace(client::Launcher(), -1,
                  std::vector<std::string>{"--soc", "rk3588", "--pace", "on",
                                           "--config", config});
  auto line = client::ControlConnection::Open(target());
  if (!line) throw std::runtime_error(line.error().message);
  line_.emplace(*std::move(line));
}

BoardLook Board::Look() {
  const auto status = line_->Ask(rknnd_v1_ReportKind_REPORT_STATUS);
  const base::MonotonicClock clock;
  BoardLook look;
  look.at = Seconds(static_cast<uint64_t>(clock.Now()));
  const auto sessions = line_->Ask(rknnd_v1_ReportKind_REPORT_SESSIONS);
  if (!status || !sessions) throw std::runtime_error("the daemon is silent");
  for (const auto& core : status->core_reports) {
    look.busy.push_back(Seconds(core.busy_ns));
  }
  for (const auto& session : sessions->sessions) {
    look.npu[session.pid] += static_cast<double>(session.npu_us) * 1e-6;
    look.jobs[session.pid] += session.jobs;
  }
  return look;
}

Interval Between(const BoardLook& first, const BoardLook& last) {
  Interval interval;
  interval.seconds = last.at - first.at;
  for (size_t core = 0; core < last.busy.size(); ++core) {
    interval.busy += last.busy[core] - first.busy.at(core);
  }
  interval.busy /= interval.seconds * static_cast<double>(last.busy.size());
  for (const auto& [pid, npu] : first.npu) {
    const auto later = last.npu.find(pid);
    if (later == last.npu.end()) continue;
    interval.npu[pid] = later->second - npu;
    interval.jobs[pid] = last.jobs.at(pid) - first.jobs.at(pid);
  }
  return interval;
}

}  // namespace rknnd::bench
