// Asks core as a client would: by the hash first, with the bytes where that is
// not enough.

#include "daemon/transport/grpc/inference/repository_session.h"

#include <unistd.h>

#include "absl/status/status.h"
#include "base/status/status.h"

namespace rknnd::transport {
namespace {

class NoAnswers final : public core::CompletionSink {
 public:
  void Complete(const core::JobCompletion& /*completion*/) override {}
};

}  // namespace

absl::StatusOr<std::unique_ptr<RepositorySession>> RepositorySession::Open(
    core::Service* service) {
  core::SessionPeer peer;
  peer.pid = getpid();
  peer.uid = geteuid();
  peer.comm = "model repository";
  RKNND_ASSIGN_OR_RETURN(
      std::shared_ptr<core::Session> session,
      service->OpenSession(peer, std::make_shared<NoAnswers>(), nullptr));
  return std::unique_ptr<RepositorySession>(
      new RepositorySession(service, std::move(session)));
}

void RepositorySession::Keep(core::ModelUpload upload, Kept done) {
  core::ContextRequest request;
  // A model that is kept is never so old that its number comes round again.
  request.number = ++last_context_;
  request.model = upload.id;
  const auto created = [number = request.number,
                        done](const absl::Status& status) {
    if (!status.ok()) return done(status);
    done(number);
  };
  // Copyable, as callbacks are.
  auto bytes = std::make_shared<core::ModelUpload>(std::move(upload));
  // Not a word from a session that has ended, so `session` is there.
  const auto session = session_.get();
  session->CreateContext(
      request, [session, request, created,
                bytes](absl::StatusOr<const driver::ModelInfo*> model) {
        if (!absl::IsNotFound(model.status())) return created(model.status());
        session->UploadModel(
            std::move(*bytes),
            [session, request, created](const absl::Status& uploaded) {
              if (!uploaded.ok()) return created(uploaded);
              session->CreateContext(
                  request,
                  [created](absl::StatusOr<const driver::ModelInfo*> loaded) {
                    created(loaded.status());
                  });
            });
      });
}

void RepositorySession::LetGo(uint32_t context) {
  // It is there as long as this keeps it.
  session_->DestroyContext(context).IgnoreError();
}

}  // namespace rknnd::transport
