// Called on gRPC's threads for every call of every peer: the address is the
// kernel's and a certificate's names were verified by TLS, as the relay has
// them; all else is the peer's own claim.

#include "daemon/transport/grpc/authenticator.h"

#include <grpcpp/server_context.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::transport {
namespace {

constexpr char kHeader[] = "authorization";
constexpr char kScheme[] = "bearer ";
// So often the file is looked at: a token that was taken away is refused soon.
constexpr base::Nanoseconds kLookAgain = base::kSecond;
constexpr uint32_t kNobody = 65534;

bool IsLocal(const std::string& address) {
  return absl::StartsWith(address, "unix:");
}

// Without kind and port: "192.0.2.7", "[2001:db8::1]", "unix:".
std::string HostOf(const std::string& address) {
  if (IsLocal(address)) return "unix:";
  const size_t colon = address.find(':');
  const std::string rest =
      colon == std::string::npos ? address : address.substr(colon + 1);
  return rest.substr(0, rest.rfind(':'));
}

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
         a.st_size == b.st_size && a.st_mode == b.st_mode &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
         a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

std::string GrpcPeer::Describe() const {
  std::string text = address;
  if (const size_t colon = address.find(':');
      colon != std::string::npos && !IsLocal(address)) {
    text = address.substr(colon + 1);
  }
  if (!name.empty()) absl::StrAppend(&text, " (", name, ")");
  return text;
}

GrpcAuthenticator::GrpcAuthenticator(const GrpcOptions& options,
                                     FailureLog* failures,
                                     const base::Clock* clock,
                                     const PeerTable* peers)
    : insecure_(options.insecure),
      path_(options.tokens),
      operators_(options.operators),
      failures_(failures),
      clock_(clock),
      peers_(peers),
      looked_(clock->Now()) {}

absl::StatusOr<std::unique_ptr<GrpcAuthenticator>> GrpcAuthenticator::Create(
    const GrpcOptions& options, FailureLog* failures, const base::Clock* clock,
    const PeerTable* peers) {
  std::unique_ptr<GrpcAuthenticator> authenticator(
      new GrpcAuthenticator(options, failures, clock, peers));
  RKNND_RETURN_IF_ERROR(authenticator->ReadTokens());
  return authenticator;
}

absl::Status GrpcAuthenticator::ReadTokens() {
  if (path_.empty()) return absl::OkStatus();
  base::MutexLock lock(mutex_);
  // Before it is read: what is written meanwhile is seen as a change.
  stat(path_.c_str(), &read_);
  auto tokens = TokenList::Read(path_);
  if (!tokens.ok()) return base::Annotate(tokens.status(), "grpc.tokens");
  tokens_ = std::make_shared<const TokenList>(*std::move(tokens));
  return absl::OkStatus();
}

std::shared_ptr<const TokenList> GrpcAuthenticator::tokens() const {
  base::MutexLock lock(mutex_);
  const base::Nanoseconds now = clock_->Now();
  if (now - looked_ < kLookAgain) return tokens_;
  looked_ = now;
  struct stat status {};
  if (stat(path_.c_str(), &status) != 0) return tokens_;  // being replaced
  if (SameFile(status, read_)) return tokens_;
  read_ = status;
  auto tokens = TokenList::Read(path_);
  if (tokens.ok()) {
    tokens_ = std::make_shared<const TokenList>(*std::move(tokens));
    failures_->Note(absl::StrCat("gRPC takes ", tokens_->size(),
                                 " token(s) of the changed '", path_, "'"));
  } else {
    failures_->Note(absl::StrCat("gRPC keeps its tokens of before: ",
                                 std::string(tokens.status().message())));
  }
  return tokens_;
}

absl::Status GrpcAuthenticator::Refuse(const std::string& address,
                                       const std::string& why) const {
  core::SessionPeer peer;
  peer.address = address;
  failures_->Write(peer, 0, "gRPC call", absl::UnauthenticatedError(why));
  return absl::UnauthenticatedError(
      absl::StrCat(why,
                   ": send 'authorization: Bearer TOKEN' with a token of "
                   "this daemon's list (RKNND_TOKEN, of rknnd's clients)"));
}

absl::StatusOr<GrpcPeer> GrpcAuthenticator::Admit(
    const grpc::ServerContextBase& context) const {
  GrpcCredentials shown;
  shown.address = context.peer();
  if (peers_ != nullptr) {
    auto peer = peers_->Find(shown.address);
    if (!peer.has_value()) {
      return absl::UnauthenticatedError("the call's connection has ended");
    }
    shown.address = std::move(peer->address);
    shown.certificate = std::move(peer->certificate);
  }
  const auto header = context.client_metadata().find(kHeader);
  if (header != context.client_metadata().end()) {
    shown.authorization.emplace(header->second.data(), header->second.size());
  }
  return Admit(shown);
}

absl::StatusOr<GrpcPeer> GrpcAuthenticator::Admit(
    const GrpcCredentials& shown) const {
  GrpcPeer peer;
  peer.address = shown.address;
  if (IsLocal(shown.address)) {
    // Who may open the socket is the file's mode.
    peer.role = GrpcRole::kOperator;
    peer.account = HostOf(shown.address);
    return peer;
  }
  if (!shown.certificate.empty()) {
    peer.name = shown.certificate.front();
    const bool is_operator =
        std::any_of(shown.certificate.begin(), shown.certificate.end(),
                    [this](const std::string& name) {
                      return std::find(operators_.begin(), operators_.end(),
                                       name) != operators_.end();
                    });
    peer.role = is_operator ? GrpcRole::kOperator : GrpcRole::kUser;
  }
  if (path_.empty()) {
    if (peer.role == GrpcRole::kNone) {
      peer.role = insecure_ ? GrpcRole::kOperator : GrpcRole::kUser;
    }
  } else if (shown.authorization.has_value()) {
    const std::string& value = *shown.authorization;
    if (!absl::StartsWithIgnoreCase(value, kScheme)) {
      return Refuse(shown.address, "its authorization is no 'Bearer TOKEN'");
    }
    const std::shared_ptr<const TokenList> list = tokens();
    const TokenList::Entry* entry =
        list->Find(std::string_view(value).substr(sizeof kScheme - 1));
    if (entry == nullptr) return Refuse(shown.address, "its token is unknown");
    peer.role = std::max(peer.role, entry->role);
    peer.name = entry->name;
  } else if (peer.role == GrpcRole::kNone) {
    return Refuse(shown.address, "it has no token");
  }
  peer.account = peer.name.empty() ? HostOf(shown.address) : peer.name;
  return peer;
}

core::SessionPeer ToSessionPeer(const GrpcPeer& peer) {
  core::SessionPeer session;
  session.uid = kNobody;
  session.groups = {kNobody};
  session.admin = peer.role == GrpcRole::kOperator;
  session.address = peer.Describe();
  return session;
}

absl::Status RequireOperator(const GrpcPeer& peer, const std::string& what) {
  if (peer.role == GrpcRole::kOperator) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      what, " is for operators, and '", peer.Describe(),
      "' is none: come with a token of role 'operator' (grpc.tokens), a "
      "certificate named in grpc.operators, or by a 'unix:' address"));
}

}  // namespace rknnd::transport
