// See the header. Whoever may open the socket's file may connect, as often as
// it likes.

#include "daemon/transport/session/server.h"

#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/socket.h"
#include "base/status/status.h"
#include "daemon/transport/session/peer_home.h"

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
    : environment_(environment), limits_(limits) {}

SessionServer::~SessionServer() {
  empty_ = nullptr;
  StopListening();
  CloseAll(absl::CancelledError("the daemon stops"));
}

absl::Status SessionServer::Serve(base::UniqueFd listener, bool admin) {
  listeners_.push_back({std::move(listener), admin, 0});
  const absl::Status watched = Watch(listeners_.size() - 1);
  if (!watched.ok()) listeners_.pop_back();
  return watched;
}

absl::Status SessionServer::Watch(size_t listener) {
  RKNND_ASSIGN_OR_RETURN(
      listeners_[listener].watch,
      base::ToStatusOr(environment_.loop->Watch(
          listeners_[listener].fd.get(), EPOLLIN,
          [this, listener](uint32_t) { AcceptFrom(listener); })));
  return absl::OkStatus();
}

void SessionServer::AcceptFrom(size_t listener) {
  auto accepted = base::Accept(listeners_[listener].fd.get());
  absl::Status status;
  if (!accepted.ok()) {
    status = base::ToStatus(accepted.error());
  } else {
    if (!accepted->valid()) return;
    status = Adopt(*std::move(accepted), listeners_[listener].admin);
  }
  if (status.ok()) return;
  environment_.failures->Write({}, 0, "accept", status);
  if (accepted.ok()) return;
  for (Listener& paused : listeners_) {
    if (paused.watch != 0) environment_.loop->Unwatch(paused.watch);
    paused.watch = 0;
  }
  if (resume_timer_ != 0) return;
  resume_timer_ = environment_.loop->RunAfter(kAcceptPause, [this] {
    resume_timer_ = 0;
    for (size_t i = 0; i < listeners_.size(); ++i) {
      const absl::Status resumed = Watch(i);
      if (!resumed.ok()) environment_.failures->Write({}, 0, "accept", resumed);
    }
  });
}

absl::Status SessionServer::Adopt(base::UniqueFd socket, bool admin) {
  if (connections_.size() - sessions_ >= limits_.strangers) {
    return absl::ResourceExhaustedError(
        absl::StrCat("limit 'strangers' is ", limits_.strangers,
                     ": so many connections have not said Hello"));
  }
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
  PeerHome home = FindPeerHome(credentials.pid);
  peer.unit = std::move(home.unit);
  peer.container = std::move(home.container);
  base::UniqueFd process;
  // Our own process needs no watching (target `local:`).
  if (credentials.pid != getpid()) {
    auto pidfd = base::GetPeerPidFd(socket.get());
    if (pidfd.ok()) {
      process = *std::move(pidfd);
    } else if (pidfd.error().code == base::Code::kNotFound) {
      return absl::CancelledError("the client ended before it was served");
    }
    // Else a kernel without pidfds of peers: the end of file must do.
  }
  auto connection = std::make_shared<Connection>(
      environment_, this, std::move(socket), std::move(peer));
  connections_.emplace(connection.get(), connection);
  const absl::Status started = connection->Start(std::move(process));
  if (!started.ok()) connection->Close(started);
  return absl::OkStatus();
}

void SessionServer::StopListening() {
  for (const Listener& listener : listeners_) {
    if (listener.watch != 0) environment_.loop->Unwatch(listener.watch);
  }
  listeners_.clear();
  if (resume_timer_ != 0) environment_.loop->CancelTimer(resume_timer_);
  resume_timer_ = 0;
}

void SessionServer::CloseAll(const absl::Status& reason) {
  while (!connections_.empty()) {
    // Held: closing takes it out of the map.
    const std::shared_ptr<Connection> connection = connections_.begin()->second;
    connection->Close(reason);
  }
}

void SessionServer::CloseSession(core::SessionId session,
                                 const absl::Status& reason) {
  for (const auto& [key, connection] : connections_) {
    if (connection->state() != Connection::State::kOpen ||
        connection->session() != session) {
      continue;
    }
    const std::shared_ptr<Connection> held = connection;
    held->Close(reason);
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
