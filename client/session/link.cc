// How a session comes back after its daemon died: connect with growing delays,
// say hello, let the owner give the daemon everything again. Runs on whichever
// of the program's threads noticed first and got access; the others wait for it
// and find the session whole.

#include "client/session/link.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/session/fork_cleanup.h"
#include "client/target/log.h"

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

void Pause(Nanoseconds time) {
  if (time > 0) poll(nullptr, 0, static_cast<int>(time / base::kMillisecond));
}

SessionLink::SessionLink(const SessionOptions& options, Restoring restoring)
    : options_(options), restoring_(std::move(restoring)) {}

SessionLink::~SessionLink() {
  if (greeted_) ForkCleanup::Get().RemoveFd(greeted_->socket());
}

wire::Welcome SessionLink::welcome() const {
  const base::MutexLock lock(mutex_);
  return connection_->welcome();
}

// ---- access to the socket ---------------------------------------------------

bool SessionLink::Acquire(Nanoseconds deadline) {
  const base::MutexLock lock(mutex_);
  while (in_use_) {
    const Nanoseconds left = deadline - clock_.Now();
    if (left <= 0) return false;
    released_.wait_for(mutex_, std::chrono::nanoseconds(left));
  }
  in_use_ = true;
  return true;
}

void SessionLink::Release() {
  {
    const base::MutexLock lock(mutex_);
    in_use_ = false;
  }
  released_.notify_one();
}

void SessionLink::TryReadEvents(Connection& connection) {
  const SocketAccess access(*this, 0);
  if (access.granted()) connection.ReadEvents();
}

// ---- connecting -------------------------------------------------------------

Expected<std::shared_ptr<Connection>> SessionLink::Connect(
    Nanoseconds deadline) {
  ForkCleanup& cleanup = ForkCleanup::Get();
  const auto hang_up = [&] {
    cleanup.RemoveFd(greeted_->socket());
    greeted_.reset();
  };
  const Nanoseconds now = clock_.Now();
  if (greeted_ && now >= greeted_at_ + options_.redial_after) hang_up();
  if (!greeted_) {
    Expected<base::UniqueFd> socket = options_.dial();
    if (!socket.ok()) {
      listens_since_ = 0;
      return std::move(socket).error();
    }
    met_ = true;
    if (listens_since_ == 0) listens_since_ = now;
    greeted_.emplace(*std::move(socket));
    greeted_at_ = now;
    cleanup.AddFd(greeted_->socket());
    if (Expected<void> said =
            greeted_->SayHello(Connection::Introduction(),
                               std::min(deadline, now + options_.redial_after));
        !said.ok()) {
      hang_up();
      return std::move(said).error();
    }
  }
  Expected<std::shared_ptr<Connection>> connection = Connection::AwaitWelcome(
      greeted_, std::min(deadline, greeted_at_ + options_.redial_after));
  // Unanswered yet: the next try goes on waiting for it.
  if (!connection.ok() && greeted_ &&
      connection.error().code != Code::kDeadlineExceeded) {
    hang_up();
  }
  return connection;
}

Expected<std::shared_ptr<Connection>> SessionLink::ConnectFirst() {
  const Nanoseconds begun = clock_.Now();
  const Nanoseconds patience =
      begun + std::max(options_.rebuild_bound, kWelcomePatience);
  Nanoseconds delay = options_.first_delay;
  for (;;) {
    Expected<std::shared_ptr<Connection>> connection = Connect(patience);
    if (connection.ok()) {
      const base::MutexLock lock(mutex_);
      connection_ = *connection;
    }
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

std::shared_ptr<Connection> SessionLink::Current() {
  const base::MutexLock lock(mutex_);
  if (state_ != State::kConnected || connection_->broken()) return nullptr;
  return connection_;
}

Expected<std::shared_ptr<Connection>> SessionLink::Recover(
    Nanoseconds deadline) {
  const SocketAccess access(*this, deadline);
  if (!access.granted()) {
    return Error{Code::kDeadlineExceeded, "the connection to " + options_.name +
                                              " was not restored in time"};
  }
  return Connected(deadline);
}

Expected<std::shared_ptr<Connection>> SessionLink::Connected(
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

Error SessionLink::GaveUp(Error error, bool at_bound) {
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
  if (at_bound) restoring_.give_up(error);
  const base::MutexLock lock(mutex_);
  state_ = at_bound ? State::kDown : State::kBroken;
  return error;
}

bool SessionLink::AwaitSuccessor(Connection& connection, Nanoseconds deadline,
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

Expected<std::shared_ptr<Connection>> SessionLink::Rebuild(
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
    restoring_.absent();
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
      const Expected<void> replayed = restoring_.replay(**connection);
      if (replayed.ok()) {
        Log(LogLevel::kWarning, options_.name + " is back: session restored");
        // Before anybody else's new runs.
        restoring_.resume(*connection);
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
    const Nanoseconds next = greeted_ ? now : now + delay;
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

}  // namespace rknnd::client
