// A session without a client's socket and ring: the daemon's own, for the
// self-test of the cores, or on behalf of one call over gRPC. It has one
// context, whose tensors lie in buffers that are mapped here, and one run at a
// time. All it has goes with it.

#ifndef DAEMON_TRANSPORT_SESSION_OWN_SESSION_H_
#define DAEMON_TRANSPORT_SESSION_OWN_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mapping.h"
#include "daemon/core/service.h"
#include "daemon/core/sessions/session.h"
#include "daemon/core/terms/types.h"

namespace rknnd::transport {

// Thread: loop. Callbacks are called on the loop, and not at all after the
// session was destroyed.
class OwnSession final : public std::enable_shared_from_this<OwnSession> {
 public:
  // What it works with; outlives it.
  struct Parts {
    core::Service* service = nullptr;
    core::WorkerWaker* waker = nullptr;
    base::Executor* loop = nullptr;
  };
  using StatusCallback = std::function<void(absl::Status)>;
  using RunCallback = std::function<void(const core::JobCompletion&)>;

  // Its one context's number, for calls to session().
  static constexpr uint32_t kContext = 1;

  static absl::StatusOr<std::shared_ptr<OwnSession>> Open(
      const Parts& parts, core::SessionPeer peer);
  ~OwnSession();

  [[nodiscard]] core::Session& session() { return *session_; }

  // Makes the context, a buffer for each of its tensors, and binds them.
  // `real_numbers`: as float32, whatever the model has; else in the model's own
  // type. In the layout of its attributes, packed. NOT_FOUND: no such model.
  // Once.
  void Prepare(core::ContextRequest request, bool real_numbers,
               StatusCallback done);

  // Of the prepared context.
  [[nodiscard]] const driver::ModelInfo& model() const { return *model_; }
  [[nodiscard]] const driver::ProgramInfo& program() const {
    return model_->programs[model_->largest];
  }
  // Zero at first.
  [[nodiscard]] std::span<std::byte> input(size_t index) const;
  [[nodiscard]] std::span<const std::byte> output(size_t index) const;

  // `deadline`: not begun so long after now; 0: none.
  void Run(base::Nanoseconds deadline, RunCallback done);

 private:
  class Answers;
  struct Tensor {
    base::Mapping memory;
    uint64_t size = 0;  // of its packed bytes
  };

  explicit OwnSession(const Parts& parts) : parts_(parts) {}
  // Goes on with the next buffer, or ends.
  void AddTensor(bool real_numbers, const StatusCallback& done);
  absl::Status BindTensor(bool real_numbers,
                          absl::StatusOr<core::BufferInfo> buffer);
  [[nodiscard]] const driver::TensorAttr& Attribute(size_t tensor) const;
  [[nodiscard]] uint64_t SizeOf(size_t tensor, bool real_numbers) const;
  void OnAnswer(const core::JobCompletion& completion);

  const Parts parts_;
  std::shared_ptr<core::Session> session_;
  const driver::ModelInfo* model_ = nullptr;
  std::vector<Tensor> tensors_;  // inputs, then outputs
  uint32_t sequence_ = 0;
  RunCallback running_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_OWN_SESSION_H_
