// Runs of a session: into the ring, and again into the next daemon's when the
// one that had it died or goes. Called on the program's threads, many at once.

#include <algorithm>
#include <optional>
#include <utility>

#include "client/session/session_target.h"
#include "client/session/turn.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;

// A daemon answers a run at its limit at the latest. This is for one that
// hangs: longer than any queue of jobs it accepts.
constexpr Nanoseconds kRunTimeout = 120 * base::kSecond;

Error Unanswered(Nanoseconds limit) {
  return {Code::kDeadlineExceeded,
          "the run was not answered within " +
              std::to_string(limit / base::kMillisecond) +
              " ms: rknnd hangs, or is stopped (rknnctl status)"};
}

}  // namespace

std::optional<Error> SessionTarget::WhyLost(uint32_t context,
                                            Nanoseconds deadline) {
  const Turn turn(*this, deadline);
  if (!turn.taken()) return std::nullopt;
  const auto record = contexts_.find(context);
  return record == contexts_.end() ? std::nullopt : record->second.lost;
}

void SessionTarget::ShowCopies(uint32_t context, uint64_t to_device_inputs_set,
                               uint64_t from_device_outputs_get) {
  // A rebuilt session sees the totals with the next copy.
  const std::shared_ptr<Connection> connection = Current();
  if (connection == nullptr) return;
  connection->ring().ShowCopies(context, to_device_inputs_set,
                                from_device_outputs_get);
}

SessionTarget::RunEnd SessionTarget::RunOn(Connection& connection,
                                           const wire::Submission& job,
                                           Nanoseconds deadline,
                                           Answer* answer) {
  RingClient& ring = connection.ring();
  std::optional<Ticket> ticket;
  for (;;) {
    if (!ticket) ticket = ring.Submit(job);
    bool done = false;
    if (ticket) {
      const Nanoseconds left = deadline - clock_.Now();
      done = ring.Wait(*ticket,
                       std::clamp<Nanoseconds>(left, 0, RingClient::kSlice));
    }
    if (!done) {
      const Connection::Health health = connection.Look();
      if (!health.alive) {
        // The answer may have come with the daemon's last breath.
        done = ticket && ring.Wait(*ticket, 0);
        if (!done) return RunEnd::kDaemonDied;
      } else if (health.readable) {
        TryReadEvents(connection);
      }
    }
    if (done) {
      *answer = ring.Take(*ticket);
      return RunEnd::kAnswered;
    }
    if (clock_.Now() < deadline) continue;
    if (ticket) ring.Abandon(*ticket);
    return RunEnd::kTimedOut;
  }
}

Expected<RunReport> SessionTarget::Run(const RunRequest& request) {
  wire::Submission job{};
  job.context = request.context;
  job.frame = request.frame;
  job.timeout_ms = request.timeout_ms;
  const bool bounded = request.timeout_ms != 0;
  const Nanoseconds limit =
      bounded ? request.timeout_ms * base::kMillisecond + options_.run_grace
              : kRunTimeout;
  Nanoseconds deadline = clock_.Now() + limit;
  Nanoseconds refused_since = 0;
  // What the last try was refused with, where another one may do better.
  std::optional<Error> refused;

  for (int deaths = 0; deaths < kAttempts;) {
    std::shared_ptr<Connection> connection = Current();
    if (connection == nullptr) {
      Expected<std::shared_ptr<Connection>> recovered = Recover(deadline);
      if (!recovered.ok()) return std::move(recovered).error();
      connection = *std::move(recovered);
      // The program's own limit holds over the rebuild too; ours starts anew.
      if (!bounded) deadline = clock_.Now() + limit;
    }
    Answer answer;
    switch (RunOn(*connection, job, deadline, &answer)) {
      case RunEnd::kDaemonDied:
        ++deaths;  // again, with the next one
        continue;
      case RunEnd::kTimedOut:
        return refused ? *std::move(refused) : Unanswered(limit);
      case RunEnd::kAnswered:
        break;
    }
    if (answer.code == Code::kOk) {
      return RunReport{answer.queue_ns, answer.run_ns, answer.total_ns,
                       answer.core, answer.drops};
    }
    if (answer.code == Code::kUnavailable &&
        AwaitSuccessor(deadline, &refused_since)) {
      refused = Error{answer.code, std::move(answer.text)};
      continue;
    }
    if (answer.code == Code::kNotFound) {
      if (std::optional<Error> lost = WhyLost(request.context, deadline)) {
        return *std::move(lost);
      }
    }
    return Error{answer.code, std::move(answer.text)};
  }
  return KeepsDying();
}

}  // namespace rknnd::client
