#include "client/ctl/reports/trace.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"
#include "client/ctl/control_connection.h"
#include "client/ctl/text/table.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// "rknnd-trace-20261120-221501.json", in the folder the program runs in.
std::string DefaultName() {
  const std::time_t now = std::time(nullptr);
  std::tm time{};
  char text[64];
  if (localtime_r(&now, &time) == nullptr ||
      std::strftime(text, sizeof text, "rknnd-trace-%Y%m%d-%H%M%S.json",
                    &time) == 0) {
    return "rknnd-trace.json";
  }
  return text;
}

// Jobs that were answered since the daemon's start.
uint64_t Answered(const wire::Report& status) {
  return status.jobs_done + status.jobs_failed;
}

// While something is there to be recorded.
void SleepUntil(const base::Clock& clock, base::Nanoseconds time) {
  while (clock.Now() < time) {
    const auto left = (time - clock.Now()) / base::kMillisecond + 1;
    ::poll(nullptr, 0, static_cast<int>(std::clamp<int64_t>(left, 1, 60'000)));
  }
}

Expected<void> Copy(int from, uint64_t size, const std::string& path) {
  const base::UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return base::ErrnoError(errno, "open '" + path + "'");
  std::vector<char> piece(size_t{256} << 10);
  for (uint64_t done = 0; done < size;) {
    const ssize_t got = ::pread(from, piece.data(),
                                std::min<uint64_t>(piece.size(), size - done),
                                static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return Error{Code::kDataLoss, "the daemon's trace ends early"};
    }
    for (ssize_t written = 0; written < got;) {
      const ssize_t more = ::write(file.get(), piece.data() + written,
                                   static_cast<size_t>(got - written));
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) return base::ErrnoError(errno, "write '" + path + "'");
      written += more;
    }
    done += static_cast<uint64_t>(got);
  }
  return {};
}

}  // namespace

Expected<Output> Trace(const TraceOptions& options) {
  Expected<ControlConnection> daemon = ControlConnection::Open(options.target);
  if (!daemon) return std::move(daemon).error();
  uint64_t since = 0;
  uint64_t answered = 0;
  if (options.seconds > 0) {
    const Expected<wire::Report> before =
        daemon->Ask(rknnd_v1_ReportKind_REPORT_STATUS);
    if (!before) return before.error();
    answered = Answered(*before);
    const base::MonotonicClock clock;
    since = static_cast<uint64_t>(clock.Now());
    SleepUntil(clock, clock.Now() + static_cast<base::Nanoseconds>(
                                        options.seconds * 1e9));
  }
  uint64_t ended = UINT64_MAX;
  if (options.seconds > 0) {
    const Expected<wire::Report> now =
        daemon->Ask(rknnd_v1_ReportKind_REPORT_STATUS);
    if (!now) return now.error();
    ended = Answered(*now) > answered ? Answered(*now) - answered : 0;
  }
  const Expected<ControlConnection::TakenTrace> trace =
      daemon->TakeTrace(since);
  if (!trace) return trace.error();
  const uint64_t jobs = trace->message.jobs;
  // Of the time asked for; what was lost before is of no interest.
  const uint64_t lost =
      std::min(trace->message.lost, ended > jobs ? ended - jobs : 0);
  const std::string path =
      options.output.empty() ? DefaultName() : options.output;
  if (Expected<void> copied =
          Copy(trace->text.get(), trace->message.size, path);
      !copied) {
    return std::move(copied).error();
  }
  Output output;
  output.json = {{"file", path}, {"jobs", jobs}, {"lost", lost}};
  output.text =
      path + ": " + FormatCount(jobs, "job") +
      (lost == 0 ? ""
                 : ", " + std::to_string(lost) + " older ones had no room") +
      "; open it at https://ui.perfetto.dev\n";
  return output;
}

}  // namespace rknnd::client
