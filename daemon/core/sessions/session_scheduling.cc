// What a session's program says of its runs beforehand: fences and queues.
// Called on the loop with a client's numbers.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/sessions/session.h"

namespace rknnd::core {

absl::Status Session::RegisterFence(Fence fence) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  if (!parts_->runner->policies().fence_waits->enabled()) {
    return absl::UnimplementedError("this daemon has no fences");
  }
  if (fence.number == 0) {
    return absl::InvalidArgumentError("a fence's number cannot be 0");
  }
  FenceTable& fences = gate_->fences();
  if (const size_t count = fences.size(); count >= parts_->limits.fences) {
    return absl::ResourceExhaustedError(absl::StrCat(
        account_->holder(), " holds ", count, " fences, its limit 'fences' is ",
        parts_->limits.fences,
        ": release those that no run will name any more, or raise the limit"));
  }
  if (absl::Status room =
          parts_->common->Check(*tenant_, CommonKind::kDescriptors);
      !room.ok()) {
    return room;
  }
  const uint32_t number = fence.number;
  if (fences.Add(std::move(fence))) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "fence ", number, " is registered already: release it first"));
}

absl::Status Session::ReleaseFence(uint32_t fence) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  if (gate_->fences().Remove(fence)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("fence ", fence, " is not registered in this session"));
}

absl::Status Session::SetQueue(const QueueRequest& request) {
  RKNND_ASSIGN_OR_RETURN(Context* const found, OpenContext(request.context));
  if (request.policy != QueuePolicy::kFifo &&
      request.policy != QueuePolicy::kNewest) {
    return absl::InvalidArgumentError(absl::StrCat(
        "queue policy ", static_cast<uint32_t>(request.policy), " of context ",
        request.context,
        " is unknown: RKNND_QUEUE_FIFO (0), RKNND_QUEUE_NEWEST (1)"));
  }
  if (request.depth > parts_->limits.jobs_per_context) {
    return absl::InvalidArgumentError(absl::StrCat(
        "depth ", request.depth, " of the queue of context ", request.context,
        " is beyond the limit 'jobs_per_context', which is ",
        parts_->limits.jobs_per_context));
  }
  if (request.max_age < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the maximum age ", request.max_age, " ns of the queue of context ",
        request.context, " is below 0"));
  }
  found->queue = request;
  QueueRequest queue = request;
  if (queue.policy == QueuePolicy::kNewest) {
    // Beside one that runs: the newest is never refused for lack of room.
    queue.depth = std::min(queue.depth, parts_->limits.jobs_per_context - 1);
  }
  gate_->SetQueue(queue);
  return absl::OkStatus();
}

}  // namespace rknnd::core
