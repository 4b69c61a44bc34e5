#include "daemon/core/contexts/bound_frame.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/overflow.h"

namespace rknnd::core {

absl::StatusOr<std::shared_ptr<const BoundFrame>> BoundFrame::Make(
    const driver::Model& model, uint32_t row, const FrameRequest& request,
    PlaneBuffers buffers, const std::string& name) {
  std::shared_ptr<BoundFrame> bound(new BoundFrame);
  RKNND_ASSIGN_OR_RETURN(bound->needed_,
                         model.CheckFrame(row, request.index, request.format));
  bound->frame_.format = request.format;
  for (size_t p = 0; p < buffers.size(); ++p) {
    const FrameRequest::Plane& plane = request.planes[p];
    const uint64_t needed = bound->needed_[p];
    const std::string what =
        absl::StrCat("plane ", p, " of the frame for ", name);
    if ((buffers[p] != nullptr) != (needed != 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, needed == 0 ? " has memory, but its pixel format has no such "
                              "plane"
                            : " has no memory"));
    }
    if (needed == 0) continue;
    if (!base::RangeFits(plane.offset, plane.size, buffers[p]->size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": bytes ", plane.offset, " to ", plane.offset, "+", plane.size,
          " are not inside the buffer of ", buffers[p]->size(), " bytes"));
    }
    if (plane.size < needed) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " has ", plane.size, " bytes, ", needed,
                       " needed for ", request.format.width, "x",
                       request.format.height, " pixels with its stride"));
    }
    bound->frame_.planes[p] = {buffers[p]->memory(), plane.offset};
  }
  bound->request_ = request;
  bound->buffers_ = std::move(buffers);
  return bound;
}

bool BoundFrame::imported() const {
  return std::all_of(buffers_.begin(), buffers_.end(), [](const auto& buffer) {
    return buffer == nullptr || buffer->imported();
  });
}

}  // namespace rknnd::core
