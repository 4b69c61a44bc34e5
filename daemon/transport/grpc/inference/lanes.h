// Where runs of a model happen: contexts of the engine's session, each with
// several sets of bindings, so that one request's tensors are copied while
// another's job runs. A set with its memory is a lane. Made and bound on the
// loop, used by whoever has taken it.
//
//   a model row     contexts (one for each core)    lanes (sets of bindings)
//   +-----------+   +-------------------------+     +----+ +----+ +----+
//   | 1x3x8x8   |---| context 1               |-----| 0  | | 1  | | 2  |
//   |           |   +-------------------------+     +----+ +----+ +----+
//   |           |---| context 2               |-----| 0  | ...
//   +-----------+   +-------------------------+

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_LANES_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_LANES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/sessions/session.h"
#include "daemon/transport/grpc/inference/inference_run.h"
#include "daemon/transport/grpc/inference/model_view.h"

namespace rknnd::transport {

// Sets of one context that are used: one whose job runs, one whose job waits,
// one that is being copied into or out of.
inline constexpr uint32_t kLanesPerContext = 3;

// The memory is nobody else's while the lane is taken.
struct Lane {
  uint32_t row = 0;
  uint32_t context = 0, set = 0;
  uint32_t buffer = 0;
  base::UniqueFd fd;
  bool dma_buf = false;
  base::Mapping memory;
  LaneBindings bound;
  // Its own memory for each tensor, as `bound` has them; empty: a client's.
  std::vector<std::span<std::byte>> inputs, outputs;

  // Of the engine, under its lock.
  bool taken = false;
  InferenceRunPtr run;
  RunParts parts;  // of whoever has taken it
};

// Lanes of all models, in one session. Thread: loop.
class LaneMaker {
 public:
  using LaneCallback =
      std::function<void(absl::StatusOr<std::unique_ptr<Lane>>)>;
  using ViewCallback =
      std::function<void(absl::StatusOr<std::shared_ptr<const ModelView>>)>;

  using HasRegion = std::function<bool(uint64_t region)>;

  // The session calls back no more once it is closed. What `has_region` denies
  // is adopted no more, as nobody would drop it.
  LaneMaker(std::shared_ptr<core::Session> session, uint32_t cores,
            HasRegion has_region)
      : session_(std::move(session)),
        cores_(cores),
        has_region_(std::move(has_region)) {}

  // What the model is. NOT_FOUND: it is not loaded, nor in the cache folder.
  void Look(const core::ModelId& id, ViewCallback done);

  // The lane of that number of a row: the first of each context come first.
  void Make(const std::shared_ptr<const ModelView>& model, uint32_t row,
            uint32_t number, LaneCallback done);
  [[nodiscard]] uint32_t most_lanes() const {
    return cores_ * kLanesPerContext;
  }

  // Binds what differs. An error leaves the lane as unbound as it may be: no
  // run may use it before Bind has succeeded.
  absl::Status Bind(Lane& lane, const LaneBindings& bindings,
                    const std::vector<NamedRegion>& regions);

  // Lets go of everything made for `id`; none of its lanes is used any more.
  void Drop(const core::ModelId& id);
  void DropRegion(uint64_t region);

 private:
  struct Key {
    core::ModelId id;
    uint32_t row = 0, context = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  uint32_t NextContext() { return ++last_context_; }
  uint32_t NextBuffer() { return ++last_buffer_; }
  void WithContext(const std::shared_ptr<const ModelView>& model,
                   const Key& key,
                   const std::function<void(absl::StatusOr<uint32_t>)>& done);
  absl::StatusOr<uint32_t> BufferOf(const NamedRegion& region);

  const std::shared_ptr<core::Session> session_;
  const uint32_t cores_;
  const HasRegion has_region_;
  uint32_t last_context_ = 0, last_buffer_ = 0;
  std::map<Key, uint32_t> contexts_;
  std::map<core::ModelId, std::vector<uint32_t>> buffers_;
  std::map<uint64_t, uint32_t> regions_;  // to the numbers they were adopted as
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_LANES_H_
