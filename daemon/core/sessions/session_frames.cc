// Frames that a client binds in place of a tensor. Called on the loop with
// numbers that nobody has checked.

#include <utility>

#include "base/status/status.h"
#include "daemon/core/contexts/bound_frame.h"
#include "daemon/core/sessions/session_impl.h"

namespace rknnd::core {

absl::Status SessionImpl::BindFrame(const FrameRequest& request) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  const auto found = contexts_.find(request.context);
  if (found == contexts_.end()) return NoContext(request.context);
  Context& context = found->second;
  if (context.run->traits().info_only) return NotForRuns(request.context);
  PlaneBuffers buffers;
  for (size_t p = 0; p < buffers.size(); ++p) {
    if (request.planes[p].buffer == 0) continue;
    auto buffer = buffers_.Find(request.planes[p].buffer);
    if (!buffer.ok()) return buffer.status();
    buffers[p] = *std::move(buffer);
  }
  RKNND_RETURN_IF_ERROR(
      context.bindings.BindFrame(request, std::move(buffers)));
  gate_->SetBindings(request.context, context.bindings.snapshot());
  return absl::OkStatus();
}

}  // namespace rknnd::core
