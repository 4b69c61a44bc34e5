// One session with a daemon on another machine. Towards the client library it
// is the daemon of a session socket, with a ring and its doorbell; towards the
// daemon it is the client of one gRPC stream. One thread of its own does all of
// it. The program at the socket is our own process; what the daemon sends is
// decoded with care, and believed.

#ifndef CLIENT_REMOTE_BRIDGE_H_
#define CLIENT_REMOTE_BRIDGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "client/remote/bindings.h"
#include "client/remote/dial_options.h"
#include "client/remote/local_ring.h"
#include "client/remote/outbox.h"
#include "client/remote/remote.h"
#include "client/remote/runs.h"
#include "client/remote/stream.h"
#include "client/remote/transfers.h"
#include "proto/wire/frame.h"

namespace rknnd::client {

struct BridgeOptions {
  DialOptions dial;
  base::Nanoseconds timeout = 0;  // of the dialling
  rknnd_remote_progress progress = nullptr;
  void* user = nullptr;
  // Ours keep proxies from taking the stream for idle, and a daemon of which
  // nothing is heard for so long is not there any more.
  base::Nanoseconds ping_interval = 15 * base::kSecond;
  base::Nanoseconds silence = 45 * base::kSecond;
};

// Thread: any, but where noted.
class Bridge {
 public:
  struct Opened {
    std::unique_ptr<Bridge> bridge;
    base::UniqueFd socket;  // the client library's end
  };
  // Begins to dial.
  static base::Expected<Opened> Begin(BridgeOptions options);
  // Waits until a daemon has answered, or why none has.
  base::Expected<void> Await();
  // Both.
  static base::Expected<Opened> Open(BridgeOptions options);
  // Ends it.
  ~Bridge();
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;

  // Nothing of it is left but this object.
  [[nodiscard]] bool finished() const { return finished_.load(); }
  // Soon, as if the program had closed its end.
  void Stop();
  // Waits until nothing of it is left; once, after Stop.
  void Join() { thread_.join(); }

 private:
  //               pong               the socket was closed, the stream
  //   kDialling --------> kOpen ------------------------------------> kEnded
  //       |                      has ended, or nothing was heard        ^
  //       `-------------------------------------------------------------'
  //          the stream has ended, or it took too long
  enum class State : uint8_t { kDialling, kOpen, kEnded };

  // Requests of our own have numbers from here on; the program's count from 1.
  static constexpr uint32_t kOwnRequests = 0x80000000;

  // A request of the program's that the daemon has not answered.
  struct Pending {
    wire::Verb verb{};
    std::vector<std::byte> body;
    std::shared_ptr<LocalBuffer> memory;  // kImportBuffer
    std::shared_ptr<OutgoingTransfer> transfer;
  };

  // Held by threads of gRPC's, which may outlive the bridge.
  struct Waker {
    base::Mutex mutex;
    Bridge* bridge RKNND_GUARDED_BY(mutex) = nullptr;
  };

  explicit Bridge(BridgeOptions options);
  void Wake();

  // ---- all else on the bridge's thread ----
  void Run();
  base::Expected<void> SetUp();
  void TearDown();
  void Answer(base::Expected<void> result);
  // The program hears why; or it was its own doing.
  void Ended(const std::string& why);
  void Close();
  void OnOpen();
  void OnTick();

  // bridge_frames.cc: frames from the program to the daemon.
  void OnSocket(uint32_t events);
  void OnFrame(wire::Frame frame);
  // Whether it was answered here: the daemon has no part in it.
  bool AnswerHere(wire::Frame& frame);
  // Changes what the daemon is to see otherwise; false: it was refused.
  bool Adapt(wire::Frame& frame, Pending& pending);
  void Forward(wire::Frame frame, Pending pending);
  // A request of our own.
  void SendRequest(wire::Verb verb, std::vector<std::byte> body);
  void Reply(const wire::Frame& request, const base::Expected<void>& result);

  // bridge_replies.cc: from the daemon to the program.
  void OnStream();
  void OnMessage(const v1::ToClient& message);
  void OnDaemonFrame(wire::Frame frame);
  void OnReply(wire::Frame frame);
  // What the session learns from a yes; may change what the program sees.
  base::Expected<void> Learn(const Pending& pending, wire::Frame& reply);
  base::Expected<void> LearnBuffer(const Pending& pending, wire::Frame& reply);
  base::Expected<void> FillWeights(const Pending& pending, wire::Frame& reply);
  base::Expected<void> Welcome(wire::Frame& reply) const;
  void ToProgram(wire::Frame frame);
  void FlushSocket();

  const BridgeOptions options_;
  const base::MonotonicClock clock_;
  std::unique_ptr<base::EventLoop> loop_;
  std::thread thread_;
  std::atomic<bool> finished_{false};
  // Whether OnStream is on its way to the loop.
  std::atomic<bool> woken_{false};

  base::Mutex mutex_;
  base::CondVar answered_;
  std::optional<base::Expected<void>> answer_ RKNND_GUARDED_BY(mutex_);

  // The thread's.
  State state_ = State::kDialling;
  base::UniqueFd socket_;
  std::unique_ptr<LocalRing> ring_;
  std::shared_ptr<Waker> waker_;
  std::unique_ptr<Stream> stream_;
  std::optional<Outbox> outbox_;
  std::optional<Runs> runs_;
  LocalBuffers buffers_;
  Bindings bindings_;
  std::map<uint32_t, Pending> pending_;         // by request
  std::map<uint32_t, IncomingFrame> incoming_;  // likewise
  std::deque<wire::Frame> unsent_;              // to the program
  base::EventLoop::WatchId socket_watch_ = 0;
  base::EventLoop::TimerId timer_ = 0;
  base::Nanoseconds heard_ = 0;
  uint64_t pings_ = 0;
  uint32_t own_requests_ = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_REMOTE_BRIDGE_H_
