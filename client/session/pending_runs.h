// The runs that a session has started and does not wait for: into the ring, out
// of it, and into the ring of the next daemon when the one that had them died
// or takes no new work. A run keeps the bindings of its start
// (binding_history.h), so what is bound anew meanwhile passes here, too.

#ifndef CLIENT_SESSION_PENDING_RUNS_H_
#define CLIENT_SESSION_PENDING_RUNS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "base/values/expected.h"
#include "client/session/binding_history.h"
#include "client/session/connection.h"
#include "client/session/fence_table.h"
#include "client/session/link.h"
#include "client/session/losses.h"
#include "client/session/notice.h"
#include "client/session/record.h"
#include "client/target/types.h"

namespace rknnd::client {

wire::Submission JobOf(const RunRequest& request);

// Thread: any; "with access" is the thread that may use the link's socket.
class PendingRuns {
 public:
  // All of them outlive this. The record and the grace are looked at with
  // access.
  PendingRuns(const SessionOptions& options, SessionLink& link,
              SessionRecord& record, const Grace& grace, FenceTable& fences,
              NoticeTable& notices);

  // The session's begin: where runs go.
  void SubmitTo(std::shared_ptr<Connection> connection);

  // As Target's.
  base::Expected<RunRef> Start(const RunRequest& request);
  bool Look(StartedRun& started);
  bool Await(StartedRun& started, base::Nanoseconds deadline);
  // A context's that wait for a daemon, or all of them. How many they were.
  uint32_t Cancel(uint32_t context, bool all, uint64_t frame = 0);
  // The context is destroyed. `all`: no daemon has its runs either.
  void Forget(uint32_t context, bool all);

  // An entry that its caller waits for, put into the ring unless its context is
  // bound as it was for another. Waits a slice at most.
  std::optional<Ticket> Submit(RingClient& ring, const wire::Submission& job);
  // Whether any is on its way whose end this notice tells.
  bool AnyNames(uint32_t notice);
  // Those that have ended hold slots that others wait for.
  void CompleteEnded();
  // Puts runs that were refused to the daemon again, where it is time for that.
  void Advance();

  // A port is about to be bound anew; with access.
  void KeepBinding(uint32_t context, const PortKey& port,
                   const ContextRecord& record);
  // Why the session of now does not have a context, when it was lost in a
  // rebuild.
  std::optional<base::Error> WhyLost(uint32_t context);
  // All that is on its way goes on with the next daemon; with access.
  void MoveTo(const std::shared_ptr<Connection>& connection);
  // No daemon came back.
  void FailAll(const base::Error& error);

 private:
  // A run that was started, until its end is known.
  //
  //      started, or on a rebuilt session
  //   --------------------------------------> kSubmitted ----------> kEnded
  //        ^                                     |                   ^
  //        |                          takes no   |                   |
  //        |                          new work   v       too long    |
  //        `---------------------------------- kWaiting -------------'
  //
  // Fields are mutex_'s, but those of StartedRun once it is done.
  struct PendingRun final : StartedRun {
    enum class State : uint8_t { kSubmitted, kWaiting, kEnded };
    State state = State::kEnded;
    wire::Submission job{};
    Ticket ticket;                           // kSubmitted
    std::shared_ptr<Connection> connection;  // whose ring has it
    base::Nanoseconds started = 0;
    base::Nanoseconds submitted = 0;      // into the ring it is in
    base::Nanoseconds refused_since = 0;  // 0: never
    base::Nanoseconds retry_at = 0;       // kWaiting
    uint64_t history = 0;                 // of bindings, when it was started
    Losses losses;                        // of daemons that had it

    [[nodiscard]] BindingHistory::Start start() const {
      return {job.context, job.set, history};
    }
    [[nodiscard]] bool IsAnswered() const {
      return state == State::kSubmitted && connection->ring().IsDone(ticket);
    }
  };

  PendingRun& NewRun() RKNND_REQUIRES(mutex_);
  // Into the ring; false when it has no slot. Without a daemon it waits.
  bool Submit(PendingRun& run) RKNND_REQUIRES(mutex_);
  // Behind another of its context that waits, or for which the context is
  // held; false when there is none.
  bool Follow(PendingRun& run) RKNND_REQUIRES(mutex_);
  void MakeWait(PendingRun& run) RKNND_REQUIRES(mutex_);
  // With its answer in the ring.
  void Complete(PendingRun& run) RKNND_REQUIRES(mutex_);
  void CompleteAll() RKNND_REQUIRES(mutex_);
  // `run` is not in runs_ any more.
  void End(PendingRun& run, base::Code code, std::string text)
      RKNND_REQUIRES(mutex_);
  // Found out on this side: its notice hears of it from nobody else.
  void EndHere(PendingRun& run, base::Code code, std::string text)
      RKNND_REQUIRES(mutex_);
  void RetryWaiting() RKNND_REQUIRES(mutex_);
  // Whoever sleeps for one that waits comes back to it in time.
  void RemindWaiting() RKNND_REQUIRES(mutex_);
  // Its daemon has gone: whether it is put to no other.
  bool IsWornOut(PendingRun& run) RKNND_REQUIRES(mutex_);
  // What a thread that waits for a run may sleep on.
  struct Leg {
    base::Nanoseconds end = 0;  // 0: it has ended, or is late
    bool late = false;
    std::shared_ptr<Connection> connection;
    Ticket ticket;
  };
  // One that is late ends, where it is said why.
  Leg NextLeg(PendingRun& run, const std::string* why);

  // ---- with what was bound when they were started (rebindings.cc) ----
  // Puts those that wait and are due into the ring, in order; the first of them
  // that is outdated, null: none. With access.
  PendingRun* SubmitDue(Connection& connection) RKNND_REQUIRES(mutex_);
  // After an attempt to bind what it was bound to; false when it waits on.
  bool SubmitAsBound(Connection& connection, PendingRun& run,
                     const base::Expected<void>& bound) RKNND_REQUIRES(mutex_);
  // Puts all that wait and are due into the ring, each with what was bound when
  // it was started; with access.
  void SubmitWaiting(Connection& connection);
  // The same where any is outdated, unless somebody else has access.
  void TryRetryOutdated();
  // Binds what is bound to them now, after something else was for a moment.
  void BindBack(Connection& connection, uint32_t context,
                const BindingHistory::PortsThen& ports);

  const SessionOptions& options_;
  const base::MonotonicClock clock_;
  SessionLink& link_;
  SessionRecord& record_;
  const Grace& grace_;
  FenceTable& fences_;
  NoticeTable& notices_;

  // Whether any context was bound anew while it had started runs, ever.
  std::atomic<bool> rebinds_{false};

  // Held while an entry is written, so that runs_ has the ring's order; before
  // a ring's lock, the fences' and the notices', never while anything is waited
  // for.
  base::Mutex mutex_;
  // The context that is bound as it was for a run that is put again; 0: none.
  uint32_t held_ RKNND_GUARDED_BY(mutex_) = 0;
  base::CondVar hold_over_;
  // Where new runs go; replaced when all the others have moved.
  std::shared_ptr<Connection> submits_to_ RKNND_GUARDED_BY(mutex_);
  // On their way, in the order of their start.
  std::vector<PendingRun*> runs_ RKNND_GUARDED_BY(mutex_);
  // Every one that was made: those that have ended and that nobody refers to
  // are used again.
  std::vector<std::unique_ptr<PendingRun>> made_ RKNND_GUARDED_BY(mutex_);
  size_t last_made_ RKNND_GUARDED_BY(mutex_) = 0;
  BindingHistory history_ RKNND_GUARDED_BY(mutex_);
  // Contexts that the session of now does not have, and why.
  std::map<uint32_t, base::Error> lost_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_PENDING_RUNS_H_
