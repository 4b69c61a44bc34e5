// Models that a session's client uploads: checked here, loaded by the registry.
// Descriptors and texts are a client's.

#ifndef DAEMON_CORE_SESSIONS_MODEL_UPLOADS_H_
#define DAEMON_CORE_SESSIONS_MODEL_UPLOADS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/accounts/tenant.h"
#include "daemon/core/models/load_turns.h"
#include "daemon/core/sessions/service_parts.h"
#include "daemon/core/terms/presence.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Thread: loop.
class ModelUploads {
 public:
  ModelUploads(std::shared_ptr<const ServiceParts> parts,
               std::shared_ptr<Tenant> tenant, std::shared_ptr<Account> account,
               std::shared_ptr<LogSink> log)
      : parts_(std::move(parts)),
        tenant_(std::move(tenant)),
        account_(std::move(account)),
        log_(std::move(log)) {}

  // `done` is called while `session` is there, which ends before this does.
  void Upload(ModelUpload upload, const LoadPayer& payer,
              const Presence& session, std::function<void(absl::Status)> done);

  // On their way.
  [[nodiscard]] uint32_t count() const { return count_; }

 private:
  // The size of all its files, or why they are refused, before bytes are read.
  [[nodiscard]] absl::StatusOr<uint64_t> Check(const ModelUpload& upload) const;
  // The same of one file.
  [[nodiscard]] absl::StatusOr<uint64_t> CheckFile(
      const base::UniqueFd& bytes, const std::string& options,
      const std::string& what) const;

  const std::shared_ptr<const ServiceParts> parts_;
  const std::shared_ptr<Tenant> tenant_;
  const std::shared_ptr<Account> account_;
  const std::shared_ptr<LogSink> log_;
  uint32_t count_ = 0;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSIONS_MODEL_UPLOADS_H_
