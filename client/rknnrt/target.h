// Where the C API's calls go: a session with a daemon (client/session), the
// same inside this process, or later a daemon on another machine. The C API
// checks what a program gave it and speaks only to this interface; a target
// knows nothing of rknn_* structs.
//
// Numbers of contexts are the C API's handles; numbers of buffers are the
// target's. Both stay valid when a target rebuilds itself behind its caller.

#ifndef CLIENT_RKNNRT_TARGET_H_
#define CLIENT_RKNNRT_TARGET_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/expected.h"
#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "client/rknnrt/model_source.h"
#include "proto/wire/codec.h"

namespace rknnd::client {

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

// Where a thread sleeps for the ends of many runs: a descriptor that can be
// read, level-triggered, when one of the runs that name its number ended, or
// when the daemon is gone and somebody must look after them. Thread: any.
class RunNotice {
 public:
  virtual ~RunNotice() = default;
  [[nodiscard]] virtual int fd() const = 0;
  [[nodiscard]] virtual uint32_t number() const = 0;
  // To be called before one looks which runs are done, never after: what is
  // told in between is then seen now or makes `fd` readable again. Where the
  // daemon is gone it looks once whether another one is there, and comes back
  // to that by itself. `runs`: whether any are on their way.
  virtual void Clear(bool runs) = 0;
  // `fd` stays readable until the next Clear.
  virtual void Remind() = 0;
};

// Thread: any.
class Target {
 public:
  virtual ~Target() = default;

  [[nodiscard]] virtual TargetInfo info() const = 0;

  // Makes a context of the model in `source`, or of the one that duplicate_of
  // has (then `source` is null).
  virtual base::Expected<std::shared_ptr<const ModelDescription>> CreateContext(
      const ContextRequest& request,
      const std::shared_ptr<ModelSource>& source) = 0;
  // The number is free again, whatever the answer.
  virtual base::Expected<void> DestroyContext(uint32_t context) = 0;
  virtual base::Expected<void> SetCoreMask(uint32_t context,
                                           uint32_t core_mask) = 0;
  // Chooses a row of the model's listed shapes, by the shape of each input; in
  // force from the next Run on, and described by the answer. Bindings that are
  // too small for it are gone.
  virtual base::Expected<std::shared_ptr<const ModelDescription>> SetShapes(
      uint32_t context, const std::vector<InputShape>& shapes) = 0;
  // In force from the next Run on.
  virtual base::Expected<void> Bind(uint32_t context, Direction direction,
                                    uint32_t index, const Binding& binding) = 0;

  // A frame in place of input `index`, from the next Run on.
  virtual base::Expected<void> BindFrame(uint32_t context, uint32_t index,
                                         const FrameBinding& frame) = 0;
  // Internal memory that the program brought; kept when the target rebuilds.
  virtual base::Expected<void> SetInternalMemory(uint32_t context,
                                                 const MemoryRange& memory) = 0;
  // Filled with the model's weights when the call returns.
  virtual base::Expected<void> SetWeightMemory(uint32_t context,
                                               const MemoryRange& memory) = 0;

  virtual base::Expected<BufferHandle> AllocateBuffer(uint64_t size,
                                                      uint32_t flags) = 0;
  // Keeps a descriptor of its own, the handle's: the caller may close `fd`.
  virtual base::Expected<BufferHandle> ImportBuffer(int fd, uint64_t size) = 0;
  // Has no descriptor: the handle's fd is -1.
  virtual base::Expected<BufferHandle> ImportPhysical(uint64_t address,
                                                      uint64_t size) = 0;
  virtual void ReleaseBuffer(uint32_t buffer) = 0;
  // The program has written memory, or is about to read it, that the kernel has
  // no cache call for. Most targets have nothing to do.
  virtual base::Expected<void> SyncBuffer(uint32_t /*buffer*/,
                                          bool /*to_device*/,
                                          bool /*from_device*/) {
    return {};
  }

  // The name by which others of the same board may use the buffer's memory;
  // another one when the target has rebuilt itself.
  virtual base::Expected<wire::BufferKey> GetBufferKey(uint32_t /*buffer*/) {
    return base::Error{base::Code::kUnimplemented,
                       "this target's memory has no keys"};
  }

  virtual base::Expected<MemorySize> GetMemorySize(uint32_t context) = 0;
  // What the NPU holds for all its users.
  virtual base::Expected<MemoryKinds> GetMemory() = 0;
  virtual base::Expected<std::string> PerfDetail(uint32_t context) = 0;
  // With the table's rows as fields.
  virtual base::Expected<wire::PerfDetail> PerfReport(uint32_t context) = 0;
  // The layers of the context's model, whether they ran or not; none: the
  // target does not say what computes them.
  virtual base::Expected<std::vector<wire::LayerReport>> Kernels(
      uint32_t /*context*/) {
    return std::vector<wire::LayerReport>();
  }
  // What the model is and where its tensors lie, in words.
  virtual base::Expected<std::string> ModelDetail(uint32_t context) = 0;
  // Whether a stream of the context's frames fits beside those of others.
  // Room that was kept is asked for again when the target rebuilds.
  virtual base::Expected<wire::Admission> Admit(
      const wire::Admit& /*request*/) {
    return base::Error{base::Code::kUnimplemented,
                       "this target does not plan streams"};
  }
  // The context's next run leaves what TakeDump gives, once.
  virtual base::Expected<void> ArmDump(uint32_t context) = 0;
  virtual base::Expected<LayerDump> TakeDump(uint32_t context) = 0;

  // Shows whoever looks at the NPU what was copied for `context`, in all, until
  // DestroyContext, after which it is not to be called. Asks nobody, so that it
  // costs little; a target without such a place forgets it.
  virtual void ShowCopies(uint32_t /*context*/,
                          uint64_t /*to_device_inputs_set*/,
                          uint64_t /*from_device_outputs_get*/) {}

  // Blocks until the run has ended. Allocates nothing when it succeeds.
  virtual base::Expected<RunReport> Run(const RunRequest& request) = 0;

  // Begins a run and does not wait for it. Runs of one context end in the order
  // of their start. kResourceExhausted: as many as can be are on their way.
  // Whatever the answer, the target gives the request's fences back.
  virtual base::Expected<RunRef> Start(const RunRequest& request) = 0;
  // Whether it has ended; asks nobody and waits for nothing.
  virtual bool Look(StartedRun& run) = 0;
  // Waits for its end, until `deadline` at most; whether it has ended.
  virtual bool Await(StartedRun& run, base::Nanoseconds deadline) = 0;
  // Takes queued runs of that frame, or with 0 all of the context, back; how
  // many they were. They end with kCancelled.
  virtual base::Expected<uint32_t> Cancel(uint32_t context, uint64_t frame) = 0;
  // In force from the next run on.
  virtual base::Expected<void> SetQueue(uint32_t context,
                                        const QueuePolicy& policy) = 0;

  // A number for what one run is to wait for. Keeps a descriptor of its own.
  virtual base::Expected<uint32_t> RegisterFence(int fd) = 0;
  // A number for what one run is to tell, and the end that can be read then.
  struct FenceOut {
    uint32_t number = 0;
    base::UniqueFd fd;
  };
  virtual base::Expected<FenceOut> MakeFence() = 0;
  // Of fences that no run was started with.
  virtual void ReleaseFence(uint32_t fence) = 0;
  // Lives as long as it is kept. Not to be kept longer than the target.
  virtual base::Expected<std::shared_ptr<RunNotice>> MakeNotice() = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_TARGET_H_
