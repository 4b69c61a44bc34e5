// Shares that containers have: each allocation is a folder with a listening
// session.sock in it, which the kubelet mounts into its container as
// /run/rknnd. The folder's name is the token: 128 random bits in a folder that
// only root may list or pass, so that whoever was not given the mount cannot
// get there. (The name alone would not do: every user of the host can read in
// /proc/PID/mountinfo what is mounted where.) What is in it is the pod's alone.
//
//   SOCKET_DIR/pods/            0700; locked by the one rknnd-k8s there may be
//     0f3c...9a/                0755, mounted read-only into the container
//       session.sock            0666: a container's uids are of its own
//       choosing
//     0f3c...9a.shares          0600: "3 7", to find it again after a restart
//
// The API tells of no end of an allocation: it has ended when one of its shares
// is given away again.

#ifndef K8S_ALLOCATIONS_H_
#define K8S_ALLOCATIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"

namespace rknnd::k8s {

struct Allocation {
  std::string name;              // of its share socket: that of its first share
  std::vector<uint32_t> shares;  // ascending, not empty
  std::string folder;            // of the host
  base::UniqueFd listener;
};

// Thread: loop.
class Allocations {
 public:
  // Takes over what an earlier life left in `socket_dir`, with new sockets in
  // the old folders: containers that run have these mounted. What is broken is
  // taken away.
  static absl::StatusOr<std::unique_ptr<Allocations>> Open(
      const std::string& socket_dir);

  // A new one. Those that had one of `shares` have ended: their folders go, and
  // `ended` gets their names. The pointer is good until it ends.
  absl::StatusOr<const Allocation*> Make(const std::vector<uint32_t>& shares,
                                         std::vector<std::string>* ended);

  [[nodiscard]] const std::map<std::string, Allocation>& all() const {
    return allocations_;
  }

 private:
  explicit Allocations(std::string folder) : folder_(std::move(folder)) {}

  absl::Status Lock();
  absl::Status Restore();
  absl::Status Take(const std::string& token);
  void Remove(const std::string& token) const;

  const std::string folder_;
  base::UniqueFd lock_;                            // folder_, while this is
  std::map<std::string, Allocation> allocations_;  // by name
};

}  // namespace rknnd::k8s

#endif  // K8S_ALLOCATIONS_H_
