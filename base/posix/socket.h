// The only place that makes sockets and eventfds and receives messages, so
// that close-on-exec and the receive rules hold everywhere.

#ifndef BASE_POSIX_SOCKET_H_
#define BASE_POSIX_SOCKET_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::base {

// At most so many fds in one message: no verb carries more than two (ring and
// doorbell), the rest is room for newer peers.
inline constexpr size_t kMaxFdsPerMessage = 8;

struct PeerCredentials {
  pid_t pid = 0;  // 0: a process of another pid namespace, which is normal
  uid_t uid = 0;
  gid_t gid = 0;
};

enum class UnixKind { kSeqpacket, kStream };

// A listener at `path`, non-blocking. `mode` and ownership are in force before
// the name appears (bound under a temporary name and renamed); a stale socket
// that nobody answers on is replaced, a live one is kAlreadyExists.
Expected<UniqueFd> ListenUnix(const std::string& path, mode_t mode,
                              UnixKind kind = UnixKind::kSeqpacket);
// A TCP listener at `address` (of `size` bytes), non-blocking. "[::]" takes
// IPv4 too. `dead_after`: a connection whose peer acknowledges nothing for so
// many milliseconds is closed by the kernel. `name`: of the address, for
// errors.
Expected<UniqueFd> ListenTcp(const sockaddr* address, socklen_t size,
                             unsigned dead_after, const std::string& name);
// A connected SOCK_SEQPACKET socket. kUnavailable when nobody listens,
// kNotFound when the path is missing, kPermissionDenied.
Expected<UniqueFd> ConnectUnix(const std::string& path);
// The next connection, non-blocking; an invalid fd when there is none.
Expected<UniqueFd> Accept(int listener);
Expected<std::pair<UniqueFd, UniqueFd>> SeqpacketPair();
// For bytes that mean no more than that something happened: non-blocking.
Expected<std::pair<UniqueFd, UniqueFd>> BytePair();
// The same, and the first end has a name that the other's getpeername tells:
// `name` among abstract ones. kAlreadyExists: it is taken.
Expected<std::pair<UniqueFd, UniqueFd>> NamedPair(const std::string& name);

Expected<PeerCredentials> GetPeerCredentials(int socket);
// The peer's supplementary groups when it connected; empty on kernels before
// 4.13, which do not tell.
Expected<std::vector<gid_t>> GetPeerGroups(int socket);
// Readable once the process has exited. kNotFound when it has already,
// kUnimplemented on kernels before 5.3, and for a process of another name space
// of pids (0).
Expected<UniqueFd> OpenPidFd(pid_t pid);
// The same of the process that connected. Before Linux 6.5 (SO_PEERPIDFD) it is
// found by its number, which another may have got if it exited in the meantime:
// then the end of file must do.
Expected<UniqueFd> GetPeerPidFd(int socket);

enum class Block { kYes, kNo };

// Sends one datagram with the fds borrowed from the caller. kUnavailable when
// the peer is gone; with Block::kNo kResourceExhausted when its queue is full.
Expected<void> SendMessage(int socket, std::span<const std::byte> bytes,
                           std::span<const int> fds, Block block);

struct ReceivedMessage {
  size_t size = 0;  // bytes written to the caller's buffer; 0 with eof
  bool eof = false;
  bool would_block = false;
  std::vector<UniqueFd> fds;
};

// Receives one datagram. The five rules: close-on-exec from birth, EINTR
// repeated, a truncated control part or datagram closes all fds it brought and
// is kDataLoss, more than kMaxFdsPerMessage likewise, and every fd is owned
// before the next statement.
Expected<ReceivedMessage> ReceiveMessage(int socket,
                                         std::span<std::byte> buffer,
                                         Block block);

// An eventfd, non-blocking, count 0.
Expected<UniqueFd> MakeEventFd();
// Adds 1. Never blocks; a full counter already says what there is to say.
void SignalEventFd(int fd);

}  // namespace rknnd::base

#endif  // BASE_POSIX_SOCKET_H_
