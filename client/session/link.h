// A session's way to its daemon: the connection of now, who may use its socket,
// and how it is made again when the daemon has gone. It knows nothing of what
// the session owns: its owner replays that on the new connection. Runs on
// whichever of the program's threads asks.

#ifndef CLIENT_SESSION_LINK_H_
#define CLIENT_SESSION_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "client/session/connection.h"
#include "client/session/losses.h"

namespace rknnd::client {

struct SessionOptions {
  // A connected socket to the daemon, or in the user's words why there is none;
  // kNotFound when it was never there.
  std::function<base::Expected<base::UniqueFd>()> dial;
  // For messages: "rknnd at '/run/rknnd/session.sock'".
  std::string name;
  // Whether the session is made again after the daemon has died. Not for one
  // in this process: it dies with us.
  bool rebuild = true;
  // A daemon that is restarted or upgraded is back within seconds; a program
  // that waits half a minute for a frame has lost its camera anyway. 0: a
  // daemon that is not there is not waited for.
  base::Nanoseconds rebuild_bound = 30 * base::kSecond;
  // Likewise at the session's begin, where there is a socket that nobody
  // listens at: a killed daemon's, which comes back, or does not.
  base::Nanoseconds first_wait = 0;
  // After so long without an answer to Hello another daemon may be listening at
  // the same place: the one that took ours may be stopped for good.
  base::Nanoseconds redial_after = 5 * base::kSecond;
  base::Nanoseconds first_delay = 2 * base::kMillisecond;
  base::Nanoseconds longest_delay = 500 * base::kMillisecond;
  // For the making of a buffer: it may stand behind other clients' large ones.
  base::Nanoseconds buffer_timeout = 60 * base::kSecond;
  // What a daemon may be late with its answer that a run's time is up.
  base::Nanoseconds run_grace = 2 * base::kSecond;
  // Of a run without a limit, for a daemon that hangs: longer than any queue of
  // jobs it accepts. Not counted while there is no daemon.
  base::Nanoseconds longest_run = 120 * base::kSecond;
};

// Sleeps, on the caller's thread.
void Pause(base::Nanoseconds time);

// Thread: any.
//
// Only one thread at a time talks on the socket. That access is no lock: it is
// waited for with a deadline, and no lock is held while its holder waits for
// the daemon. mutex_ guards the access, the state and the pointer to the
// connection, and is never held over anything that waits. Runs need no access;
// they share the connection's ring.
class SessionLink {
 public:
  // What the owner does on the way back; each on a thread with access.
  struct Restoring {
    // The daemon was found gone; each time once.
    std::function<void()> absent;
    // Gives the daemon again what the session owns. An error: the connection
    // broke on the way, or the daemon cannot take it now; all of it is to be
    // done again.
    std::function<base::Expected<void>(Connection&)> replay;
    // All is replayed, and nobody else has the new connection yet.
    std::function<void(const std::shared_ptr<Connection>&)> resume;
    // No daemon came back in time, or none ever will.
    std::function<void(const base::Error&)> give_up;
  };

  SessionLink(const SessionOptions& options, Restoring restoring);
  ~SessionLink();
  SessionLink(const SessionLink&) = delete;
  SessionLink& operator=(const SessionLink&) = delete;

  // The session's begin; once, before anything else.
  base::Expected<std::shared_ptr<Connection>> ConnectFirst();

  // What the daemon said last about itself.
  [[nodiscard]] wire::Welcome welcome() const;
  // The connection, if it is whole.
  std::shared_ptr<Connection> Current();
  // With access: the connection, rebuilt if it was broken.
  base::Expected<std::shared_ptr<Connection>> Connected(
      base::Nanoseconds deadline);
  // Without: waits for it first.
  base::Expected<std::shared_ptr<Connection>> Recover(
      base::Nanoseconds deadline);
  // What a rebuild may take that somebody else is at.
  [[nodiscard]] base::Nanoseconds LongestRebuild() const {
    return 2 * options_.rebuild_bound;
  }
  // After an answer of kUnavailable: a daemon that is being ended takes no new
  // work, and the one that follows it will. Waits a moment; false when that was
  // done for long enough since the first refusal, which is kept for the caller.
  bool AwaitSuccessor(Connection& connection, base::Nanoseconds deadline,
                      base::Nanoseconds* refused_since) const;
  // Reads what the daemon said unasked, unless somebody else has access.
  void TryReadEvents(Connection& connection);

  // Whether a request may be what ends a daemon: the loading of a model is
  // other people's code on anybody's bytes.
  enum class Suspect : uint8_t { kNo, kYes };

  // Runs step(connection) with access, again on a new connection when the
  // daemon died under it.
  template <class Step>
  auto Ask(Step step, Suspect suspect = Suspect::kNo)
      -> decltype(step(std::declval<Connection&>()));

  // Runs step(connection or null) with access and never waits for a daemon
  // that is gone: for what ends with it anyway.
  template <class Step>
  base::Expected<void> GiveBack(Step step);

 private:
  friend class SocketAccess;

  // What the connection is.
  //
  //              daemon gone            a thread has access
  //   kConnected ----------> kBroken ------------------------> kRebuilding
  //       ^                   ^  that thread's own deadline       |  |
  //       |                   `-----------------------------------'  |
  //       |  all replayed                                            |
  //       |<---------------------------------------------------------|
  //       |                                  bound, or a final error |
  //       |  next call, one attempt                                  v
  //       `--------------------------------------------------------kDown
  enum class State : uint8_t { kConnected, kBroken, kRebuilding, kDown };

  bool Acquire(base::Nanoseconds deadline);
  void Release();
  // One attempt, or more of the last one when that was not answered in time.
  base::Expected<std::shared_ptr<Connection>> Connect(
      base::Nanoseconds deadline);
  base::Expected<std::shared_ptr<Connection>> Rebuild(
      base::Nanoseconds deadline);
  base::Error GaveUp(base::Error error, bool at_bound);

  const SessionOptions& options_;
  const Restoring restoring_;
  const base::MonotonicClock clock_;

  mutable base::Mutex mutex_;
  base::CondVar released_;
  bool in_use_ RKNND_GUARDED_BY(mutex_) = false;
  State state_ RKNND_GUARDED_BY(mutex_) = State::kConnected;
  base::Nanoseconds broken_since_ RKNND_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Connection> connection_ RKNND_GUARDED_BY(mutex_);

  // Touched only by the thread that has access. The first is a socket whose
  // hello is not answered yet; ForkCleanup knows it.
  std::optional<wire::SessionClient> greeted_;
  base::Nanoseconds greeted_at_ = 0;
  bool met_ = false;  // somebody listened at the socket, some time
  base::Nanoseconds listens_since_ = 0;  // 0: nobody does
  // When the daemon was found gone that is being waited for.
  base::Nanoseconds absence_ = 0;
};

// Access to a link's socket, given back at the end of a scope. Thread: the one
// that made it.
class SocketAccess {
 public:
  // A deadline of 0 is over: only if nobody else has it.
  SocketAccess(SessionLink& link, base::Nanoseconds deadline)
      : link_(link), granted_(link.Acquire(deadline)) {}
  ~SocketAccess() {
    if (granted_) link_.Release();
  }
  SocketAccess(const SocketAccess&) = delete;
  SocketAccess& operator=(const SocketAccess&) = delete;

  [[nodiscard]] bool granted() const { return granted_; }

 private:
  SessionLink& link_;
  const bool granted_;
};

template <class Step>
auto SessionLink::Ask(Step step, Suspect suspect)
    -> decltype(step(std::declval<Connection&>())) {
  const base::Nanoseconds deadline =
      clock_.Now() + kLoadTimeout + LongestRebuild();
  const SocketAccess access(*this, deadline);
  if (!access.granted()) {
    return base::Error{base::Code::kDeadlineExceeded,
                       "another thread's call to rknnd has not ended in time"};
  }
  base::Nanoseconds refused_since = 0;
  Losses losses;
  for (;;) {
    base::Expected<std::shared_ptr<Connection>> connection =
        Connected(deadline);
    if (!connection.ok()) return std::move(connection).error();
    auto result = step(**connection);
    if (result.ok()) return result;
    // Cut off in the midst of an answer it has other names, too.
    if ((*connection)->broken()) {
      const base::Nanoseconds now = clock_.Now();
      // One that closes the session with a word means what was asked.
      losses.Add(suspect == Suspect::kYes || (*connection)->said_why(), now);
      if (losses.TooMany(now, options_.rebuild_bound)) {
        return losses.ToError(result.error().message);
      }
      Pause(losses.Pause());
    } else if (result.error().code != base::Code::kUnavailable ||
               !AwaitSuccessor(**connection, deadline, &refused_since)) {
      return result;
    }
  }
}

template <class Step>
base::Expected<void> SessionLink::GiveBack(Step step) {
  const SocketAccess access(*this,
                            clock_.Now() + kLoadTimeout + LongestRebuild());
  if (!access.granted()) {
    return base::Error{base::Code::kDeadlineExceeded,
                       "another thread's call to rknnd has not ended in time"};
  }
  const std::shared_ptr<Connection> connection = Current();
  base::Expected<void> done = step(connection.get());
  // What the daemon held for us went with it.
  if (connection != nullptr && connection->broken()) return {};
  return done;
}

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_LINK_H_
