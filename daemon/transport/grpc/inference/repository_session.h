// What keeps the repository's models loaded: a session of the daemon's own with
// one context of each, in which nothing ever runs.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_SESSION_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "daemon/core/service.h"
#include "daemon/core/sessions/session.h"
#include "daemon/core/terms/types.h"

namespace rknnd::transport {

// Thread: loop. Callbacks are called on the loop, at once or later; not at all
// after its destruction.
class RepositorySession {
 public:
  // The number that LetGo takes.
  using Kept = std::function<void(absl::StatusOr<uint32_t>)>;

  // `service` outlives it.
  static absl::StatusOr<std::unique_ptr<RepositorySession>> Open(
      core::Service* service);
  ~RepositorySession() { service_->CloseSession(session_->id()); }
  RepositorySession(const RepositorySession&) = delete;
  RepositorySession& operator=(const RepositorySession&) = delete;

  // Loads it, unless the daemon has it already, with room to run it.
  void Keep(core::ModelUpload upload, Kept done);
  void LetGo(uint32_t context);

 private:
  RepositorySession(core::Service* service,
                    std::shared_ptr<core::Session> session)
      : service_(service), session_(std::move(session)) {}

  core::Service* const service_;
  const std::shared_ptr<core::Session> session_;
  uint32_t last_context_ = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_SESSION_H_
