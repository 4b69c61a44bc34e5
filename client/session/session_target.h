// The target behind `unix:` and `local:`: one session with a daemon for the
// whole process, used by all its threads. It remembers what the session owns,
// and when the daemon dies it connects again, replays that, and runs again what
// was in flight; the program sees a late frame and no error.

#ifndef CLIENT_SESSION_SESSION_TARGET_H_
#define CLIENT_SESSION_SESSION_TARGET_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/expected.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "client/rknnrt/target.h"
#include "client/session/connection.h"

namespace rknnd::client {

struct SessionOptions {
  // A connected socket to the daemon, or in the user's words why there is none.
  std::function<base::Expected<base::UniqueFd>()> dial;
  // For messages: "rknnd at '/run/rknnd/session.sock'".
  std::string name;
  // Whether the session is made again after the daemon has died. Not for one
  // in this process: it dies with us.
  bool rebuild = true;
  // A daemon that is restarted or upgraded is back within seconds; a program
  // that waits half a minute for a frame has lost its camera anyway.
  base::Nanoseconds rebuild_bound = 30 * base::kSecond;
  base::Nanoseconds first_delay = 10 * base::kMillisecond;
  base::Nanoseconds longest_delay = 500 * base::kMillisecond;
  // For the making of a buffer: it may stand behind other clients' large ones.
  base::Nanoseconds buffer_timeout = 60 * base::kSecond;
  // What a daemon may be late with its answer that a run's time is up.
  base::Nanoseconds run_grace = 2 * base::kSecond;
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
  base::Expected<MemorySize> GetMemorySize(uint32_t context) override;
  base::Expected<MemoryKinds> GetMemory() override;
  base::Expected<std::string> PerfDetail(uint32_t context) override;
  base::Expected<wire::PerfDetail> PerfReport(uint32_t context) override;
  base::Expected<std::string> ModelDetail(uint32_t context) override;
  base::Expected<void> ArmDump(uint32_t context) override;
  base::Expected<LayerDump> TakeDump(uint32_t context) override;
  void ShowCopies(uint32_t context, uint64_t to_device_inputs_set,
                  uint64_t from_device_outputs_get) override;
  base::Expected<RunReport> Run(const RunRequest& request) override;

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

  struct ContextRecord {
    std::shared_ptr<ModelSource> source;
    uint32_t flags = 0;
    uint32_t core_mask = 0;
    uint32_t sram_limit = 0;
    std::vector<InputShape> shapes;  // chosen, or none
    std::map<std::pair<Direction, uint32_t>, Binding> bindings;
    std::map<uint32_t, FrameBinding> frames;  // in place of inputs
    MemoryRange internal;  // that the program brought, or none
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

  class Turn;

  // A request that kills every daemon it is put to is not put forever.
  static constexpr int kAttempts = 5;
  static base::Error KeepsDying();

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
  base::Error GaveUp(const base::Error& last, bool at_bound);
  // After an answer of kUnavailable: a daemon that is being ended takes no new
  // work, and the one that follows it will. Waits a moment; false when that was
  // done for long enough since the first refusal, which is kept for the caller.
  bool AwaitSuccessor(base::Nanoseconds deadline,
                      base::Nanoseconds* refused_since) const;
  base::Expected<std::shared_ptr<Connection>> Connect();

  // Runs step(connection) with the turn, again on a new connection when the
  // daemon died under it.
  template <class Step>
  auto Ask(Step step) -> decltype(step(std::declval<Connection&>()));

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
                              const std::pair<Direction, uint32_t>& port,
                              const Binding& binding);
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
  // False when the connection broke on the way.
  bool ReplayBuffers(Connection& connection);
  bool ReplayContexts(Connection& connection);
  base::Expected<void> ReplayFrames(Connection& connection, uint32_t number,
                                    const ContextRecord& record);
  base::Expected<void> ReplayContext(Connection& connection, uint32_t number,
                                     const ContextRecord& record);
  uint32_t NextBufferNumber();
  static base::Expected<BufferRecord> MakeRecord(base::UniqueFd fd,
                                                 uint64_t size);
  [[nodiscard]] static bool IsOurs(const BufferRecord& record);

  // One job, put to one daemon.
  enum class RunEnd : uint8_t { kAnswered, kDaemonDied, kTimedOut };
  RunEnd RunOn(Connection& connection, const wire::Submission& job,
               base::Nanoseconds deadline, Answer* answer);

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
  std::map<uint32_t, ContextRecord> contexts_;
  std::map<uint32_t, BufferRecord> buffers_;
  uint32_t last_buffer_ = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_SESSION_TARGET_H_
