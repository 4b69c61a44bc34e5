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
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/expected.h"
#include "base/posix/mapping.h"
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
  uint32_t timeout_ms = 0;  // 0: the daemon's limit
};

// Of a run that succeeded. Nanoseconds, by the daemon's clock.
struct RunReport {
  uint64_t queue_ns = 0;
  uint64_t run_ns = 0;
  uint64_t total_ns = 0;
  uint32_t core = 0;
  uint32_t drops = 0;
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

  virtual base::Expected<MemorySize> GetMemorySize(uint32_t context) = 0;
  // What the NPU holds for all its users.
  virtual base::Expected<MemoryKinds> GetMemory() = 0;
  virtual base::Expected<std::string> PerfDetail(uint32_t context) = 0;
  // With the table's rows as fields.
  virtual base::Expected<wire::PerfDetail> PerfReport(uint32_t context) = 0;
  // What the model is and where its tensors lie, in words.
  virtual base::Expected<std::string> ModelDetail(uint32_t context) = 0;
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
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_TARGET_H_
