// Where a client's process runs, for reports: its systemd unit and its
// container, as the kernel's control groups name them. Read once, when it
// connects. The names are of the peer's choosing as far as it may make control
// groups: shown, and nothing is decided by them.

#ifndef DAEMON_TRANSPORT_SESSION_PEER_ORIGIN_H_
#define DAEMON_TRANSPORT_SESSION_PEER_ORIGIN_H_

#include <string>
#include <string_view>

namespace rknnd::transport {

struct PeerOrigin {
  std::string unit;       // "frigate.service", or empty
  std::string container;  // the first 12 digits of its id, or empty
};

// Out of the text of /proc/PID/cgroup, of either version of control groups.
PeerOrigin ParseControlGroups(std::string_view text);

// Empty for a process of another pid namespace (0) and one that has ended.
PeerOrigin FindPeerOrigin(int pid);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_PEER_ORIGIN_H_
