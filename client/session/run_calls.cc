// Called on the program's threads, many at once.

#include "client/session/run_calls.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/posix/hot_path.h"
#include "client/session/losses.h"
#include "client/session/unanswered.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;

Error Unanswered(Nanoseconds limit, const std::string& why) {
  return {Code::kDeadlineExceeded,
          "the run was not answered within " +
              std::to_string(limit / base::kMillisecond) + " ms: " + why};
}

}  // namespace

RKNND_HOT_PATH RunCalls::RunEnd RunCalls::RunOn(Connection& connection,
                                                const wire::Submission& job,
                                                Nanoseconds now,
                                                Nanoseconds deadline,
                                                Answer* answer) {
  RingClient& ring = connection.ring();
  std::optional<Ticket> ticket;
  for (;;) {
    if (!ticket) ticket = runs_.Submit(ring, job);
    if (!ticket) runs_.CompleteEnded();
    bool done = false;
    if (ticket) {
      done = ring.Wait(
          *ticket,
          std::clamp<Nanoseconds>(deadline - now, 0, RingClient::kSlice), now);
    }
    if (!done) {
      const Connection::Health health = connection.Look();
      if (!health.alive) {
        // The answer may have come with the daemon's last breath.
        done = ticket && ring.Wait(*ticket, 0);
        if (!done) {
          return ticket && connection.MayBeOf(*ticket) ? RunEnd::kMayHaveKilled
                                                       : RunEnd::kDaemonDied;
        }
      } else if (health.readable) {
        link_.TryReadEvents(connection);
      }
    }
    if (done) {
      *answer = ring.Take(*ticket);
      return RunEnd::kAnswered;
    }
    now = clock_.Now();
    if (now < deadline) continue;
    if (ticket) ring.Abandon(*ticket);
    return RunEnd::kTimedOut;
  }
}

RKNND_HOT_PATH Expected<Answer> RunCalls::Put(const wire::Submission& job) {
  const bool bounded = job.timeout_ms != 0;
  const Nanoseconds limit =
      bounded ? job.timeout_ms * base::kMillisecond + options_.run_grace
              : options_.longest_run;
  Nanoseconds now = clock_.Now();
  Nanoseconds deadline = now + limit;
  Nanoseconds refused_since = 0;
  // What the last try was refused with, where another one may do better.
  std::optional<Error> refused;
  Losses losses;
  for (;;) {
    std::shared_ptr<Connection> connection = link_.Current();
    if (connection == nullptr) {
      Expected<std::shared_ptr<Connection>> recovered = link_.Recover(
          bounded ? deadline : clock_.Now() + limit + link_.LongestRebuild());
      if (!recovered.ok()) return std::move(recovered).error();
      connection = *std::move(recovered);
      now = clock_.Now();
      // The program's own limit holds over the rebuild too; ours starts anew.
      if (!bounded) deadline = now + limit;
    }
    Answer answer;
    const RunEnd end = RunOn(*connection, job, now, deadline, &answer);
    switch (end) {
      case RunEnd::kDaemonDied:
      case RunEnd::kMayHaveKilled:
        now = clock_.Now();
        losses.Add(end == RunEnd::kMayHaveKilled, now);
        if (losses.TooMany(now, options_.rebuild_bound))
          return losses.ToError();
        // Again, with the next one.
        Pause(std::min(losses.Pause(), deadline - now));
        now = clock_.Now();
        continue;
      case RunEnd::kTimedOut:
        if (refused) return *std::move(refused);
        // Its own limit the daemon knows, and would have answered.
        return Unanswered(limit, bounded ? kSilent : WhyUnanswered(link_));
      case RunEnd::kAnswered:
        break;
    }
    if (answer.code == Code::kOk) return answer;
    if (answer.code == Code::kUnavailable &&
        link_.AwaitSuccessor(*connection, deadline, &refused_since)) {
      refused = Error{answer.code, std::move(answer.text)};
      now = clock_.Now();
      continue;
    }
    if (answer.code == Code::kNotFound) {
      if (std::optional<Error> lost = runs_.WhyLost(job.context)) {
        return *std::move(lost);
      }
    }
    return Error{answer.code, std::move(answer.text)};
  }
}

RKNND_HOT_PATH Expected<RunReport> RunCalls::Run(const RunRequest& request) {
  const Expected<Answer> answer = Put(JobOf(request));
  fences_.Release(request.fence_in);
  fences_.Release(request.fence_out);
  if (!answer.ok()) return answer.error();
  return RunReport{answer->queue_ns, answer->run_ns, answer->total_ns,
                   answer->core, answer->drops};
}

Expected<uint32_t> RunCalls::Cancel(uint32_t context, uint64_t frame) {
  const uint32_t waiting = runs_.Cancel(context, false, frame);
  wire::Submission job{};
  job.operation = static_cast<uint32_t>(wire::RingOperation::kCancel);
  job.context = context;
  job.frame = frame;
  const Expected<Answer> answer = Put(job);
  if (!answer.ok()) return answer.error();
  return waiting + answer->count;
}

}  // namespace rknnd::client
