// A remote session's job slots: what its client has in flight, and what is to
// be sent back of it. The network's side of what the ring is for a local
// client. Slots are filled by the thread that reads the stream, ended by
// workers, and emptied by whoever writes to the stream.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_RUN_SLOTS_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_RUN_SLOTS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/mutex.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/grpc/session/message.h"
#include "daemon/transport/grpc/session/remote_buffers.h"

namespace rknnd::transport {

// Outlives its session: a job that still runs completes into it. Thread: any.
class RunSlots final : public core::CompletionSink {
 public:
  // What is sent when a run has succeeded.
  struct Output {
    RemoteRange range;
    std::shared_ptr<RemoteBuffer> buffer;
  };
  struct Ended {
    RemoteRunEnd end;  // but for its text
    std::string text;
    std::vector<Output> outputs;
  };

  // `ended` is called after each Complete; it must not block or allocate.
  // `held`: ends are not handed out before Release.
  RunSlots(std::function<void()> ended, bool held);

  // FAILED_PRECONDITION: there is no such slot, or it is in flight; its client
  // breaks the protocol.
  absl::Status Take(uint32_t slot, uint32_t sequence,
                    std::vector<Output> outputs);
  // No end is kept or told of from now on; those there are can be taken.
  void Seal();
  // The same, and those there are go.
  void Close();

  void Complete(const core::JobCompletion& completion) override;

  [[nodiscard]] bool HasEnded() const;
  // The one that ended first; its slot is free from here on.
  std::optional<Ended> TakeEnded();

  // Of those that are held: the buffers to be read of them, each once...
  [[nodiscard]] std::vector<uint32_t> HeldBuffers() const;
  // ...and the first `count` of them go.
  [[nodiscard]] uint32_t held() const;
  void Release(uint32_t count);

 private:
  //   kFree --Take--> kRunning --Complete--> kEnded --TakeEnded--> kFree
  enum class State : uint8_t { kFree, kRunning, kEnded };

  struct Slot {
    State state = State::kFree;
    uint32_t sequence = 0;
    std::vector<Output> outputs;
    RemoteRunEnd end;
    // Here, so that a worker allocates nothing.
    std::array<char, 256> text;
    uint32_t text_size = 0;
  };

  const std::function<void()> ended_;
  const bool hold_;
  mutable base::Mutex mutex_;
  bool closed_ RKNND_GUARDED_BY(mutex_) = false;
  std::array<Slot, core::kJobSlots> slots_ RKNND_GUARDED_BY(mutex_);
  // Numbers of slots in kEnded, in the order of their ends: a ring that starts
  // at `first_`. The last `held_` of them are held.
  std::array<uint8_t, core::kJobSlots> order_ RKNND_GUARDED_BY(mutex_){};
  uint32_t first_ RKNND_GUARDED_BY(mutex_) = 0;
  uint32_t count_ RKNND_GUARDED_BY(mutex_) = 0;
  uint32_t held_ RKNND_GUARDED_BY(mutex_) = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_RUN_SLOTS_H_
