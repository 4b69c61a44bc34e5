// Peers are anybody who reaches the address: they connect, say nothing, or come
// back at once when they are turned away.

#include "daemon/transport/grpc/relay/connections.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/socket.h"
#include "base/status/status.h"

namespace rknnd::transport {
namespace {

// After an accept that failed, for lack of descriptors as a rule.
constexpr base::Nanoseconds kAcceptPause = 100 * base::kMillisecond;

bool IsThisMachine(const sockaddr_storage& peer) {
  if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) return true;
  GrpcAddress address;
  address.socket = peer;
  return address.loopback();
}

// The address without its port; empty: of this machine. An IPv6 host has a
// whole /64 to itself.
std::string HostOf(const sockaddr_storage& peer) {
  if (IsThisMachine(peer)) return "";
  if (peer.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
    const size_t bytes = IN6_IS_ADDR_V4MAPPED(&v6) ? 16 : 8;
    return std::string(reinterpret_cast<const char*>(v6.s6_addr), bytes);
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer).sin_addr;
  return std::string(reinterpret_cast<const char*>(&v4), sizeof v4);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConnectionTable::Place>> ConnectionTable::Add(
    const sockaddr_storage& peer) {
  const std::string host = HostOf(peer);
  if (size_ >= most_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("gRPC peer '", NameOf(peer), "' turned away: all ", most_,
                     " connections are taken (grpc.connections)"));
  }
  const uint32_t most_of_host = std::max<uint32_t>(1, most_ / 2);
  uint32_t& of_host = of_host_[host];
  if (!host.empty() && of_host >= most_of_host) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "gRPC peer '", NameOf(peer), "' turned away: one host may have ",
        most_of_host, " of the ", most_, " connections (grpc.connections)"));
  }
  ++of_host;
  ++size_;
  return std::make_unique<Place>(this, host);
}

void ConnectionTable::Leave(const std::string& host) {
  --size_;
  const auto found = of_host_.find(host);
  if (--found->second == 0) of_host_.erase(found);
}

ConnectionAcceptor::ConnectionAcceptor(uint32_t most, base::EventLoop* loop,
                                       FailureLog* failures, Take take)
    : loop_(loop),
      failures_(failures),
      take_(std::move(take)),
      remote_(most),
      local_(most),
      turned_away_(most, loop) {}

absl::Status ConnectionAcceptor::Serve(GrpcListener listener) {
  listeners_.push_back({std::move(listener), 0});
  return Watch(listeners_.size() - 1);
}

absl::Status ConnectionAcceptor::Watch(size_t listener) {
  RKNND_ASSIGN_OR_RETURN(
      listeners_[listener].watch,
      base::ToStatusOr(
          loop_->Watch(listeners_[listener].address.fd.get(), EPOLLIN,
                       [this, listener](uint32_t) { AcceptFrom(listener); })));
  return absl::OkStatus();
}

void ConnectionAcceptor::Stop() {
  if (resume_ != 0) loop_->CancelTimer(std::exchange(resume_, 0));
  for (Listener& listener : listeners_) {
    if (listener.watch != 0) loop_->Unwatch(listener.watch);
    const std::string& path = listener.address.path;
    if (!path.empty()) unlink(path.c_str());
  }
  listeners_.clear();
  turned_away_.Clear();
}

void ConnectionAcceptor::AcceptFrom(size_t listener) {
  const GrpcListener& address = listeners_[listener].address;
  auto accepted = base::Accept(address.fd.get());
  if (!accepted.ok()) {
    failures_->Note(absl::StrCat("gRPC at '", address.name,
                                 "': ", accepted.error().message));
    // Where descriptors are missing, these have some.
    turned_away_.Clear();
    return Pause();
  }
  if (!accepted->valid()) return;
  const bool local = !address.path.empty();
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  // One that has gone already.
  if (getpeername(accepted->get(), reinterpret_cast<sockaddr*>(&peer), &size) !=
      0) {
    return;
  }
  auto place = (local ? local_ : remote_).Add(peer);
  if (!place.ok()) {
    turned_away_.Add(*std::move(accepted));
    return failures_->Note(std::string(place.status().message()));
  }
  take_({*std::move(accepted), NameOf(peer), HostOf(peer), local,
         *std::move(place)});
}

void ConnectionAcceptor::Pause() {
  for (Listener& listener : listeners_) {
    if (listener.watch != 0) loop_->Unwatch(std::exchange(listener.watch, 0));
  }
  if (resume_ != 0) return;
  resume_ = loop_->RunAfter(kAcceptPause, [this] {
    resume_ = 0;
    for (size_t i = 0; i < listeners_.size(); ++i) {
      const absl::Status resumed = Watch(i);
      if (!resumed.ok()) failures_->Note(std::string(resumed.message()));
    }
  });
}

}  // namespace rknnd::transport
