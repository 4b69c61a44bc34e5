// Runs of a remote session: entries of the local ring become messages, and ends
// that arrive become completions. Used by a bridge on its thread.

#ifndef CLIENT_REMOTE_RUNS_H_
#define CLIENT_REMOTE_RUNS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "client/remote/bindings.h"
#include "client/remote/local_fences.h"
#include "client/remote/local_ring.h"
#include "client/remote/outbox.h"
#include "proto/wire/ring.h"

namespace rknnd::v1 {
class Data;
class RunEnd;
}  // namespace rknnd::v1

namespace rknnd::client {

// Thread: bridge.
class Runs {
 public:
  // Sends a request of the bridge's own, whose reply is nobody's.
  using Request =
      std::function<void(wire::Verb verb, std::vector<std::byte> body)>;

  // All of it outlives this.
  struct Parts {
    base::EventLoop* loop = nullptr;
    const base::Clock* clock = nullptr;
    LocalRing* ring = nullptr;
    Bindings* bindings = nullptr;
    LocalBuffers* buffers = nullptr;
    Outbox* outbox = nullptr;
  };
  Runs(const Parts& parts, Request request);
  ~Runs();
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  [[nodiscard]] LocalFences& fences() { return fences_; }

  // The doorbell rang.
  void TakeEntries();
  // Of a buffer, for the end that comes after it.
  void OnData(const v1::Data& data);
  void OnEnd(const v1::RunEnd& end);
  // Those of a context that is gone and that were not sent yet.
  void Destroyed(uint32_t context);

 private:
  // One entry.
  //
  //            fence signalled, and none of
  //            its context before it waits       its end has arrived
  //   kWaiting ---------------------------> kSent ------------------> kFree
  //       |  cancelled, too late, fence closed                          ^
  //       `-------------------------------------------------------------'
  struct PendingRun {
    enum class State : uint8_t { kFree, kWaiting, kSent };
    State state = State::kFree;
    wire::Submission job{};
    std::vector<BoundPortRef> ports;  // that were bound when it came
    uint32_t shapes = 0;              // likewise
    base::Nanoseconds submitted = 0;
    std::shared_ptr<const LocalFence> in, out, notify;
    bool watched = false;                // `in` is
    base::EventLoop::TimerId timer = 0;  // kWaiting
    uint32_t taken_back = 0;  // of a cancel: runs that had not been sent
  };

  void Take(const wire::Submission& job);
  // Why it cannot be, or nothing.
  std::optional<base::Error> FindFences(PendingRun& pending) const;
  void Cancel(PendingRun& pending);
  [[nodiscard]] bool WaitsBefore(const PendingRun& pending) const;
  void Wait(PendingRun& pending);
  // Sends those that need not wait any more.
  void SendReady();
  // False when it is to wait.
  bool TrySend(PendingRun& pending);
  void Send(PendingRun& pending);
  void SendMessages(const PendingRun& pending);
  // Binds what `ports` say in place of what is bound now.
  void Rebind(const std::vector<BoundPortRef>& ports);
  // Its time is up before it was sent.
  void Expire(uint32_t slot, uint32_t sequence);
  void Fail(PendingRun& pending, base::Code code, std::string text);
  void Finish(PendingRun& pending, const RunAnswer& answer);

  const Parts parts_;
  const Request request_;
  std::array<PendingRun, wire::kRingEntries> pending_runs_;
  std::list<uint32_t> waiting_;  // slots, in the order of their entries
  LocalFences fences_;
};

}  // namespace rknnd::client

#endif  // CLIENT_REMOTE_RUNS_H_
