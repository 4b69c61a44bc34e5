// Doors beside session.sock: listening sockets that an operator's program made
// and handed over (kOpenDoor on admin.sock), each with a share of the NPU for
// all who come in there. rknnd-k8s opens one for each pod. Who may reach such a
// socket is decided by where its maker put it; the daemon only serves it, as
// long as the maker's connection lasts, and never trusts who comes in.

#ifndef DAEMON_TRANSPORT_SESSION_DOORS_H_
#define DAEMON_TRANSPORT_SESSION_DOORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/types.h"
#include "daemon/transport/session/reply.h"
#include "proto/wire/frame.h"

namespace rknnd::transport {

// Who serves them: the server. Thread: loop.
class DoorKeeper {
 public:
  virtual ~DoorKeeper() = default;
  // Serves `listener` from now on, in place of a door of the same name. Returns
  // a number for ShutDoor, never used again.
  virtual absl::StatusOr<uint64_t> OpenDoor(
      base::UniqueFd listener,
      std::shared_ptr<const core::Allocation> allocation) = 0;
  // Nobody comes in any more; who is in stays. A door that is gone is no error.
  virtual void ShutDoor(uint64_t door) = 0;
  // Shuts the door of this name, and disconnects all who ever came in by one.
  virtual void CloseDoor(const std::string& name) = 0;
};

// kOpenDoor and kCloseDoor of one connection, and the doors it opened: they are
// shut when it ends. Part of a session's Requests. Thread: loop.
class DoorRequests {
 public:
  // Each is an fd of this process.
  static constexpr size_t kMostDoors = 256;

  // `keeper`: outlives it; null where there are none to be had.
  explicit DoorRequests(DoorKeeper* keeper) : keeper_(keeper) {}
  ~DoorRequests();
  DoorRequests(const DoorRequests&) = delete;
  DoorRequests& operator=(const DoorRequests&) = delete;

  Reply Open(wire::Frame request);
  Reply Close(const wire::Frame& request);

 private:
  struct Opened {
    std::string name;
    uint64_t number = 0;
  };

  DoorKeeper* const keeper_;
  std::vector<Opened> opened_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_DOORS_H_
