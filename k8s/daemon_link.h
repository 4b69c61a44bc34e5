// The line to rknnd: admin.sock, over which share sockets are opened and its
// health is asked for. Connects again by itself, for ever. Used by the plugin.
// Trusts rknnd with what it says, but waits for it with a bound.
//
//            Welcome
//   kDown -----------> kUp
//     ^                 |
//     +-----------------+ end of file, garbage, no answer in time

#ifndef K8S_DAEMON_LINK_H_
#define K8S_DAEMON_LINK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"
#include "k8s/shares.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"
#include "proto/wire/session_client.h"

namespace rknnd::k8s {

// Thread: loop.
class DaemonLink {
 public:
  struct Options {
    std::string socket;  // admin.sock
    base::EventLoop* loop = nullptr;
    // An answer takes milliseconds; a daemon that is silent for so long is
    // stuck.
    base::Nanoseconds patience = 10 * base::kSecond;
    // How often its health is asked for.
    base::Nanoseconds interval = 5 * base::kSecond;
    // The connection is there; share sockets of the one before are shut. Called
    // again after each time it was lost.
    std::function<void(const Capacity&)> up;
    // Whether work can be given to it; why not, else. Called with each answer,
    // and when the connection is lost.
    std::function<void(const absl::Status&)> health;
  };
  using Done = std::function<void(absl::Status)>;

  explicit DaemonLink(Options options);
  ~DaemonLink();

  void Start();
  [[nodiscard]] bool is_up() const { return up_; }

  // UNAVAILABLE where the connection is lost before the answer. `listener` is
  // borrowed for the call.
  void OpenShareSocket(const wire::ShareSocket& share_socket, int listener,
                       Done done);
  void CloseShareSocket(const std::string& name, Done done);

 private:
  using Answered = std::function<void(const absl::StatusOr<wire::Frame>&)>;
  struct Request {
    wire::Frame frame;
    Answered answered;
  };

  void Connect();
  void Retry();
  void SayHello();
  void AskForCapacity();
  void AskForHealth();
  // One is on its way at a time: the socket's queue is never full.
  void Ask(Request request);
  template <class Message>
  void AskFor(wire::Verb verb, const Message& message, Answered answered,
              std::vector<base::UniqueFd> fds = {});
  void SendNext();
  void OnReadable();
  void Take(wire::Frame frame);
  void Lose(const absl::Status& why);

  const Options options_;
  std::optional<wire::SessionClient> client_;
  base::EventLoop::WatchId watch_ = 0;
  base::EventLoop::TimerId patience_timer_ = 0;
  base::EventLoop::TimerId timer_ = 0;  // the next attempt, or question
  std::deque<Request> requests_;        // the first is on its way
  uint32_t asked_ = 0;                  // its number, 0: none is on its way
  base::Nanoseconds delay_ = 0;         // before the next attempt
  uint32_t cores_ = 0;
  bool up_ = false;
  bool lost_ = false;  // and the next attempt has its timer
};

// OK, or why no work can be given to a daemon that says this of itself.
absl::Status HealthOf(const wire::Report& status);

}  // namespace rknnd::k8s

#endif  // K8S_DAEMON_LINK_H_
