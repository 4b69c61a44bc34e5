// Sockets, eventfds and the receive rules. Called by both ends of the session
// socket, on any thread. The peer is not trusted: whatever it sends, no fd is
// leaked and nothing is cut off silently.

#include "base/posix/socket.h"

#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/posix/hot_path.h"
#include "base/posix/send_only.h"

namespace rknnd::base {
namespace {

// Of Linux 6.5; Debian 12's headers are older.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

// Without the final zero, which bind needs.
constexpr size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;
// Connections waiting to be accepted: a whole machine's clients coming back
// after a restart of the daemon.
constexpr int kBacklog = 512;
// How long connect waits where the backlog is full.
constexpr timeval kConnectTimeout = {1, 0};

std::string Quoted(const std::string& path) { return "'" + path + "'"; }

Expected<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() > kMaxSocketPath ||
      path.find('\0') != std::string::npos) {
    return Error{Code::kInvalidArgument,
                 "socket path " + Quoted(path) + " has " +
                     std::to_string(path.size()) + " bytes: 1 to " +
                     std::to_string(kMaxSocketPath) +
                     " are possible; choose a shorter one"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// For one who may not: whom the socket's owner lets in. Nothing where a folder
// on the way is closed, or no group is named.
std::string WhoMayConnect(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || status.st_gid == 0) return "";
  std::array<char, 4096> room{};
  group found{};
  group* result = nullptr;
  const bool named = getgrgid_r(status.st_gid, &found, room.data(), room.size(),
                                &result) == 0 &&
                     result != nullptr;
  const std::string name =
      named ? result->gr_name : std::to_string(status.st_gid);
  return "; its owner lets group " + name + " in: usermod -aG " + name +
         " USER, then log in again (this is user " + std::to_string(geteuid()) +
         ")";
}

Expected<UniqueFd> MakeSocket(int flags, int family = AF_UNIX,
                              int type = SOCK_SEQPACKET) {
  UniqueFd fd(socket(family, type | SOCK_CLOEXEC | flags, 0));
  if (!fd.valid()) return ErrnoError(errno, "make a socket");
  return fd;
}

int ConnectTo(int fd, const sockaddr_un& address) {
  int result = 0;
  do {
    result = connect(fd, reinterpret_cast<const sockaddr*>(&address),
                     sizeof(address));
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

// Whether something stands at `path` that ListenUnix must not replace, or
// nothing does, or a socket that nobody answers on.
enum class Occupant { kNone, kStale, kLive };

Expected<Occupant> WhoIsAt(const std::string& path,
                           const sockaddr_un& address) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return Occupant::kNone;
    return ErrnoError(errno, "look at " + Quoted(path));
  }
  if (!S_ISSOCK(status.st_mode)) {
    return Error{Code::kAlreadyExists,
                 Quoted(path) +
                     " exists and is no socket: move it away or choose "
                     "another path"};
  }
  Expected<UniqueFd> probe = MakeSocket(SOCK_NONBLOCK);
  if (!probe.ok()) return std::move(probe).error();
  switch (ConnectTo(probe->get(), address)) {
    case ECONNREFUSED:
      return Occupant::kStale;
    case ENOENT:
      return Occupant::kNone;
    default:
      return Occupant::kLive;
  }
}

Error SomebodyListens(const std::string& path) {
  return {Code::kAlreadyExists,
          "somebody listens on " + Quoted(path) +
              " already: stop that process or choose another path"};
}

// Removes a name unless told that it is gone.
class TemporaryName {
 public:
  explicit TemporaryName(std::string path) : path_(std::move(path)) {}
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  void Forget() { path_.clear(); }

 private:
  std::string path_;
};

// A name nobody else uses, in the directory of `path`.
std::string TemporaryNameFor(const std::string& path) {
  uint32_t random = 0;
  if (getrandom(&random, sizeof(random), GRND_NONBLOCK) !=
      static_cast<ssize_t>(sizeof(random))) {
    random = static_cast<uint32_t>(getpid());
  }
  std::array<char, 16> name = {};
  snprintf(name.data(), name.size(), ".%08x", random);
  const size_t slash = path.rfind('/');
  return path.substr(0, slash == std::string::npos ? 0 : slash + 1) +
         name.data();
}

void WaitFor(int socket, short events) {  // NOLINT(google-runtime-int): poll's
  pollfd entry = {socket, events, 0};
  poll(&entry, 1, -1);
}

// Room for the fds of one message and not one more: the kernel then tells of
// a surplus, and closes it.
union ControlBuffer {
  cmsghdr align;
  std::array<char, CMSG_SPACE(kMaxFdsPerMessage * sizeof(int))> bytes;
};

}  // namespace

Expected<UniqueFd> ListenUnix(const std::string& path, mode_t mode,
                              UnixKind kind) {
  const Expected<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.error();
  const std::string temporary = TemporaryNameFor(path);
  const Expected<sockaddr_un> temporary_address = AddressOf(temporary);
  if (!temporary_address.ok()) return temporary_address.error();

  const Expected<Occupant> occupant = WhoIsAt(path, *address);
  if (!occupant.ok()) return occupant.error();
  if (*occupant == Occupant::kLive) return SomebodyListens(path);

  Expected<UniqueFd> listener =
      MakeSocket(SOCK_NONBLOCK, AF_UNIX,
                 kind == UnixKind::kStream ? SOCK_STREAM : SOCK_SEQPACKET);
  if (!listener.ok()) return listener;
  if (bind(listener->get(),
           reinterpret_cast<const sockaddr*>(&*temporary_address),
           sizeof(*temporary_address)) != 0) {
    return ErrnoError(errno, "bind a socket in the folder of " + Quoted(path));
  }
  TemporaryName name(temporary);
  if (chmod(temporary.c_str(), mode) != 0) {
    return ErrnoError(errno, "set the mode of " + Quoted(path));
  }
  if (listen(listener->get(), kBacklog) != 0) {
    return ErrnoError(errno, "listen on " + Quoted(path));
  }
  // Where nothing stood, another daemon may have started meanwhile.
  const unsigned flags = *occupant == Occupant::kNone ? RENAME_NOREPLACE : 0;
  int result =
      renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), flags);
  if (result != 0 && (errno == EINVAL || errno == ENOSYS)) {
    result = rename(temporary.c_str(), path.c_str());
  }
  if (result != 0) {
    if (errno == EEXIST) return SomebodyListens(path);
    return ErrnoError(errno, "give a socket the name " + Quoted(path));
  }
  name.Forget();
  return listener;
}

Expected<UniqueFd> ListenTcp(const sockaddr* address, socklen_t size,
                             unsigned dead_after, const std::string& name) {
  Expected<UniqueFd> listener =
      MakeSocket(SOCK_NONBLOCK, address->sa_family, SOCK_STREAM);
  if (!listener.ok()) return listener;
  const int fd = listener->get();
  // Connections inherit the options; none of them is worth failing for.
  const int on = 1;
  const int off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_after,
             sizeof(dead_after));
  if (address->sa_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(fd, address, size) != 0 || listen(fd, kBacklog) != 0) {
    return ErrnoError(errno, "listen on " + Quoted(name));
  }
  return listener;
}

Expected<UniqueFd> ConnectUnix(const std::string& path) {
  const Expected<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.error();
  Expected<UniqueFd> connection = MakeSocket(0);
  if (!connection.ok()) return connection;
  const int fd = connection->get();
  // For a Unix socket the send time-out is that of connect too.
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kConnectTimeout,
             sizeof(kConnectTimeout));
  if (const int error = ConnectTo(fd, *address); error != 0) {
    Error reason = ErrnoError(error, "connect to " + Quoted(path));
    // A socket of another type is somebody else's.
    if (error == EPROTOTYPE) {
      reason.message = Quoted(path) + " is the socket of another program";
    }
    if (error == EACCES) reason.message += WhoMayConnect(path);
    return reason;
  }
  constexpr timeval kNone = {0, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kNone, sizeof(kNone));
  return connection;
}

Expected<UniqueFd> Accept(int listener) {
  for (;;) {
    UniqueFd connection(
        accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.valid()) return connection;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return UniqueFd();
    return ErrnoError(errno, "accept a connection");
  }
}

Expected<std::pair<UniqueFd, UniqueFd>> SeqpacketPair() {
  std::array<int, 2> ends = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return ErrnoError(errno, "make a socket pair");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Expected<std::pair<UniqueFd, UniqueFd>> BytePair() {
  std::array<int, 2> ends = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                 ends.data()) != 0) {
    return ErrnoError(errno, "make a socket pair");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Expected<std::pair<UniqueFd, UniqueFd>> NamedPair(const std::string& name) {
  auto pair = BytePair();
  if (!pair.ok()) return pair;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof(address.sun_path)) {
    return Error{Code::kInvalidArgument,
                 "'" + name + "' is no name of an abstract socket"};
  }
  // Abstract ones begin with a zero, and end with their length.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(pair->first.get(), reinterpret_cast<const sockaddr*>(&address),
           size) != 0) {
    return ErrnoError(errno, "name a socket '" + name + "'");
  }
  return pair;
}

Expected<PeerCredentials> GetPeerCredentials(int socket) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return ErrnoError(errno, "ask for a peer's credentials");
  }
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

Expected<std::vector<gid_t>> GetPeerGroups(int socket) {
  // Few have more; who has is told how many.
  std::vector<gid_t> groups(64);
  for (;;) {
    auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const int asked =
        getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
    const size_t count = size / sizeof(gid_t);
    if (asked == 0) {
      groups.resize(count);
      return groups;
    }
    if (errno == ENOPROTOOPT) return std::vector<gid_t>();
    // They are the peer's at its connect: the second answer fits.
    if (errno != ERANGE || count <= groups.size()) {
      return ErrnoError(errno, "ask for a peer's groups");
    }
    groups.resize(count);
  }
}

Expected<UniqueFd> OpenPidFd(pid_t pid) {
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd >= 0) return UniqueFd(fd);
  if (errno == ESRCH) {
    return Error{Code::kNotFound,
                 "process " + std::to_string(pid) + " has ended"};
  }
  if (errno == ENOSYS || errno == EINVAL) {
    return Error{Code::kUnimplemented,
                 "process " + std::to_string(pid) +
                     " cannot be watched: this kernel has no pidfd_open, or "
                     "the process is in no name space of ours"};
  }
  return ErrnoError(errno, "watch a process");
}

Expected<UniqueFd> GetPeerPidFd(int socket) {
  int fd = -1;
  socklen_t size = sizeof(fd);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) {
    return UniqueFd(fd);
  }
  if (errno != ENOPROTOOPT) return ErrnoError(errno, "ask for a peer's pidfd");
  Expected<PeerCredentials> peer = GetPeerCredentials(socket);
  if (!peer.ok()) return std::move(peer).error();
  return OpenPidFd(peer->pid);
}

Expected<void> SendMessage(int socket, std::span<const std::byte> bytes,
                           std::span<const int> fds, Block block) {
  if (bytes.empty()) {
    return Error{Code::kInvalidArgument,
                 "an empty message would look like the end of the connection"};
  }
  if (fds.size() > kMaxFdsPerMessage) {
    return Error{Code::kInvalidArgument,
                 std::to_string(fds.size()) + " fds in one message: at most " +
                     std::to_string(kMaxFdsPerMessage) + " are possible"};
  }
  iovec payload = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  ControlBuffer control = {};
  if (!fds.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  const int flags = MSG_NOSIGNAL | (block == Block::kNo ? MSG_DONTWAIT : 0);
  for (;;) {
    if (sendmsg(socket, &message, flags) >= 0) return {};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (block == Block::kYes) {
        WaitFor(socket, POLLOUT);
        continue;
      }
      return Error{Code::kResourceExhausted,
                   "the peer does not read: its queue is full"};
    }
    if (errno == ENOTCONN) {
      return Error{Code::kUnavailable, "send a message: the peer is gone"};
    }
    return ErrnoError(
        errno, "send a message of " + std::to_string(bytes.size()) + " bytes");
  }
}

Expected<ReceivedMessage> ReceiveMessage(int socket,
                                         std::span<std::byte> buffer,
                                         Block block) {
  iovec payload = {buffer.data(), buffer.size()};
  ControlBuffer control;
  msghdr message;
  ssize_t size = -1;
  bool reset_seen = false;
  for (;;) {
    message = {};
    message.msg_iov = &payload;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    size = recvmsg(socket, &message,
                   MSG_CMSG_CLOEXEC | (block == Block::kNo ? MSG_DONTWAIT : 0));
    if (size >= 0) break;
    if (errno == EINTR) continue;
    if (errno == ECONNRESET && !reset_seen) {
      // The peer closed without reading all of ours. Said once, ahead of what
      // it had sent before: that is still to come, then the end.
      reset_seen = true;
      continue;
    }
    if (errno == ECONNRESET) {
      ReceivedMessage result;
      result.eof = true;
      return result;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (block == Block::kYes) {
        WaitFor(socket, POLLIN);
        continue;
      }
      ReceivedMessage result;
      result.would_block = true;
      return result;
    }
    return ErrnoError(errno, "receive a message");
  }

  // Owned first, judged afterwards.
  std::array<UniqueFd, kMaxFdsPerMessage> fds;
  size_t count = 0;
  bool surplus = false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < here; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(header) + i * sizeof(int), sizeof(number));
      UniqueFd fd(number);
      if (count == fds.size()) {
        surplus = true;
        continue;
      }
      fds[count++] = std::move(fd);
    }
  }
  if (surplus || (message.msg_flags & MSG_CTRUNC) != 0) {
    return Error{Code::kDataLoss,
                 "fds of a message were lost: more than " +
                     std::to_string(kMaxFdsPerMessage) +
                     " in it, or this process has no number free (ulimit -n)"};
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return Error{Code::kDataLoss, "a message is longer than the " +
                                      std::to_string(buffer.size()) +
                                      " bytes that fit"};
  }
  ReceivedMessage result;
  // An empty datagram, which SendMessage never sends, ends the connection too.
  result.eof = size == 0;
  if (result.eof) return result;
  result.size = static_cast<size_t>(size);
  result.fds.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    result.fds.push_back(std::move(fds[i]));
  }
  return result;
}

Expected<UniqueFd> MakeDatagramSender() {
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoError(errno, "make a datagram socket");
  return fd;
}

Expected<UniqueFd> KnockTcp(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(),
                                    &hints, &found);
      error != 0) {
    return Error{Code::kInvalidArgument,
                 Quoted(host) + " is no address: " + gai_strerror(error)};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> address(
      found, &freeaddrinfo);
  UniqueFd fd(socket(address->ai_family,
                     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoError(errno, "make a socket");
  // What becomes of it is of no interest.
  static_cast<void>(connect(fd.get(), address->ai_addr, address->ai_addrlen) ==
                    0);
  return fd;
}

Expected<UniqueFd> MakeEventFd() {
  UniqueFd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return ErrnoError(errno, "make an eventfd");
  return fd;
}

RKNND_HOT_PATH void SignalEventFd(int fd) {
  constexpr uint64_t kOne = 1;
  while (write(fd, &kOne, sizeof(kOne)) < 0 && errno == EINTR) {
  }
}

}  // namespace rknnd::base
