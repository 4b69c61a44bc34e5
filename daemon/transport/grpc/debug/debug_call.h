// One call of rknnd.v1.Debug, whatever its kind: who may make it, what it
// holds, and that it ends exactly once.
//
//   Enter ----> open ----> ended -----------> gone
//                 \  End: its answer, a        gRPC's OnDone
//                  \ cancel, Stop
//
// All but Enter happens on the loop, so that nothing is said to gRPC after the
// end; gRPC's own threads come in by OnLoop.

#ifndef DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_CALL_H_
#define DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_CALL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/grpc/authenticator.h"
#include "daemon/transport/grpc/delivery_watch.h"
#include "daemon/transport/grpc/environment.h"
#include "daemon/transport/grpc/request_budget.h"
#include "daemon/transport/grpc/session/loop_queue.h"
#include "daemon/transport/grpc/session/transfer_budget.h"
#include "daemon/transport/session/own_session.h"

namespace rknnd::transport {

class DebugCall;

// What all calls work with, and which there are.
class DebugCalls {
 public:
  explicit DebugCalls(const GrpcEnvironment& environment);

  // Thread: any.
  absl::Status Add(std::shared_ptr<DebugCall> call);
  void Remove(DebugCall* call);
  // All end, new ones are refused, and nothing is posted to the loop any more.
  // Thread: loop.
  void Stop();

  [[nodiscard]] OwnSession::Parts parts() const;

  const GrpcEnvironment daemon;
  const std::shared_ptr<LoopQueue> loop;
  // One model as large as any may be.
  const std::shared_ptr<TransferBudget> transfers;

 private:
  base::Mutex mutex_;
  bool stopped_ RKNND_GUARDED_BY(mutex_) = false;
  std::unordered_map<DebugCall*, std::shared_ptr<DebugCall>> calls_
      RKNND_GUARDED_BY(mutex_);
};

class DebugCall : public std::enable_shared_from_this<DebugCall> {
 public:
  explicit DebugCall(std::shared_ptr<DebugCalls> calls)
      : calls_(std::move(calls)) {}
  virtual ~DebugCall() = default;

  // Once, before all else; false when the call was ended by it. `bytes`: of its
  // request. `operators`: what only they may do; null: anybody who got in.
  bool Enter(absl::StatusOr<GrpcPeer> peer, uint64_t bytes,
             const char* operators = nullptr);

  // Not when the call has ended by then. Thread: any.
  void OnLoop(std::function<void()> task);
  // Later calls do nothing. Thread: loop.
  void End(const absl::Status& status);

  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] const GrpcPeer& peer() const { return peer_; }
  [[nodiscard]] core::SessionPeer session_peer() const;
  [[nodiscard]] DebugCalls& calls() const { return *calls_; }
  // What goes at the end of the call: a session, a pin. Thread: loop.
  void Hold(std::shared_ptr<void> what) { held_.push_back(std::move(what)); }

 protected:
  // gRPC is to be told. Once.
  virtual void Conclude(const absl::Status& status) = 0;
  // The peer does not take what it asked for. Thread: any.
  virtual void Cut() = 0;

  // gRPC's reactions, by those who have a reactor.
  void Cancelled();
  void Gone();
  // Until its end the peer must have taken what is sent, or else done what
  // `fault` says that it does not.
  [[nodiscard]] DeliveryWatch::Guard Watch(
      const char* fault = DeliveryWatch::kUntaken);

 private:
  const std::shared_ptr<DebugCalls> calls_;
  GrpcPeer peer_;
  RequestBudget::Hold budget_;
  DeliveryWatch::Guard answer_;
  std::atomic<bool> ended_{false};
  std::vector<std::shared_ptr<void>> held_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_DEBUG_DEBUG_CALL_H_
