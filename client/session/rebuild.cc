// How a session comes back after its daemon died: connect with growing delays,
// say hello, give the daemon every buffer and every context again under its old
// number. Runs on whichever of the program's threads noticed first and got the
// turn; the others wait for the turn and find the session whole.

#include <poll.h>

#include <algorithm>
#include <utility>

#include "client/rknnrt/log.h"
#include "client/session/fork_shelf.h"
#include "client/session/requests.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;

// Where somebody listens, whoever looks but once waits for the answer of a
// daemon that is being started.
constexpr Nanoseconds kWelcomePatience = 2 * base::kSecond;
// A call that does not wait for a daemon looks for so long whether it is back.
constexpr Nanoseconds kGlance = 10 * base::kMillisecond;
// Right after its start a daemon may have no room yet: sessions that its
// predecessor's clients make again come in any order, and one of them may
// bring the model that others know by its hash alone.
constexpr Nanoseconds kCrowdPatience = 2 * base::kSecond;

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
    // A socket that is being made belongs to root at first.
    case Code::kPermissionDenied:
      return true;
    default:
      return false;
  }
}

}  // namespace

Expected<std::shared_ptr<Connection>> SessionTarget::Connect(
    Nanoseconds deadline) {
  ForkShelf& shelf = ForkShelf::Get();
  const auto hang_up = [&] {
    shelf.RemoveFd(greeted_.get());
    greeted_.reset();
  };
  const Nanoseconds now = clock_.Now();
  if (greeted_.valid() && now >= greeted_at_ + options_.redial_after) hang_up();
  if (!greeted_.valid()) {
    Expected<base::UniqueFd> socket = options_.dial();
    if (!socket.ok()) {
      listens_since_ = 0;
      return std::move(socket).error();
    }
    met_ = true;
    if (listens_since_ == 0) listens_since_ = now;
    greeted_ = *std::move(socket);
    greeted_at_ = now;
    shelf.AddFd(greeted_.get());
    if (Expected<void> said = Connection::SayHello(
            greeted_.get(), std::min(deadline, now + options_.redial_after));
        !said.ok()) {
      hang_up();
      return std::move(said).error();
    }
  }
  Expected<std::shared_ptr<Connection>> connection = Connection::AwaitWelcome(
      greeted_, std::min(deadline, greeted_at_ + options_.redial_after));
  // Unanswered yet: the next try goes on waiting for it.
  if (!connection.ok() && greeted_.valid() &&
      connection.error().code != Code::kDeadlineExceeded) {
    hang_up();
  }
  return connection;
}

Expected<std::shared_ptr<Connection>> SessionTarget::ConnectFirst() {
  const Nanoseconds begun = clock_.Now();
  const Nanoseconds patience =
      begun + std::max(options_.rebuild_bound, kWelcomePatience);
  Nanoseconds delay = options_.first_delay;
  for (;;) {
    Expected<std::shared_ptr<Connection>> connection = Connect(patience);
    if (connection.ok() || !options_.rebuild) return connection;
    Error error = std::move(connection).error();
    const Nanoseconds now = clock_.Now();
    if (error.code == Code::kDeadlineExceeded && now < patience) continue;
    const Nanoseconds bound =
        begun + (met_ ? options_.rebuild_bound
                      : std::min(options_.rebuild_bound, options_.first_wait));
    if (error.code != Code::kUnavailable || now + delay > bound) {
      if (error.code == Code::kNotFound) error.code = Code::kUnavailable;
      return error;
    }
    Pause(delay);
    delay = std::min(delay * 5 / 4, options_.longest_delay);
  }
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

Error SessionTarget::GaveUp(Error error, bool at_bound) {
  if (error.code == Code::kNotFound) error.code = Code::kUnavailable;
  Nanoseconds away = 0;
  {
    const base::MutexLock lock(mutex_);
    away = clock_.Now() - broken_since_;
  }
  error.message +=
      "; it went away " + std::to_string(away / base::kSecond) +
      (at_bound ? " s ago and the session was not restored (journalctl -u "
                  "rknnd says why; RKNND_RESTART_WAIT is how long calls wait)"
                : " s ago and is not back yet");
  if (at_bound) FailFlights(error);
  const base::MutexLock lock(mutex_);
  state_ = at_bound ? State::kDown : State::kBroken;
  return error;
}

bool SessionTarget::AwaitSuccessor(Connection& connection, Nanoseconds deadline,
                                   Nanoseconds* refused_since) const {
  if (!options_.rebuild) return false;
  const Nanoseconds now = clock_.Now();
  if (*refused_since == 0) *refused_since = now;
  if (now >= std::min(deadline, *refused_since + options_.rebuild_bound)) {
    return false;
  }
  connection.AwaitEnd(RingClient::kSlice);
  return true;
}

Expected<std::shared_ptr<Connection>> SessionTarget::Rebuild(
    Nanoseconds deadline) {
  const Nanoseconds begun = clock_.Now();
  Nanoseconds bound = 0;
  Nanoseconds since = 0;
  bool first_time = false;
  {
    const base::MutexLock lock(mutex_);
    // Once given up, each call tries once and does not wait again.
    first_time = state_ != State::kDown;
    since = broken_since_;
    if (first_time) bound = since + options_.rebuild_bound;
    state_ = State::kRebuilding;
  }
  if (!options_.rebuild) {
    return GaveUp({Code::kUnavailable, options_.name + " has stopped"}, true);
  }
  if (absence_ != since) {
    absence_ = since;
    crowded_until_ = 0;
    Log(LogLevel::kWarning, options_.name + " is gone: waiting for it");
  }
  const Nanoseconds glance = std::max(deadline, begun + kGlance);
  const auto welcome_until = [&] {
    // Anew from when somebody listens again, which is a daemon that is being
    // started; but no call waits for longer than that in all.
    const Nanoseconds listens =
        listens_since_ == 0
            ? 0
            : std::min(listens_since_, begun) + options_.rebuild_bound;
    return std::max({bound, begun + kWelcomePatience, listens});
  };
  Nanoseconds delay = options_.first_delay;
  for (;;) {
    Expected<std::shared_ptr<Connection>> connection =
        Connect(std::min(welcome_until(), glance));
    Error failure{Code::kUnavailable, options_.name + " went away again"};
    if (connection.ok()) {
      const Expected<void> replayed = Replay(**connection);
      if (replayed.ok()) {
        Log(LogLevel::kWarning, options_.name + " is back: session restored");
        // Before anybody else's new runs.
        MoveFlights(*connection);
        const base::MutexLock lock(mutex_);
        connection_ = *connection;
        state_ = State::kConnected;
        return connection;
      }
      if (!(*connection)->broken()) failure = replayed.error();
    } else {
      failure = std::move(connection).error();
      if (!MayPass(failure)) return GaveUp(std::move(failure), true);
    }
    // One that has not answered yet is waited for without a pause.
    const Nanoseconds now = clock_.Now();
    const Nanoseconds next = greeted_.valid() ? now : now + delay;
    if (next > (listens_since_ != 0 ? welcome_until() : bound)) {
      return GaveUp(std::move(failure), true);
    }
    if (next > deadline) {
      failure.code = Code::kDeadlineExceeded;
      return GaveUp(std::move(failure), false);
    }
    Pause(next - now);
    // So that it is found soon after it is back, in relation to how long it
    // was away.
    delay = std::min(delay * 5 / 4, options_.longest_delay);
  }
}

Expected<void> SessionTarget::Replay(Connection& connection) {
  if (crowded_until_ == 0) crowded_until_ = clock_.Now() + kCrowdPatience;
  Expected<void> done = ReplayBuffers(connection);
  if (done.ok()) done = ReplayContexts(connection);
  if (done.ok()) done = ReplayFences(connection);
  return done;
}

bool SessionTarget::IsPassing(const Connection& connection,
                              const Error& error) const {
  if (connection.broken()) return true;
  switch (error.code) {
    case Code::kUnavailable:  // it is being ended, or drained
    case Code::kDeadlineExceeded:
    case Code::kAborted:
      return true;
    case Code::kResourceExhausted:
      return clock_.Now() < crowded_until_;
    default:
      return false;
  }
}

Expected<void> SessionTarget::ReplayBuffers(Connection& connection) {
  for (auto& [number, record] : buffers_) {
    record.lost = !IsOurs(record);
    if (record.lost) {
      Log(LogLevel::kError,
          "fd " + std::to_string(record.fd.get()) +
              " of a buffer was closed by the program, so the restarted rknnd "
              "cannot have it");
      continue;
    }
    Expected<void> done =
        record.address
            ? ImportPhysicalOn(connection, number, *record.address, record.size)
            : ImportOn(connection, number, record.fd.get(), record.size);
    if (done.ok()) continue;
    if (IsPassing(connection, done.error())) return done;
    // As if the program had destroyed it: what it is bound to can be given
    // other memory.
    record.lost = true;
    Log(LogLevel::kError,
        "the restarted rknnd refused a buffer: " + done.error().message);
  }
  return {};
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

Expected<void> SessionTarget::ReplayContexts(Connection& connection) {
  for (auto& [number, record] : contexts_) {
    record.lost.reset();
    Expected<void> done = ReplayContext(connection, number, record);
    if (done.ok()) continue;
    if (IsPassing(connection, done.error())) return done;
    // Another client that has the model's bytes may be about to give them.
    if (!record.source->has_bytes() && clock_.Now() < crowded_until_) {
      return done;
    }
    // It may be there in part, and a run must not find it: the ring does not
    // wait for the socket.
    wire::DestroyContext destroy{};
    destroy.context = number;
    Expected<void> destroyed =
        Done(Send(connection, wire::Verb::kDestroyContext, destroy));
    if (!destroyed.ok() && IsPassing(connection, destroyed.error())) {
      return destroyed;
    }
    record.lost = std::move(done).error();
    record.lost->message =
        "rknnd was restarted and this context could not be made again: " +
        record.lost->message;
    Log(LogLevel::kError, record.lost->message);
  }
  return {};
}

}  // namespace rknnd::client
