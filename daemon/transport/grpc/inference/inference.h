// One inference request over gRPC: its message is parsed and checked, its model
// found, its tensors handed to the engine, its answer written. What carries the
// messages (a unary call or a stream) is infer_call.cc's.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_INFERENCE_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_INFERENCE_H_

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "daemon/transport/grpc/inference/conversion.h"
#include "daemon/transport/grpc/inference/engine.h"
#include "daemon/transport/grpc/inference/inference_run.h"
#include "daemon/transport/grpc/inference/model_directory.h"
#include "daemon/transport/grpc/inference/regions.h"
#include "daemon/transport/grpc/inference/statistics.h"
#include "daemon/transport/grpc/overload_log.h"
#include "daemon/transport/grpc/request_budget.h"
#include "daemon/transport/session/event_log.h"

namespace grpc {
class ByteBuffer;
}  // namespace grpc

namespace rknnd::transport {

// What inferences work with; outlives them.
struct InferenceParts {
  Engine* engine = nullptr;
  ModelDirectory* directory = nullptr;
  Regions* regions = nullptr;
  Statistics* statistics = nullptr;
  const base::Clock* clock = nullptr;
  FailureLog* failures = nullptr;
  OverloadLog* overload = nullptr;
};

// Thread: any.
class Inference final : public InferenceRun,
                        public std::enable_shared_from_this<Inference> {
 public:
  // The answer, empty where the status is not OK. Once.
  using Done = std::function<void(const absl::Status&, grpc::ByteBuffer*)>;

  struct Call {
    std::string peer;                          // for the log
    std::string account;                       // GrpcPeer::account
    std::string region_space;                  // of its peer
    base::Nanoseconds deadline = kNoDeadline;  // on the clock
    bool streamed = false;  // a ModelStreamInferResponse is wanted
  };

  static std::shared_ptr<Inference> Make(const InferenceParts& parts, Call call,
                                         RequestBudget::Hold hold);
  ~Inference() override;

  // Takes the message. `done` is called here or on another thread.
  void Begin(grpc::ByteBuffer* message, Done done);
  // The client does not wait any more; `done` is called all the same.
  void Cancel();
  // Of the request, as far as it could be read.
  [[nodiscard]] std::string id() const;
  // What it holds of the budget, for whoever sends the answer.
  RequestBudget::Hold TakeHold();

  absl::Status Fill(std::span<const std::span<std::byte>> inputs) override;
  void Finish(const absl::Status& status, const RunParts& parts,
              std::span<const std::span<const std::byte>> outputs) override;

 private:
  struct Message;

  Inference(const InferenceParts& parts, Call call, RequestBudget::Hold hold);
  absl::Status Read(grpc::ByteBuffer* message);
  void OnFound(absl::StatusOr<ServedModel> found);
  void OnOpen(absl::StatusOr<std::shared_ptr<const ModelView>> view);
  absl::Status Plan();
  absl::Status UseRegion(const RegionRange& range, uint64_t bytes,
                         PortBinding* port);

  const InferenceParts parts_;
  const Call call_;
  const base::Nanoseconds begun_;
  RequestBudget::Hold hold_;
  Done done_;
  std::unique_ptr<Message> message_;
  ServedModel model_;
  std::shared_ptr<const ModelView> view_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_INFERENCE_H_
