// What the C API and its target (client/session/target.h) say to each other:
// requests and their answers. Nothing here knows rknn_* structs.
//
// Numbers of contexts are the C API's handles; numbers of buffers are the
// target's. Both stay valid when a target rebuilds itself behind its caller.

#ifndef CLIENT_TARGET_TYPES_H_
#define CLIENT_TARGET_TYPES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "proto/wire/codec.h"

namespace rknnd::client {

class ModelSource;

using TensorAttr = wire::TensorAttr;
using InputShape = wire::InputShape;
using ModelDescription = wire::ContextInfo;
using MemorySize = wire::MemorySize;
using MemoryKinds = wire::MemoryKinds;

enum class Direction : uint8_t { kInput, kOutput };

// Who answers, as it introduced itself last.
struct TargetInfo {
  std::string soc;
  uint32_t cores = 0;
  uint32_t limits = 0;  // of wire's DeviceLimit
  std::string api_version;
  std::string driver_version;
};

struct ContextRequest {
  uint32_t number = 0;        // non-zero, not in use
  uint32_t flags = 0;         // of rknn_init
  uint32_t duplicate_of = 0;  // a living context's number, 0: none
  uint32_t weights_of = 0;    // one whose model has this one's weights, 0: none
  uint32_t sram_limit = 0;    // KiB of SRAM at most; 0: no bound
};

// Of a context that is there.
struct ContextOrigin {
  std::shared_ptr<ModelSource> source;
  uint32_t core_mask = 0;
};

// Memory for one input or output, and how its bytes are to be understood.
// Numbers of type and layout are the C API's.
struct Binding {
  uint32_t buffer = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t type = 0;
  uint32_t layout = 0;
  bool pass_through = false;
  uint32_t w_stride = 0;
  uint32_t h_stride = 0;
  uint32_t set = 0;  // of the context's bindings

  friend bool operator==(const Binding&, const Binding&) = default;
};

// A range of a buffer.
struct MemoryRange {
  uint32_t buffer = 0;  // 0: none
  uint64_t offset = 0;
  uint64_t size = 0;

  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

// A camera's frame for an input; numbers are rknnd.h's.
struct FrameBinding {
  uint32_t format = 0, width = 0, height = 0;
  std::array<MemoryRange, 2> planes{};
  std::array<uint32_t, 2> strides{};
  uint32_t crop_x = 0, crop_y = 0, crop_width = 0, crop_height = 0;
  uint32_t fit = 0;
  std::array<uint8_t, 3> pad{};
  bool bgr_input = false;
  uint32_t set = 0;  // of the context's bindings

  friend bool operator==(const FrameBinding&, const FrameBinding&) = default;
};

struct BufferHandle {
  uint32_t number = 0;
  int fd = -1;  // the target's, valid until ReleaseBuffer; never 0
};

// The outputs of all layers of one run; offsets lie inside `bytes`.
struct LayerDump {
  std::vector<wire::DumpedTensor> tensors;
  base::Mapping bytes;
};

struct RunRequest {
  uint32_t context = 0;
  uint64_t frame = 0;
  uint32_t timeout_ms = 0;   // 0: the daemon's limit
  uint64_t deadline_ns = 0;  // not begun so long after now; 0: none
  uint32_t set = 0;          // of the context's bindings
  bool shared = false;       // another session's equal run may answer it
  // Numbers of the target, 0: none. A run that was started gives the fences
  // back when it has ended, whatever became of it.
  uint32_t fence_in = 0;
  uint32_t fence_out = 0;
  uint32_t notice = 0;  // that its end is told to
};

// Of a run that succeeded. Nanoseconds, by the daemon's clock.
struct RunReport {
  uint64_t queue_ns = 0;
  uint64_t run_ns = 0;
  uint64_t total_ns = 0;
  uint32_t core = 0;
  uint32_t drops = 0;
};

// A run that was begun and is not waited for. The target's: it is used for
// another one when nobody refers to it.
struct StartedRun {
  // Read only once `done`; then nobody writes them any more.
  base::Code code = base::Code::kUnknown;
  std::string text;  // empty on success
  RunReport report;
  std::atomic<bool> done{false};
  std::atomic<uint32_t> users{0};  // RunRef's
};

// Refers to a started run. Not to be kept longer than the target.
class RunRef {
 public:
  RunRef() = default;
  explicit RunRef(StartedRun* run) : run_(run) {
    if (run_ != nullptr) run_->users.fetch_add(1, std::memory_order_relaxed);
  }
  RunRef(const RunRef& other) : RunRef(other.run_) {}
  RunRef(RunRef&& other) noexcept : run_(std::exchange(other.run_, nullptr)) {}
  RunRef& operator=(RunRef other) noexcept {
    std::swap(run_, other.run_);
    return *this;
  }
  ~RunRef() {
    if (run_ != nullptr) run_->users.fetch_sub(1, std::memory_order_release);
  }

  explicit operator bool() const { return run_ != nullptr; }
  StartedRun& operator*() const { return *run_; }
  StartedRun* operator->() const { return run_; }

 private:
  StartedRun* run_ = nullptr;
};

// How a context's frames wait; the policy's number is rknnd.h's.
struct QueuePolicy {
  uint32_t policy = 0;
  uint32_t depth = 0;       // 0: the daemon's limit
  uint64_t max_age_ns = 0;  // 0: no bound
};

// A number for what one run is to tell, and the end that can be read then.
struct FenceOut {
  uint32_t number = 0;
  base::UniqueFd fd;
};

}  // namespace rknnd::client

#endif  // CLIENT_TARGET_TYPES_H_
