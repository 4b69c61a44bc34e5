// A model on behalf of one call of rknnd.v1.Debug: a session of its own, with
// one context, run so often as was asked for. Everything goes with it.

#ifndef DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_MODEL_H_
#define DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/session/own_session.h"

namespace rknnd::transport {

// Thread: loop.
class DebugModel final : public std::enable_shared_from_this<DebugModel> {
 public:
  // So many runs one call may ask for: minutes, for a large network.
  static constexpr uint32_t kMostRuns = 10'000;

  // As a peer wrote it.
  struct Wanted {
    std::string sha256;
    uint32_t core_mask = 0;
    // One for each input, or none: zeros.
    std::vector<std::string> inputs;
    bool layers = false;  // times of each layer
  };
  using StatusCallback = std::function<void(absl::Status)>;

  static absl::StatusOr<std::shared_ptr<DebugModel>> Open(
      const OwnSession::Parts& parts, core::SessionPeer peer);

  // Once. NOT_FOUND: the model is to be pushed.
  void Prepare(const Wanted& wanted, StatusCallback done);
  // One after the other. Ends with the first that fails.
  void Run(uint32_t runs, StatusCallback done);

  [[nodiscard]] OwnSession& own() { return *own_; }
  [[nodiscard]] core::Session& session() { return own_->session(); }
  // Of each run so far.
  [[nodiscard]] const std::vector<uint64_t>& run_ns() const { return run_; }
  [[nodiscard]] const std::vector<uint64_t>& queue_ns() const { return queue_; }
  // Bytes of the context's inputs and outputs.
  [[nodiscard]] uint64_t tensor_bytes() const;

 private:
  explicit DebugModel(std::shared_ptr<OwnSession> own) : own_(std::move(own)) {}
  absl::Status FillInputs(const std::vector<std::string>& inputs);

  const std::shared_ptr<OwnSession> own_;
  std::vector<uint64_t> run_, queue_;
};

// 32 bytes of a peer's; INVALID_ARGUMENT: they are not 32.
absl::StatusOr<core::ModelId> ToModelId(const std::string& sha256);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_MODEL_H_
