// How a session comes back after its daemon died: connect with growing delays,
// say hello, give the daemon every buffer and every context again under its old
// number. Runs on whichever of the program's threads noticed first and got the
// turn; the others wait for the turn and find the session whole.

#include <poll.h>

#include <algorithm>
#include <utility>

#include "client/rknnrt/log.h"
#include "client/session/requests.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;

// Hello is answered at once by a daemon that runs at all.
constexpr Nanoseconds kHelloTimeout = 5 * base::kSecond;

// Whether a daemon that is just coming up may give this answer, so that asking
// again makes sense.
bool MayPass(const Error& error) {
  switch (error.code) {
    case Code::kUnavailable:
    case Code::kNotFound:
    case Code::kDeadlineExceeded:
    case Code::kResourceExhausted:
    case Code::kDataLoss:
    case Code::kAborted:
      return true;
    default:
      return false;
  }
}

}  // namespace

Expected<std::shared_ptr<Connection>> SessionTarget::Connect() {
  Expected<base::UniqueFd> socket = options_.dial();
  if (!socket.ok()) return std::move(socket).error();
  return Connection::Open(*std::move(socket), kHelloTimeout);
}

std::shared_ptr<Connection> SessionTarget::Current() {
  const base::MutexLock lock(mutex_);
  if (state_ != State::kConnected || connection_->broken()) return nullptr;
  return connection_;
}

Expected<std::shared_ptr<Connection>> SessionTarget::Recover(
    Nanoseconds deadline) {
  const Turn turn(*this, deadline);
  if (!turn.taken()) {
    return Error{Code::kDeadlineExceeded, "the connection to " + options_.name +
                                              " was not restored in time"};
  }
  return Connected(deadline);
}

Expected<std::shared_ptr<Connection>> SessionTarget::Connected(
    Nanoseconds deadline) {
  {
    const base::MutexLock lock(mutex_);
    if (state_ == State::kConnected) {
      // Between two requests nobody reads: a daemon that died meanwhile is
      // noticed here and not by a failed request.
      if (connection_->Look().alive) return connection_;
      state_ = State::kBroken;
      broken_since_ = clock_.Now();
    }
  }
  return Rebuild(deadline);
}

Error SessionTarget::GaveUp(const Error& last, bool at_bound) {
  Error error = {
      last.code,
      last.message + "; it went away and the session was not restored"};
  if (at_bound) FailFlights(error);
  const base::MutexLock lock(mutex_);
  state_ = at_bound ? State::kDown : State::kBroken;
  return error;
}

Error SessionTarget::KeepsDying() {
  return {Code::kUnavailable,
          "rknnd went away " + std::to_string(kAttempts) +
              " times during this call (journalctl -u rknnd)"};
}

bool SessionTarget::AwaitSuccessor(Nanoseconds deadline,
                                   Nanoseconds* refused_since) const {
  if (!options_.rebuild) return false;
  const Nanoseconds now = clock_.Now();
  if (*refused_since == 0) *refused_since = now;
  if (now >= std::min(deadline, *refused_since + options_.rebuild_bound)) {
    return false;
  }
  poll(nullptr, 0, static_cast<int>(RingClient::kSlice / base::kMillisecond));
  return true;
}

Expected<std::shared_ptr<Connection>> SessionTarget::Rebuild(
    Nanoseconds deadline) {
  Nanoseconds bound = 0;
  bool first_time = false;
  {
    const base::MutexLock lock(mutex_);
    // Once given up, each call tries once and does not wait again.
    first_time = state_ != State::kDown;
    if (first_time) bound = broken_since_ + options_.rebuild_bound;
    state_ = State::kRebuilding;
  }
  if (!options_.rebuild) {
    return GaveUp({Code::kUnavailable, options_.name + " has stopped"}, true);
  }
  if (first_time) {
    Log(LogLevel::kWarning, options_.name + " is gone: waiting for it");
  }
  Nanoseconds delay = options_.first_delay;
  for (;;) {
    Expected<std::shared_ptr<Connection>> connection = Connect();
    Error failure{Code::kUnavailable, options_.name + " went away again"};
    if (connection.ok()) {
      if (ReplayBuffers(**connection) && ReplayContexts(**connection) &&
          ReplayFences(**connection)) {
        Log(LogLevel::kWarning, options_.name + " is back: session restored");
        // Before anybody else's new runs.
        MoveFlights(*connection);
        const base::MutexLock lock(mutex_);
        connection_ = *connection;
        state_ = State::kConnected;
        return connection;
      }
    } else {
      failure = std::move(connection).error();
      if (!MayPass(failure)) return GaveUp(failure, true);
    }
    const Nanoseconds next = clock_.Now() + delay;
    if (next > bound) return GaveUp(failure, true);
    if (next > deadline) {
      failure.code = Code::kDeadlineExceeded;
      return GaveUp(failure, false);
    }
    poll(nullptr, 0, static_cast<int>(delay / base::kMillisecond));
    delay = std::min(2 * delay, options_.longest_delay);
  }
}

bool SessionTarget::ReplayBuffers(Connection& connection) {
  for (auto& [number, record] : buffers_) {
    record.lost = !IsOurs(record);
    if (record.lost) {
      Log(LogLevel::kError,
          "fd " + std::to_string(record.fd.get()) +
              " of a buffer was closed by the program, so the restarted rknnd "
              "cannot have it");
      continue;
    }
    const Expected<void> done =
        record.address
            ? ImportPhysicalOn(connection, number, *record.address, record.size)
            : ImportOn(connection, number, record.fd.get(), record.size);
    if (done.ok()) continue;
    if (connection.broken()) return false;
    // As if the program had destroyed it: what it is bound to can be given
    // other memory.
    record.lost = true;
    Log(LogLevel::kError,
        "the restarted rknnd refused a buffer: " + done.error().message);
  }
  return true;
}

Expected<void> SessionTarget::ReplayContext(Connection& connection,
                                            uint32_t number,
                                            const ContextRecord& record) {
  Expected<ModelDescription> model = CreateOn(connection, number, record, 0);
  if (!model.ok()) return std::move(model).error();
  if (!record.shapes.empty()) {
    Expected<ModelDescription> row =
        SetShapesOn(connection, number, record.shapes);
    if (!row.ok()) return std::move(row).error();
  }
  if (HasBuffer(record.internal.buffer)) {
    Expected<void> set = SetMemoryOn(connection, wire::Verb::kSetInternalMemory,
                                     number, record.internal);
    if (!set.ok()) return set;
  }
  for (const auto& [port, binding] : record.bindings) {
    // Destroyed by the program while it was still bound, or lost: there is no
    // memory any more. A run before it binds other memory fails and says so.
    if (!HasBuffer(binding.buffer)) continue;
    Expected<void> bound = BindOn(connection, number, port, binding);
    // Bound for another shape and too small for this one: the daemon that died
    // had taken it away too, and the next run says so.
    const bool outgrown = !bound.ok() && !record.shapes.empty() &&
                          bound.error().code == Code::kInvalidArgument;
    if (!bound.ok() && !outgrown) return bound;
  }
  if (record.stream.has_value()) ReplayStream(connection, *record.stream);
  if (record.queue) {
    Expected<void> set = SetQueueOn(connection, number, *record.queue);
    if (!set.ok()) return set;
  }
  return ReplayFrames(connection, number, record);
}

void SessionTarget::ReplayStream(Connection& connection,
                                 const wire::Admit& stream) {
  // The context is of use without it.
  Expected<wire::Frame> reply = Send(connection, wire::Verb::kAdmit, stream);
  if (!reply.ok()) return;
  const Expected<wire::Admission> answer =
      wire::Decode<wire::Admission>(reply->body);
  if (!answer.ok() || answer->fits) return;
  Log(LogLevel::kWarning,
      "rknnd was restarted and keeps no room any more for "
      "the stream of context " +
          std::to_string(stream.context) + ": " + answer->reason);
}

Expected<void> SessionTarget::ReplayFrames(Connection& connection,
                                           uint32_t number,
                                           const ContextRecord& record) {
  for (const auto& [port, frame] : record.frames) {
    // As for tensors: memory may be gone, or the shape another.
    const bool there =
        std::all_of(frame.planes.begin(), frame.planes.end(),
                    [&](const MemoryRange& plane) {
                      return plane.buffer == 0 || HasBuffer(plane.buffer);
                    });
    if (!there) continue;
    Expected<void> bound = BindFrameOn(connection, number, port.index, frame);
    const bool outgrown = !bound.ok() && !record.shapes.empty() &&
                          bound.error().code == Code::kInvalidArgument;
    if (!bound.ok() && !outgrown) return bound;
  }
  return {};
}

bool SessionTarget::ReplayContexts(Connection& connection) {
  for (auto& [number, record] : contexts_) {
    record.lost.reset();
    Expected<void> done = ReplayContext(connection, number, record);
    if (done.ok()) continue;
    if (connection.broken()) return false;
    // It may be there in part, and a run must not find it: the ring does not
    // wait for the socket.
    wire::DestroyContext destroy{};
    destroy.context = number;
    (void)Send(connection, wire::Verb::kDestroyContext, destroy);
    if (connection.broken()) return false;
    record.lost = std::move(done).error();
    record.lost->message =
        "rknnd was restarted and this context could not be made again: " +
        record.lost->message;
    Log(LogLevel::kError, record.lost->message);
  }
  return true;
}

}  // namespace rknnd::client
