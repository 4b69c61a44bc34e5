// A camera's frame in place of an input's tensor: its planes' buffers, kept
// alive by the set of bindings that holds it.

#ifndef DAEMON_CORE_CONTEXTS_BOUND_FRAME_H_
#define DAEMON_CORE_CONTEXTS_BOUND_FRAME_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/core/memory/buffer_table.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"
#include "driver/frame.h"

namespace rknnd::core {

// By plane; null: there is none.
using PlaneBuffers = std::array<std::shared_ptr<Buffer>, driver::kMaxPlanes>;

// Immutable; jobs point at `frame`. Thread: any.
class BoundFrame {
 public:
  // Every number in `request` is a client's and checked here and by the model;
  // `name` of the input is for messages.
  static absl::StatusOr<std::shared_ptr<const BoundFrame>> Make(
      const driver::Model& model, uint32_t row, const FrameRequest& request,
      PlaneBuffers buffers, const std::string& name);

  [[nodiscard]] const driver::Frame& frame() const { return frame_; }
  [[nodiscard]] const FrameRequest& request() const { return request_; }
  [[nodiscard]] const PlaneBuffers& buffers() const { return buffers_; }
  // The bytes of each plane that a run reads, from its offset on.
  [[nodiscard]] const driver::FrameSizes& needed() const { return needed_; }
  // The program brought all of its memory, and synchronises it.
  [[nodiscard]] bool imported() const;

 private:
  BoundFrame() = default;

  FrameRequest request_;
  driver::Frame frame_;
  PlaneBuffers buffers_;
  driver::FrameSizes needed_{};
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_CONTEXTS_BOUND_FRAME_H_
