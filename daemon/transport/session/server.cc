// See the header. Whoever may open the socket's file may connect, as often as
// it likes.

#include "daemon/transport/session/server.h"

#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/socket.h"
#include "base/status/status.h"

namespace rknnd::transport {
namespace {

// After a failed accept (no fds left): the listener stays readable, so that
// trying again at once would only burn time.
constexpr base::Nanoseconds kAcceptPause = 100 * base::kMillisecond;

}  // namespace

absl::StatusOr<base::UniqueFd> ListenAt(const std::string& path,
                                        unsigned int mode) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
      return base::ToStatus(
          base::ErrnoError(errno, absl::StrCat("mkdir '", folder, "'")));
    }
  }
  return base::ToStatusOr(base::ListenUnix(path, mode));
}

SessionServer::SessionServer(const Environment& environment,
                             const ServerLimits& limits)
    : notices_(user_threads_, environment.loop, environment.failures),
      environment_([&] {
        Environment with_sockets = environment;
        with_sockets.share_sockets = this;
        with_sockets.user_threads = user_threads_.get();
        with_sockets.notices = &notices_;
        with_sockets.paces = &paces_;
        return with_sockets;
      }()),
      limits_(limits) {}

SessionServer::~SessionServer() {
  empty_ = nullptr;
  StopListening();
  CloseAll(absl::CancelledError("the daemon stops"));
}

absl::Status SessionServer::Serve(base::UniqueFd listener, bool admin) {
  return Add({std::move(listener), admin, nullptr, 0, 0}).status();
}

absl::StatusOr<SessionServer::ListenerId> SessionServer::Add(
    Listener listener) {
  user_threads_->Start();
  const ListenerId id = ++last_listener_;
  listeners_.emplace(id, std::move(listener));
  const absl::Status watched = Watch(id);
  if (!watched.ok()) {
    listeners_.erase(id);
    return watched;
  }
  return id;
}

void SessionServer::Remove(ListenerId listener) {
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return;
  if (found->second.watch != 0) {
    environment_.loop->Unwatch(found->second.watch);
  }
  if (found->second.resume != 0) {
    environment_.loop->CancelTimer(found->second.resume);
  }
  listeners_.erase(found);
}

absl::Status SessionServer::Watch(ListenerId listener) {
  Listener& watched = listeners_.at(listener);
  RKNND_ASSIGN_OR_RETURN(
      watched.watch, base::ToStatusOr(environment_.loop->Watch(
                         watched.fd.get(), EPOLLIN, [this, listener](uint32_t) {
                           AcceptFrom(listener);
                         })));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SessionServer::OpenShareSocket(
    base::UniqueFd listener,
    std::shared_ptr<const core::Allocation> allocation) {
  if (stopped_) {
    return absl::UnavailableError(
        "the daemon stops and opens no share sockets");
  }
  // The new one first: the old one stays where it cannot be had.
  const std::string name = allocation->name;
  RKNND_ASSIGN_OR_RETURN(
      const ListenerId added,
      Add({std::move(listener), false, std::move(allocation), 0, 0}));
  for (const ListenerId id : ShareSocketsNamed(name)) {
    if (id != added) Remove(id);
  }
  return added;
}

std::vector<SessionServer::ListenerId> SessionServer::ShareSocketsNamed(
    const std::string& name) const {
  std::vector<ListenerId> share_sockets;
  for (const auto& [id, listener] : listeners_) {
    if (listener.allocation != nullptr && listener.allocation->name == name) {
      share_sockets.push_back(id);
    }
  }
  return share_sockets;
}

void SessionServer::StopShareSocket(uint64_t share_socket) {
  Remove(share_socket);
}

void SessionServer::CloseShareSocket(const std::string& name) {
  for (const ListenerId id : ShareSocketsNamed(name)) Remove(id);
  // Held: closing takes them out of the map.
  std::vector<std::shared_ptr<Connection>> inside;
  for (const auto& [key, held] : connections_) {
    const auto& allocation = key->peer().allocation;
    if (allocation != nullptr && allocation->name == name) {
      inside.push_back(held.connection);
    }
  }
  for (const std::shared_ptr<Connection>& connection : inside) {
    connection->Close(absl::PermissionDeniedError(absl::StrCat(
        "share '", name, "' of the NPU was taken back: its pod has ended")));
  }
}

void SessionServer::AcceptFrom(ListenerId listener) {
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return;
  if (!found->second.admin) {
    const base::Nanoseconds wait = accepts_.Take(environment_.loop->Now());
    if (wait > 0) return Pause(listener, wait);
  }
  auto accepted = base::Accept(found->second.fd.get());
  absl::Status status;
  if (!accepted.ok()) {
    status = base::ToStatus(accepted.error());
  } else {
    if (!accepted->valid()) return;
    // What one that is turned away had sent goes with it.
    std::vector<base::UniqueFd> left;
    {
      const ClosesElsewhere elsewhere(&left);
      status = Admit(*std::move(accepted), found->second.admin,
                     found->second.allocation);
    }
    user_threads_->Close("turned away", std::move(left));
  }
  if (status.ok()) return;
  environment_.failures->Write({}, 0, "accept", status);
  if (accepted.ok()) return;
  for (const auto& [id, paused] : listeners_) Pause(id, kAcceptPause);
}

void SessionServer::Pause(ListenerId listener, base::Nanoseconds delay) {
  Listener& paused = listeners_.at(listener);
  if (paused.watch != 0) environment_.loop->Unwatch(paused.watch);
  paused.watch = 0;
  if (paused.resume != 0) return;
  paused.resume = environment_.loop->RunAfter(delay, [this, listener] {
    listeners_.at(listener).resume = 0;
    const absl::Status resumed = Watch(listener);
    if (!resumed.ok()) environment_.failures->Write({}, 0, "accept", resumed);
  });
}

absl::Status SessionServer::Adopt(base::UniqueFd socket, bool admin) {
  return Admit(std::move(socket), admin, nullptr);
}

void SessionServer::MakeRoom(const core::Allocation* allocation) {
  const bool full =
      connections_.size() - sessions_ >= limits_.pending_connections;
  if (!full && allocation == nullptr) return;
  struct Group {
    size_t pending = 0;
    uint64_t oldest = 0;
    std::shared_ptr<Connection> connection;
  };
  // By share socket, or by user.
  std::map<std::pair<std::string, uint32_t>, Group> groups;
  for (const auto& [key, held] : connections_) {
    if (key->state() != Connection::State::kHello) continue;
    const core::SessionPeer& peer = key->peer();
    Group& group = groups[peer.allocation != nullptr
                              ? std::pair(peer.allocation->name, uint32_t{0})
                              : std::pair(std::string(), peer.uid)];
    if (++group.pending > 1 && held.order > group.oldest) continue;
    group.oldest = held.order;
    group.connection = held.connection;
  }
  if (allocation != nullptr) {
    const auto own = groups.find({allocation->name, 0});
    if (own != groups.end() &&
        own->second.pending >= limits_.pending_of_socket) {
      return own->second.connection->Close(absl::ResourceExhaustedError(
          absl::StrCat(own->second.pending, " connections to the socket of '",
                       allocation->name,
                       "' have not said Hello: limit "
                       "'pending_of_socket' is ",
                       limits_.pending_of_socket)));
    }
  }
  if (!full) return;
  const auto most = std::max_element(
      groups.begin(), groups.end(), [](const auto& a, const auto& b) {
        if (a.second.pending != b.second.pending) {
          return a.second.pending < b.second.pending;
        }
        return a.second.oldest > b.second.oldest;
      });
  if (most == groups.end()) return;
  most->second.connection->Close(absl::ResourceExhaustedError(absl::StrCat(
      "limit 'pending_connections' is ", limits_.pending_connections,
      ": so many connections have not said Hello")));
}

absl::Status SessionServer::Admit(
    base::UniqueFd socket, bool admin,
    std::shared_ptr<const core::Allocation> allocation) {
  RKNND_ASSIGN_OR_RETURN(
      const base::PeerCredentials credentials,
      base::ToStatusOr(base::GetPeerCredentials(socket.get())));
  core::SessionPeer peer;
  peer.pid = credentials.pid;
  peer.uid = credentials.uid;
  RKNND_ASSIGN_OR_RETURN(const std::vector<gid_t> groups,
                         base::ToStatusOr(base::GetPeerGroups(socket.get())));
  peer.groups.push_back(credentials.gid);
  peer.groups.insert(peer.groups.end(), groups.begin(), groups.end());
  peer.admin = admin;
  peer.allocation = std::move(allocation);
  base::UniqueFd process;
  // Our own process needs no watching (target `local:`).
  if (credentials.pid != getpid()) {
    auto pidfd = base::GetPeerPidFd(socket.get());
    if (pidfd.ok()) {
      process = *std::move(pidfd);
    } else if (pidfd.error().code == base::Code::kNotFound) {
      return absl::CancelledError("the client ended before it was served");
    }
    // Else a kernel without pidfds, or a client of another name space: the end
    // of file must do.
  }
  MakeRoom(peer.allocation.get());
  auto connection = std::make_shared<Connection>(
      environment_, this, std::move(socket), std::move(peer));
  connections_.emplace(connection.get(), Held{connection, ++last_order_});
  const absl::Status started = connection->Start(std::move(process));
  if (!started.ok()) connection->Close(started);
  return absl::OkStatus();
}

void SessionServer::StopListening() {
  stopped_ = true;
  while (!listeners_.empty()) Remove(listeners_.begin()->first);
}

void SessionServer::CloseAll(const absl::Status& reason) {
  while (!connections_.empty()) {
    // Held: closing takes it out of the map.
    const std::shared_ptr<Connection> connection =
        connections_.begin()->second.connection;
    connection->Close(reason);
  }
}

void SessionServer::CloseSession(core::SessionId session,
                                 const absl::Status& reason) {
  for (const auto& [key, held] : connections_) {
    if (key->state() != Connection::State::kOpen || key->session() != session) {
      continue;
    }
    const std::shared_ptr<Connection> connection = held.connection;
    connection->Close(reason);
    return;
  }
}

void SessionServer::OnOpened(Connection* /*connection*/) { ++sessions_; }

void SessionServer::OnClosed(Connection* connection) {
  if (connection->session() != 0) --sessions_;
  connections_.erase(connection);
  if (connections_.empty() && empty_) empty_();
}

}  // namespace rknnd::transport
