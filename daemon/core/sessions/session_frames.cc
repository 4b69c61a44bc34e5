// Frames that a client binds in place of a tensor. Called on the loop with
// numbers that nobody has checked.

#include <utility>

#include "base/status/status.h"
#include "daemon/core/contexts/bound_frame.h"
#include "daemon/core/sessions/session.h"

namespace rknnd::core {

absl::Status Session::BindFrame(const FrameRequest& request) {
  RKNND_RETURN_IF_ERROR(RequireOpen());
  RKNND_ASSIGN_OR_RETURN(Context* const found,
                         contexts_.GetForBinding(request.context));
  Context& context = *found;
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
