// Calls come as fast as peers like: each is charged before it costs anything.

#include "daemon/transport/grpc/debug/debug_call.h"

#include <utility>

namespace rknnd::transport {

DebugCalls::DebugCalls(const GrpcEnvironment& environment)
    : daemon(environment),
      loop(std::make_shared<LoopQueue>(environment.loop)),
      transfers(
          std::make_shared<TransferBudget>(environment.limits.model_bytes)) {}

absl::Status DebugCalls::Add(std::shared_ptr<DebugCall> call) {
  base::MutexLock lock(mutex_);
  DebugCall* const key = call.get();
  // Also where it is refused: gRPC has it until it says otherwise.
  calls_.emplace(key, std::move(call));
  if (!stopped_) return absl::OkStatus();
  return absl::UnavailableError("the daemon stops and takes no new calls");
}

void DebugCalls::Remove(DebugCall* call) {
  std::shared_ptr<DebugCall> gone;
  base::MutexLock lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  gone = std::move(found->second);
  calls_.erase(found);
}

void DebugCalls::Stop() {
  loop->Shut();
  std::vector<std::shared_ptr<DebugCall>> open;
  {
    base::MutexLock lock(mutex_);
    stopped_ = true;
    for (const auto& [key, call] : calls_) open.push_back(call);
  }
  for (const std::shared_ptr<DebugCall>& call : open) {
    call->End(absl::UnavailableError("the daemon stops"));
  }
}

OwnSession::Parts DebugCalls::parts() const {
  return {daemon.service, daemon.workers, daemon.loop};
}

bool DebugCall::Enter(absl::StatusOr<GrpcPeer> peer, uint64_t bytes,
                      const char* operators) {
  absl::Status status = calls_->Add(shared_from_this());
  if (status.ok()) status = peer.status();
  if (status.ok()) {
    peer_ = *std::move(peer);
    if (operators != nullptr) status = RequireOperator(peer_, operators);
  }
  if (status.ok()) {
    auto taken = calls_->daemon.budget->Take(peer_.account, bytes);
    status = taken.status();
    if (taken.ok()) budget_ = *std::move(taken);
  }
  if (!status.ok()) End(status);
  return status.ok();
}

void DebugCall::OnLoop(std::function<void()> task) {
  // A queue that is shut has ended this call, or is about to.
  calls_->loop->Post([self = shared_from_this(), task = std::move(task)] {
    if (!self->ended_) task();
  });
}

void DebugCall::End(const absl::Status& status) {
  if (ended_.exchange(true)) return;
  held_.clear();
  answer_ = Watch();
  Conclude(status);
}

core::SessionPeer DebugCall::session_peer() const {
  core::SessionPeer peer = ToSessionPeer(peer_);
  peer.comm = "rknnd.v1.Debug";
  return peer;
}

DeliveryWatch::Guard DebugCall::Watch(const char* fault) {
  return calls_->daemon.deliveries->Begin(
      peer_.Describe(), [this] { Cut(); }, fault);
}

void DebugCall::Cancelled() {
  OnLoop([this] { End(absl::CancelledError("the caller has gone")); });
}

void DebugCall::Gone() {
  answer_.Release();
  budget_.Release();
  calls_->Remove(this);
}

}  // namespace rknnd::transport
