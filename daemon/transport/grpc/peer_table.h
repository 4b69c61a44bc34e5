// Who is behind the connections that the relay gives to gRPC. gRPC sees a
// socket of this process, by a name that was never used before; here is whose
// connection that stands for. A name that is not here is nobody's.

#ifndef DAEMON_TRANSPORT_GRPC_PEER_TABLE_H_
#define DAEMON_TRANSPORT_GRPC_PEER_TABLE_H_

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/posix/mutex.h"

namespace rknnd::transport {

// Of a connection, by the kernel and by TLS.
struct PeerIdentity {
  std::string address;  // "ipv4:192.0.2.7:40112", "unix:"
  // Names of a certificate that was verified: common, alternative, subject.
  std::vector<std::string> certificate;
};

// Thread: any.
class PeerTable {
 public:
  // `name`: the abstract name of the relay's socket.
  void Add(const std::string& name, PeerIdentity peer) {
    base::MutexLock lock(mutex_);
    peers_[kKind + name] = std::move(peer);
  }
  void Remove(const std::string& name) {
    base::MutexLock lock(mutex_);
    peers_.erase(kKind + name);
  }
  // `peer`: as gRPC calls it.
  [[nodiscard]] std::optional<PeerIdentity> Find(
      const std::string& peer) const {
    base::MutexLock lock(mutex_);
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return std::nullopt;
    return found->second;
  }

 private:
  // What gRPC puts before an abstract name.
  static constexpr char kKind[] = "unix-abstract:";

  mutable base::Mutex mutex_;
  std::unordered_map<std::string, PeerIdentity> peers_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_PEER_TABLE_H_
