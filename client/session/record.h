// What a session owns at its daemon: contexts with all that was set on them,
// and buffers. When the daemon has died the next one is given all of it again
// under the old numbers. It also answers for what no daemon has any more: a
// context that could not be made again says why.

#ifndef CLIENT_SESSION_RECORD_H_
#define CLIENT_SESSION_RECORD_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "client/session/connection.h"
#include "client/target/model_source.h"
#include "client/target/types.h"

namespace rknnd::client {

// Names a part of a context's bindings.
struct PortKey {
  uint32_t set = 0;
  Direction direction = Direction::kInput;
  uint32_t index = 0;

  friend auto operator<=>(const PortKey&, const PortKey&) = default;
};

struct ContextRecord {
  std::shared_ptr<ModelSource> source;
  uint32_t flags = 0;
  uint32_t core_mask = 0;
  uint32_t sram_limit = 0;
  std::vector<InputShape> shapes;  // chosen, or none
  std::map<PortKey, Binding> bindings;
  std::map<PortKey, FrameBinding> frames;  // in place of inputs
  MemoryRange internal;                    // that the program brought, or none
  std::optional<QueuePolicy> queue;
  std::optional<wire::Admit> stream;  // that room is kept for
  // Why a rebuilt session does not have it.
  std::optional<base::Error> lost;
};

// The fd is known to programs, which close and reuse numbers: device and inode
// tell whether it is still ours.
struct BufferRecord {
  base::UniqueFd fd;
  dev_t device = 0;
  ino_t inode = 0;
  uint64_t size = 0;
  std::optional<uint64_t> address;  // physical memory, which has no fd
  bool lost = false;                // a rebuilt session does not have it

  static base::Expected<BufferRecord> Of(base::UniqueFd fd, uint64_t size);
  [[nodiscard]] bool IsOurs() const;
};

// The time after a daemon's return in which what it refuses may pass. Thread:
// the one with access to the socket.
class Grace {
 public:
  // The daemon is gone: the time begins with the first attempt to replay.
  void Reset() { until_ = 0; }
  void BeginOnce();
  [[nodiscard]] bool lasts() const { return clock_.Now() < until_; }
  // Whether what was refused may be accepted when it is tried again.
  [[nodiscard]] bool IsPassing(const Connection& connection,
                               const base::Error& error) const;
  // Whether the replay goes on after this attempt to give back `what`: it did
  // as asked, or is refused for good, which is told to the program.
  [[nodiscard]] bool GoesOn(const Connection& connection,
                            const base::Expected<void>& done,
                            const char* what) const;

 private:
  const base::MonotonicClock clock_;
  base::Nanoseconds until_ = 0;
};

// Thread: the one with access to the socket.
class SessionRecord {
 public:
  explicit SessionRecord(base::Nanoseconds buffer_timeout)
      : buffer_timeout_(buffer_timeout) {}
  // Closes no descriptor that the program closed and has for something else.
  ~SessionRecord();
  SessionRecord(const SessionRecord&) = delete;
  SessionRecord& operator=(const SessionRecord&) = delete;

  // Null: the program has no such context.
  ContextRecord* FindContext(uint32_t number);
  // Why the daemon of now does not have it, where it was lost.
  [[nodiscard]] base::Expected<void> CheckContext(uint32_t number) const;
  // The same model's source of another context, where that one keeps its bytes:
  // one copy of them is enough.
  [[nodiscard]] std::shared_ptr<ModelSource> KeptAlready(
      const std::shared_ptr<ModelSource>& source) const;

  uint32_t NextBufferNumber();
  // False for one that the program destroyed, and for one that could not be
  // given to the daemon of now.
  [[nodiscard]] bool HasBuffer(uint32_t number) const;

  // Gives a daemon all of it. An error: the connection broke on the way, or the
  // daemon cannot take it now; all of it is to be done again.
  base::Expected<void> Replay(Connection& connection, const Grace& grace);

  std::map<uint32_t, ContextRecord> contexts;
  std::map<uint32_t, BufferRecord> buffers;

 private:
  base::Expected<void> ReplayBuffers(Connection& connection,
                                     const Grace& grace);
  base::Expected<void> ReplayContexts(Connection& connection,
                                      const Grace& grace);
  base::Expected<void> ReplayContext(Connection& connection, uint32_t number,
                                     const ContextRecord& record);
  base::Expected<void> ReplayFrames(Connection& connection, uint32_t number,
                                    const ContextRecord& record);

  const base::Nanoseconds buffer_timeout_;
  uint32_t last_buffer_ = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_RECORD_H_
