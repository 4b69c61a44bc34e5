// Who a gRPC peer is: by the socket it came in by, the certificate it showed,
// or the token it sent ("authorization: Bearer TOKEN"). Asked by the endpoints
// once a call, before any byte of a message is looked at.

#ifndef DAEMON_TRANSPORT_GRPC_AUTHENTICATOR_H_
#define DAEMON_TRANSPORT_GRPC_AUTHENTICATOR_H_

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/grpc/options.h"
#include "daemon/transport/grpc/peer_table.h"
#include "daemon/transport/grpc/tokens.h"
#include "daemon/transport/session/event_log.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace rknnd::transport {

struct GrpcPeer {
  std::string address;  // of this connection: "ipv4:192.0.2.7:40112", "unix:"
  std::string name;     // that it proved: of its token or certificate; or empty
  GrpcRole role = GrpcRole::kNone;
  // Whom its requests are charged to: the name that it proved, else its host,
  // whatever the number of its connections.
  std::string account;

  // For logs and reports: "192.0.2.7:40112 (ci)".
  [[nodiscard]] std::string Describe() const;
};

// What a call shows of its sender.
struct GrpcCredentials {
  std::string address;
  std::vector<std::string> certificate;  // names of one that was verified
  // The call's "authorization" header.
  std::optional<std::string> authorization;
};

// Thread: any.
class GrpcAuthenticator {
 public:
  // Reads the tokens; a file that others can read is refused. All outlive it.
  // `peers`: whose gRPC's connections are; null: gRPC accepts them itself.
  static absl::StatusOr<std::unique_ptr<GrpcAuthenticator>> Create(
      const GrpcOptions& options, FailureLog* failures,
      const base::Clock* clock, const PeerTable* peers = nullptr);

  // UNAUTHENTICATED: no token, or a wrong one.
  [[nodiscard]] absl::StatusOr<GrpcPeer> Admit(
      const grpc::ServerContextBase& context) const;
  [[nodiscard]] absl::StatusOr<GrpcPeer> Admit(
      const GrpcCredentials& shown) const;

 private:
  GrpcAuthenticator(const GrpcOptions& options, FailureLog* failures,
                    const base::Clock* clock, const PeerTable* peers);

  absl::Status ReadTokens() RKNND_EXCLUDES(mutex_);
  // The tokens, read again when their file has changed.
  [[nodiscard]] std::shared_ptr<const TokenList> tokens() const
      RKNND_EXCLUDES(mutex_);
  [[nodiscard]] absl::Status Refuse(const std::string& address,
                                    const std::string& why) const;

  const bool insecure_;
  const std::string path_;  // of the tokens; empty: there are none
  const std::vector<std::string> operators_;
  FailureLog* const failures_;
  const base::Clock* const clock_;
  const PeerTable* const peers_;

  mutable base::Mutex mutex_;
  mutable std::shared_ptr<const TokenList> tokens_ RKNND_GUARDED_BY(mutex_);
  mutable struct stat read_ RKNND_GUARDED_BY(mutex_) {};  // of what was read
  mutable base::Nanoseconds looked_ RKNND_GUARDED_BY(mutex_) = 0;
};

// Whose a session of the peer's is: where nobody is known by a name of this
// machine, what a peer may do, it may do as nobody.
core::SessionPeer ToSessionPeer(const GrpcPeer& peer);

// PERMISSION_DENIED, and how to become one, for a peer that is no operator.
// `what`: what it asked for, as in "a reset".
absl::Status RequireOperator(const GrpcPeer& peer, const std::string& what);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_AUTHENTICATOR_H_
