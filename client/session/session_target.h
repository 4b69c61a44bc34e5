// The target behind `unix:` and `local:`: one session with a daemon for the
// whole process, used by all its threads. It remembers what the session owns,
// and when the daemon dies it connects again, replays that, and runs again what
// was in flight; the program sees a late frame and no error.

#ifndef CLIENT_SESSION_SESSION_TARGET_H_
#define CLIENT_SESSION_SESSION_TARGET_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/expected.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "client/rknnrt/target.h"
#include "client/session/connection.h"
#include "client/session/losses.h"
#include "client/session/notice.h"

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

// Thread: any.
//
// Only one thread at a time talks on the socket: it has the turn. The turn is
// no lock: it is waited for with a deadline, and no lock is held while its
// holder waits for the daemon. mutex_ guards the turn, the state and the
// pointer to the connection, and is never held over anything that waits.
// Runs need no turn; they share the connection's ring.
class SessionTarget final : public Target {
 public:
  static base::Expected<std::shared_ptr<SessionTarget>> Open(
      SessionOptions options);
  ~SessionTarget() override;

  [[nodiscard]] TargetInfo info() const override;
  base::Expected<std::shared_ptr<const ModelDescription>> CreateContext(
      const ContextRequest& request,
      const std::shared_ptr<ModelSource>& source) override;
  base::Expected<void> DestroyContext(uint32_t context) override;
  base::Expected<void> SetCoreMask(uint32_t context,
                                   uint32_t core_mask) override;
  base::Expected<std::shared_ptr<const ModelDescription>> SetShapes(
      uint32_t context, const std::vector<InputShape>& shapes) override;
  base::Expected<void> Bind(uint32_t context, Direction direction,
                            uint32_t index, const Binding& binding) override;
  base::Expected<void> BindFrame(uint32_t context, uint32_t index,
                                 const FrameBinding& frame) override;
  base::Expected<void> SetInternalMemory(uint32_t context,
                                         const MemoryRange& memory) override;
  base::Expected<void> SetWeightMemory(uint32_t context,
                                       const MemoryRange& memory) override;
  base::Expected<BufferHandle> AllocateBuffer(uint64_t size,
                                              uint32_t flags) override;
  base::Expected<BufferHandle> ImportPhysical(uint64_t address,
                                              uint64_t size) override;
  base::Expected<BufferHandle> ImportBuffer(int fd, uint64_t size) override;
  void ReleaseBuffer(uint32_t buffer) override;
  base::Expected<void> SyncBuffer(uint32_t buffer, bool to_device,
                                  bool from_device) override;
  base::Expected<wire::BufferKey> GetBufferKey(uint32_t buffer) override;
  base::Expected<MemorySize> GetMemorySize(uint32_t context) override;
  base::Expected<MemoryKinds> GetMemory() override;
  base::Expected<std::string> PerfDetail(uint32_t context) override;
  base::Expected<wire::PerfDetail> PerfReport(uint32_t context) override;
  base::Expected<std::vector<wire::LayerReport>> Kernels(
      uint32_t context) override;
  base::Expected<std::string> ModelDetail(uint32_t context) override;
  base::Expected<wire::Admission> Admit(const wire::Admit& request) override;
  base::Expected<void> ArmDump(uint32_t context) override;
  base::Expected<LayerDump> TakeDump(uint32_t context) override;
  void ShowCopies(uint32_t context, uint64_t to_device_inputs_set,
                  uint64_t from_device_outputs_get) override;
  base::Expected<RunReport> Run(const RunRequest& request) override;
  base::Expected<RunRef> Start(const RunRequest& request) override;
  bool Look(StartedRun& run) override;
  bool Await(StartedRun& run, base::Nanoseconds deadline) override;
  base::Expected<uint32_t> Cancel(uint32_t context, uint64_t frame) override;
  base::Expected<void> SetQueue(uint32_t context,
                                const QueuePolicy& policy) override;
  base::Expected<uint32_t> RegisterFence(int fd) override;
  base::Expected<FenceOut> MakeFence() override;
  void ReleaseFence(uint32_t fence) override;
  base::Expected<std::shared_ptr<RunNotice>> MakeNotice() override;

  // Of notices. Its daemon is gone: looks once whether one is there; whether
  // the notice has its socket again.
  bool RestoreNotice(SessionNotice& notice);
  // The number is nobody's from now on.
  void ForgetNotice(uint32_t number);
  // Puts runs that were refused to the daemon again, where it is time for that.
  void TendFlights();

 private:
  // What the connection is.
  //
  //              daemon gone            a thread has the turn
  //   kConnected ----------> kBroken ------------------------> kRebuilding
  //       ^                   ^  that thread's own deadline       |  |
  //       |                   `-----------------------------------'  |
  //       |  all replayed                                            |
  //       |<---------------------------------------------------------|
  //       |                                  bound, or a final error |
  //       |  next call, one attempt                                  v
  //       `--------------------------------------------------------kDown
  enum class State : uint8_t { kConnected, kBroken, kRebuilding, kDown };

  // Part of a context's bindings.
  struct Port {
    uint32_t set = 0;
    Direction direction = Direction::kInput;
    uint32_t index = 0;

    friend auto operator<=>(const Port&, const Port&) = default;
  };

  struct ContextRecord {
    std::shared_ptr<ModelSource> source;
    uint32_t flags = 0;
    uint32_t core_mask = 0;
    uint32_t sram_limit = 0;
    std::vector<InputShape> shapes;  // chosen, or none
    std::map<Port, Binding> bindings;
    std::map<Port, FrameBinding> frames;  // in place of inputs
    MemoryRange internal;                 // that the program brought, or none
    std::optional<QueuePolicy> queue;
    std::optional<wire::Admit> stream;  // that room is kept for
    // Why a rebuilt session does not have it.
    std::optional<base::Error> lost;
  };

  // The fd is known to programs, which close and reuse numbers: device and
  // inode tell whether it is still ours.
  struct BufferRecord {
    base::UniqueFd fd;
    dev_t device = 0;
    ino_t inode = 0;
    uint64_t size = 0;
    std::optional<uint64_t> address;  // physical memory, which has no fd
    bool lost = false;                // a rebuilt session does not have it
  };

  // A run that was started, until its end is known.
  //
  //      started, or on a rebuilt session
  //   --------------------------------------> kFlying ----------> kEnded
  //        ^                                     |                   ^
  //        |                          takes no   |                   |
  //        |                          new work   v       too long    |
  //        `---------------------------------- kWaiting -------------'
  //
  // Fields are flights_mutex_'s, but those of StartedRun once it is done.
  struct Flight final : StartedRun {
    enum class State : uint8_t { kFlying, kWaiting, kEnded };
    State state = State::kEnded;
    wire::Submission job{};
    Ticket ticket;                           // kFlying
    std::shared_ptr<Connection> connection;  // whose ring has it
    base::Nanoseconds started = 0;
    base::Nanoseconds launched = 0;       // into the ring it is in
    base::Nanoseconds refused_since = 0;  // 0: never
    base::Nanoseconds retry_at = 0;       // kWaiting
    uint64_t bound_at = 0;  // the last change of bindings before its start
    Losses losses;          // of daemons that had it
  };

  // A port that was bound anew while runs of its context were on their way:
  // what those keep, should they have to run again.
  using Bound = std::variant<std::monostate, Binding, FrameBinding>;
  struct Rebinding {
    uint32_t context = 0;
    Port port;
    Bound before;
    uint64_t serial = 0;  // for runs with a smaller bound_at
  };

  // What a run waits for.
  struct FenceRecord {
    base::UniqueFd fd;
    uint32_t source = 0;  // one of made_fences_, 0: the program's own
  };
  // A fence that another run of this session may wait for. The descriptor that
  // the program has dies with the daemon; the two runs meet at a new one then.
  struct MadeFence {
    dev_t device = 0;
    ino_t inode = 0;
    base::UniqueFd renewed;
  };

  class Turn;

  // Whether a request may be what ends a daemon: the loading of a model is
  // other people's code on anybody's bytes.
  enum class Suspect : uint8_t { kNo, kYes };

  explicit SessionTarget(SessionOptions options);

  bool TakeTurn(base::Nanoseconds deadline);
  void GiveTurn();
  // Reads what the daemon said unasked, unless somebody else has the turn.
  void TryReadEvents(Connection& connection);

  // The connection, if it is whole.
  std::shared_ptr<Connection> Current();
  // With the turn: the connection, rebuilt if it was broken.
  base::Expected<std::shared_ptr<Connection>> Connected(
      base::Nanoseconds deadline);
  // Without: waits for the turn first.
  base::Expected<std::shared_ptr<Connection>> Recover(
      base::Nanoseconds deadline);
  base::Expected<std::shared_ptr<Connection>> Rebuild(
      base::Nanoseconds deadline);
  // What a rebuild may take that somebody else is at.
  [[nodiscard]] base::Nanoseconds LongestRebuild() const {
    return 2 * options_.rebuild_bound;
  }
  base::Error GaveUp(base::Error error, bool at_bound);
  // After an answer of kUnavailable: a daemon that is being ended takes no new
  // work, and the one that follows it will. Waits a moment; false when that was
  // done for long enough since the first refusal, which is kept for the caller.
  bool AwaitSuccessor(Connection& connection, base::Nanoseconds deadline,
                      base::Nanoseconds* refused_since) const;
  // One attempt, or more of the last one when that was not answered in time.
  base::Expected<std::shared_ptr<Connection>> Connect(
      base::Nanoseconds deadline);
  base::Expected<std::shared_ptr<Connection>> ConnectFirst();

  // Runs step(connection) with the turn, again on a new connection when the
  // daemon died under it.
  template <class Step>
  auto Ask(Step step, Suspect suspect = Suspect::kNo)
      -> decltype(step(std::declval<Connection&>()));

  // Runs step(connection or null) with the turn and never waits for a daemon
  // that is gone: for what ends with it anyway.
  template <class Step>
  base::Expected<void> GiveBack(Step step);

  // The steps; each with the turn.
  base::Expected<ModelDescription> CreateOn(Connection& connection,
                                            uint32_t number,
                                            const ContextRecord& record,
                                            uint32_t duplicate_of);
  base::Expected<void> UploadOn(Connection& connection, ModelSource& source);
  // The same model's of another context, where that one keeps its bytes: one
  // copy of them is enough.
  [[nodiscard]] std::shared_ptr<ModelSource> KeptAlready(
      const std::shared_ptr<ModelSource>& source) const;
  base::Expected<wire::PerfDetail> AskDetail(
      const wire::PerfDetailRequest& request);
  base::Expected<ModelDescription> SetShapesOn(
      Connection& connection, uint32_t context,
      const std::vector<InputShape>& shapes);
  base::Expected<void> BindOn(Connection& connection, uint32_t context,
                              const Port& port, const Binding& binding);
  base::Expected<void> SetQueueOn(Connection& connection, uint32_t context,
                                  const QueuePolicy& policy);
  base::Expected<void> SetMemoryOn(Connection& connection, wire::Verb verb,
                                   uint32_t context, const MemoryRange& memory);
  base::Expected<void> BindFrameOn(Connection& connection, uint32_t context,
                                   uint32_t index, const FrameBinding& frame);
  base::Expected<void> ImportPhysicalOn(Connection& connection, uint32_t number,
                                        uint64_t address, uint64_t size);
  base::Expected<void> ImportOn(Connection& connection, uint32_t number, int fd,
                                uint64_t size);
  // The daemon did not answer in time to the making of a buffer.
  static void ForgetBuffer(Connection& connection, uint32_t number,
                           const base::Error& why);
  // Without waiting for an answer.
  static void DropBuffer(Connection& connection, uint32_t number);
  // False for one that the program destroyed, and for one that could not be
  // given to the daemon of now.
  [[nodiscard]] bool HasBuffer(uint32_t number) const;
  // An error: the connection broke on the way, or the daemon cannot take it
  // now; all of it is to be done again.
  base::Expected<void> Replay(Connection& connection);
  base::Expected<void> ReplayBuffers(Connection& connection);
  base::Expected<void> ReplayContexts(Connection& connection);
  base::Expected<void> ReplayFences(Connection& connection);
  // Whether a part of the replay may be accepted when it is tried again.
  [[nodiscard]] bool IsPassing(const Connection& connection,
                               const base::Error& error) const;
  base::Expected<void> ReplayFrames(Connection& connection, uint32_t number,
                                    const ContextRecord& record);
  base::Expected<void> ReplayContext(Connection& connection, uint32_t number,
                                     const ContextRecord& record);
  // Asks again for the room that was kept for a context's frames.
  static void ReplayStream(Connection& connection, const wire::Admit& stream);
  uint32_t NextBufferNumber();
  static base::Expected<BufferRecord> MakeRecord(base::UniqueFd fd,
                                                 uint64_t size);
  [[nodiscard]] static bool IsOurs(const BufferRecord& record);

  // ---- fences and notices; each with the turn, but where noted ----
  uint32_t NextFenceNumber();
  base::Expected<void> RegisterFenceOn(Connection& connection, uint32_t number,
                                       bool out, int fd);
  // Gives the daemon a new end of a notice's socket.
  base::Expected<void> AttachNotice(Connection& connection, uint32_t number);
  // The other end of it once more, for runs of a rebuilt session.
  base::Expected<base::UniqueFd> RenewFence(Connection& connection,
                                            uint32_t source);
  // The made fence that `fd` is; 0: none.
  [[nodiscard]] uint32_t SourceOf(int fd) const;
  // Whether `fd` is one whose run ended well, and which no daemon could tell.
  [[nodiscard]] bool IsOfEndedRun(int fd) const;
  // Its run has ended; `untold`: perhaps without a word to the program's end.
  void ForgetMadeFence(uint32_t number, bool untold);
  // Tells the daemon of the numbers that nobody uses any more; those that it
  // cannot be told of within `patience` are kept for the next time.
  void ReleaseStaleFences(
      Connection& connection,
      base::Nanoseconds patience = Connection::kNotifyPatience);
  // Without the turn, and soon over: now, or with the next fence.
  void TryReleaseStaleFences();

  // ---- started runs ----
  static wire::Submission JobOf(const RunRequest& request);
  Flight& NewFlight() RKNND_REQUIRES(flights_mutex_);
  // Into the ring; false when it has no slot. Without a daemon it waits.
  bool Launch(Flight& flight) RKNND_REQUIRES(flights_mutex_);
  // Behind another of its context that waits, or for which the context is
  // held; false when there is none.
  bool Follow(Flight& flight) RKNND_REQUIRES(flights_mutex_);
  void MakeWait(Flight& flight) RKNND_REQUIRES(flights_mutex_);
  // A port is about to be bound anew; with the turn.
  void KeepBinding(uint32_t context, const Port& port,
                   const ContextRecord& record);
  static Bound BoundNow(const ContextRecord& record, const Port& port);
  // When it was started.
  Bound BoundThen(const Flight& flight, const ContextRecord& record,
                  const Port& port) const RKNND_REQUIRES(flights_mutex_);
  // Whether something else is bound now than when it was started.
  bool IsOutdated(const Flight& flight) const RKNND_REQUIRES(flights_mutex_);
  // What was bound when it was started, where that is not bound now; with the
  // turn.
  using PortsThen = std::vector<std::pair<Port, Bound>>;
  [[nodiscard]] PortsThen BindingsOf(const Flight& flight) const
      RKNND_REQUIRES(flights_mutex_);
  base::Expected<void> BindPorts(Connection& connection, uint32_t context,
                                 const PortsThen& ports);
  // What is bound to them now, after BindPorts() with something else.
  void BindBack(Connection& connection, uint32_t context,
                const PortsThen& ports);
  // Puts those that wait and are due into the ring, in order; the first of them
  // that is outdated, null: none. With the turn.
  Flight* LaunchDue(Connection& connection) RKNND_REQUIRES(flights_mutex_);
  // After an attempt to bind what it was bound to; false when it waits on.
  bool LaunchAsBound(Connection& connection, Flight& flight,
                     const base::Expected<void>& bound)
      RKNND_REQUIRES(flights_mutex_);
  // Puts all that wait and are due into the ring, each with what was bound when
  // it was started; with the turn.
  void LaunchWaiting(Connection& connection);
  // RetryWaiting() for those that are outdated, unless somebody else has the
  // turn.
  void TryRetryOutdated();
  // A run that its caller waits for, unless its context is bound as it was for
  // another. Waits a slice at most.
  std::optional<Ticket> SubmitRun(RingClient& ring,
                                  const wire::Submission& job);
  // With its answer in the ring.
  void Land(Flight& flight) RKNND_REQUIRES(flights_mutex_);
  // The flight is not in flights_ any more.
  void End(Flight& flight, base::Code code, std::string text)
      RKNND_REQUIRES(flights_mutex_);
  // Found out on this side: its notice hears of it from nobody else.
  void EndHere(Flight& flight, base::Code code, std::string text)
      RKNND_REQUIRES(flights_mutex_);
  void DropFences(const wire::Submission& job, base::Code code)
      RKNND_REQUIRES(flights_mutex_);
  void LandAll() RKNND_REQUIRES(flights_mutex_);
  // Those that have ended hold slots that others wait for.
  void LandStarted();
  void RetryWaiting() RKNND_REQUIRES(flights_mutex_);
  // Whoever sleeps for one that waits comes back to it in time.
  void RemindWaiting() RKNND_REQUIRES(flights_mutex_);
  void RemindAll() RKNND_REQUIRES(flights_mutex_);
  // What a thread that waits for a run may sleep on.
  struct Leg {
    base::Nanoseconds end = 0;  // 0: it has ended, or is late
    bool late = false;
    std::shared_ptr<Connection> connection;
    Ticket ticket;
  };
  // One that is late ends, where it is said why.
  Leg NextLeg(Flight& flight, const std::string* why);
  // Its daemon has gone: whether it is put to no other.
  bool IsWornOut(Flight& flight) RKNND_REQUIRES(flights_mutex_);
  // All that is on its way goes on with the next daemon; with the turn.
  void MoveFlights(const std::shared_ptr<Connection>& connection);
  void FailFlights(const base::Error& error);
  // A context's that wait for a daemon, or all of them. How many they were.
  uint32_t CancelFlights(uint32_t context, bool all, uint64_t frame = 0);

  // An entry, until its answer is there, whatever becomes of daemons.
  base::Expected<Answer> Put(const wire::Submission& job);
  // One job, put to one daemon.
  // kMayHaveKilled: it died, and the job was on a core.
  enum class RunEnd : uint8_t {
    kAnswered,
    kDaemonDied,
    kMayHaveKilled,
    kTimedOut
  };
  // `now`: of a moment ago.
  RunEnd RunOn(Connection& connection, const wire::Submission& job,
               base::Nanoseconds now, base::Nanoseconds deadline,
               Answer* answer);

  // Why a run without a limit was not answered, as the daemon says where it
  // says anything within two seconds: who has the cores, and since when.
  std::string WhyUnanswered();
  // Where it says nothing.
  static constexpr char kSilent[] =
      "rknnd hangs, or is stopped (rknnctl status)";
  // Sleeps, on the caller's thread.
  static void Pause(base::Nanoseconds time);

  // Why the daemon does not know a context, when it was lost in a rebuild.
  std::optional<base::Error> WhyLost(uint32_t context,
                                     base::Nanoseconds deadline);

  const SessionOptions options_;
  const base::MonotonicClock clock_;

  mutable base::Mutex mutex_;
  base::CondVar turn_free_;
  bool turn_taken_ RKNND_GUARDED_BY(mutex_) = false;
  State state_ RKNND_GUARDED_BY(mutex_) = State::kConnected;
  base::Nanoseconds broken_since_ RKNND_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Connection> connection_ RKNND_GUARDED_BY(mutex_);

  // Touched only by the thread that has the turn.
  base::UniqueFd greeted_;  // its hello is not answered yet; on the shelf
  base::Nanoseconds greeted_at_ = 0;
  bool met_ = false;  // somebody listened at the socket, some time
  base::Nanoseconds listens_since_ = 0;  // 0: nobody does
  // When the daemon was found gone that is being waited for.
  base::Nanoseconds absence_ = 0;
  base::Nanoseconds crowded_until_ = 0;  // what it refuses may pass
  std::map<uint32_t, ContextRecord> contexts_;
  std::map<uint32_t, BufferRecord> buffers_;
  uint32_t last_buffer_ = 0;
  // By number: what runs wait for, and the fences that runs tell.
  std::map<uint32_t, FenceRecord> fences_;
  std::map<uint32_t, MadeFence> made_fences_;
  uint32_t last_fence_ = 0;
  // Made ones of runs that ended well, and that their daemon died without
  // telling; the newest, by device and inode.
  std::deque<std::pair<dev_t, ino_t>> ended_fences_;

  // Held while an entry is written, so that flights_ has the ring's order;
  // before a ring's and a notice's locks, never while anything is waited for.
  base::Mutex flights_mutex_;
  // The context that is bound as it was for a run that is put again; 0: none.
  uint32_t held_ RKNND_GUARDED_BY(flights_mutex_) = 0;
  base::CondVar hold_over_;
  // Whether any context was bound anew while it had started runs, ever.
  std::atomic<bool> rebinds_{false};
  // Where new runs go; replaced when all the others have moved.
  std::shared_ptr<Connection> flying_on_ RKNND_GUARDED_BY(flights_mutex_);
  // On their way, in the order of their start.
  std::vector<Flight*> flights_ RKNND_GUARDED_BY(flights_mutex_);
  // Every one that was made: those that have ended and that nobody refers to
  // are used again.
  std::vector<std::unique_ptr<Flight>> made_ RKNND_GUARDED_BY(flights_mutex_);
  size_t last_made_ RKNND_GUARDED_BY(flights_mutex_) = 0;
  // In the order of their serials.
  std::vector<Rebinding> rebindings_ RKNND_GUARDED_BY(flights_mutex_);
  uint64_t last_rebinding_ RKNND_GUARDED_BY(flights_mutex_) = 0;
  std::set<uint32_t> fences_out_ RKNND_GUARDED_BY(flights_mutex_);
  std::map<uint32_t, SessionNotice*> notices_ RKNND_GUARDED_BY(flights_mutex_);
  std::vector<uint32_t> stale_fences_ RKNND_GUARDED_BY(flights_mutex_);
  // Of those: their runs did not end well.
  std::set<uint32_t> failed_fences_ RKNND_GUARDED_BY(flights_mutex_);
  // Contexts that the session of now does not have, and why.
  std::map<uint32_t, base::Error> lost_ RKNND_GUARDED_BY(flights_mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_SESSION_TARGET_H_
