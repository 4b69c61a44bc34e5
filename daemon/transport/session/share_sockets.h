// Share sockets beside session.sock: listening sockets that an operator's
// program made and handed over (kOpenShareSocket on admin.sock), each with a
// share of the NPU for all who come in there. rknnd-k8s opens one for each pod.
// Who may reach such a socket is decided by where its maker put it; the daemon
// only serves it, as long as the maker's connection lasts, and never trusts who
// comes in.

#ifndef DAEMON_TRANSPORT_SESSION_SHARE_SOCKETS_H_
#define DAEMON_TRANSPORT_SESSION_SHARE_SOCKETS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/session/reply.h"
#include "proto/wire/frame.h"

namespace rknnd::transport {

// Who serves them: the server. Thread: loop.
class ShareSocketOwner {
 public:
  virtual ~ShareSocketOwner() = default;
  // Serves `listener` from now on, in place of a share socket of the same name.
  // Returns a number for StopShareSocket, never used again.
  virtual absl::StatusOr<uint64_t> OpenShareSocket(
      base::UniqueFd listener,
      std::shared_ptr<const core::Allocation> allocation) = 0;
  // Nobody comes in any more; who is in stays. A share socket that is gone is
  // no error.
  virtual void StopShareSocket(uint64_t share_socket) = 0;
  // Shuts the share socket of this name, and disconnects all who ever came in
  // by one.
  virtual void CloseShareSocket(const std::string& name) = 0;
};

// kOpenShareSocket and kCloseShareSocket of one connection, and the share
// sockets it opened: they are shut when it ends. Part of a session's Requests.
// Thread: loop.
class ShareSocketRequests {
 public:
  // Each is an fd of this process.
  static constexpr size_t kMost = 256;

  // `owner`: outlives it; null where there are none to be had.
  explicit ShareSocketRequests(ShareSocketOwner* owner) : owner_(owner) {}
  ~ShareSocketRequests();
  ShareSocketRequests(const ShareSocketRequests&) = delete;
  ShareSocketRequests& operator=(const ShareSocketRequests&) = delete;

  Reply Open(wire::Frame request);
  Reply Close(const wire::Frame& request);

 private:
  struct Opened {
    std::string name;
    uint64_t number = 0;
  };

  ShareSocketOwner* const owner_;
  std::vector<Opened> opened_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_SHARE_SOCKETS_H_
