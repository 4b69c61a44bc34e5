// One connected client process and all it owns: contexts and buffers, by the
// numbers the client chose. Another session's number does not exist here.
// Called by the transport with checked message shapes and unchecked values.

#ifndef DAEMON_CORE_SESSIONS_SESSION_H_
#define DAEMON_CORE_SESSIONS_SESSION_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/contexts/layer_dump.h"
#include "daemon/core/memory/buffer_key.h"
#include "daemon/core/reports/perf_report.h"
#include "daemon/core/running/job_gate.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

// Thread: loop. Callbacks are called on the loop, at once or later; not at all
// when the session is closed before.
class Session {
 public:
  using ContextCallback =
      std::function<void(absl::StatusOr<const driver::ModelInfo*>)>;
  using StatusCallback = std::function<void(absl::Status)>;
  using BufferCallback = std::function<void(absl::StatusOr<BufferInfo>)>;

  virtual ~Session() = default;

  [[nodiscard]] virtual SessionId id() const = 0;
  [[nodiscard]] virtual const SessionPeer& peer() const = 0;
  // The gate for this session's jobs; stays valid, and refuses, after the
  // session has ended.
  [[nodiscard]] virtual std::shared_ptr<JobGate> gate() const = 0;

  // NOT_FOUND when the model is neither resident, loading nor in the cache
  // folder: the client uploads it and asks again.
  virtual void CreateContext(const ContextRequest& request,
                             ContextCallback done) = 0;
  // Hashes, compiles and keeps a model. Equal uploads at one time are loaded
  // once.
  virtual void UploadModel(ModelUpload upload, StatusCallback done) = 0;
  virtual absl::Status DestroyContext(uint32_t context) = 0;
  virtual void SetCoreMask(uint32_t context, uint32_t core_mask,
                           StatusCallback done) = 0;
  // Chooses the row of a model's listed shapes; in force from the next
  // submitted job on. Memory that is too small for it is unbound, which the
  // next job hears of. `shapes`: one for each input.
  virtual absl::StatusOr<ShapeChoice> SetShapes(
      uint32_t context, const std::vector<InputShape>& shapes) = 0;
  // In force from the next submitted job on.
  virtual absl::Status Bind(const BindRequest& request) = 0;
  virtual absl::Status BindFrame(const FrameRequest& request) = 0;
  // Internal memory that the program brings, for a context that was made with
  // RKNN_FLAG_MEM_ALLOC_OUTSIDE or _INTERNAL_ALLOC_OUTSIDE. Contexts whose
  // memory overlaps never run at once, whoever they belong to.
  virtual absl::Status SetInternalMemory(const MemoryRequest& request) = 0;
  // Fills the memory with the model's weights, once; nothing reads it here.
  virtual void SetWeightMemory(const MemoryRequest& request,
                               StatusCallback done) = 0;

  // What jobs name by these numbers from now on.
  virtual absl::Status RegisterFence(Fence fence) = 0;
  // Jobs that wait for it, or will signal it, keep it.
  virtual absl::Status ReleaseFence(uint32_t fence) = 0;
  // In force from the next submitted job on.
  virtual absl::Status SetQueue(const QueueRequest& request) = 0;
  virtual absl::StatusOr<Admission> Admit(const AdmissionRequest& request) = 0;

  // Large ones are made elsewhere, while the loop goes on; until then the
  // number is taken and nothing can be bound to it.
  virtual void AllocateBuffer(uint32_t buffer, uint64_t size, uint32_t flags,
                              BufferCallback done) = 0;
  virtual void ImportBuffer(uint32_t buffer, base::UniqueFd fd,
                            uint64_t expected_size, BufferCallback done) = 0;
  // Memory by its physical address, where the configuration allows it to the
  // session's user.
  virtual void ImportPhysical(uint32_t buffer, const PhysicalRange& range,
                              BufferCallback done) = 0;
  // The number is free again at once; the memory when no binding and no job
  // uses it.
  virtual absl::Status ReleaseBuffer(uint32_t buffer) = 0;
  // A name by which other sessions may use the memory; the same for each
  // question, and good until the number is free again.
  virtual absl::StatusOr<KeyedBuffer> GetBufferKey(uint32_t buffer) = 0;
  // Another session's buffer as one of this session's: bound like its own, not
  // copied, not charged again. Its bindings go when the number is released, or
  // when the owner gives the buffer up, and the number with them; jobs that
  // were submitted before keep it to their ends.
  virtual absl::StatusOr<BufferInfo> AdoptBuffer(uint32_t buffer,
                                                 const BufferKey& key) = 0;
  // The program synchronises its cache with the memory.
  virtual absl::Status SyncBuffer(uint32_t buffer, driver::CacheSide side) = 0;

  virtual absl::StatusOr<MemorySize> GetMemorySize(uint32_t context) const = 0;
  // The per-layer text of the last run; says so when nothing was recorded.
  virtual absl::StatusOr<std::string> PerfDetail(uint32_t context) const = 0;
  // The rows of that text; they point into the context's model.
  virtual absl::StatusOr<std::vector<LayerRow>> PerfLayers(
      uint32_t context) const = 0;
  // The model's layers in the shape that is chosen, whether they ran or not;
  // they are the context's model's.
  virtual absl::StatusOr<std::span<const driver::LayerInfo>> ModelLayers(
      uint32_t context) const = 0;
  // What the model is and where its tensors lie, as text.
  virtual absl::StatusOr<std::string> ModelDetail(uint32_t context) const = 0;

  // The context's next job leaves the outputs of all its layers...
  virtual absl::Status ArmDump(uint32_t context) = 0;
  // ...which are to be had here, once.
  virtual absl::StatusOr<DumpReport> TakeDump(uint32_t context) = 0;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSIONS_SESSION_H_
