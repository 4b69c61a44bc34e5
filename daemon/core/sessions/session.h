// One connected client process and all it owns: contexts and buffers, by the
// numbers the client chose. Another session's number does not exist here.
// Called by the transport with checked message shapes and unchecked values:
// every value that comes in was chosen by a client and is checked here or
// below.

#ifndef DAEMON_CORE_SESSIONS_SESSION_H_
#define DAEMON_CORE_SESSIONS_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/accounts/share.h"
#include "daemon/core/accounts/tenant.h"
#include "daemon/core/contexts/context.h"
#include "daemon/core/memory/buffer_key.h"
#include "daemon/core/memory/buffer_table.h"
#include "daemon/core/models/model_registry.h"
#include "daemon/core/running/job_gate.h"
#include "daemon/core/running/job_gate_impl.h"
#include "daemon/core/sessions/context_table.h"
#include "daemon/core/sessions/core_rights.h"
#include "daemon/core/sessions/model_uploads.h"
#include "daemon/core/sessions/service_parts.h"
#include "daemon/core/terms/presence.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

// open --End--> ended: owns nothing and refuses everything. Thread: loop.
// Callbacks are called on the loop, at once or later; not at all when the
// session is closed before.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using ContextCallback =
      std::function<void(absl::StatusOr<const driver::ModelInfo*>)>;
  using StatusCallback = std::function<void(absl::Status)>;
  using BufferCallback = std::function<void(absl::StatusOr<BufferInfo>)>;

  Session(SessionId id, SessionPeer peer,
          std::shared_ptr<const ServiceParts> parts,
          std::shared_ptr<Tenant> tenant, std::shared_ptr<Share> share,
          std::shared_ptr<CompletionSink> completions,
          std::shared_ptr<LogSink> log);

  [[nodiscard]] SessionId id() const { return id_; }
  [[nodiscard]] const SessionPeer& peer() const { return peer_; }
  // The gate for this session's jobs; stays valid, and refuses, after the
  // session has ended.
  [[nodiscard]] std::shared_ptr<JobGate> gate() const { return gate_; }
  // To ask about one of them; requests are made below.
  [[nodiscard]] const ContextTable& contexts() const { return contexts_; }

  // NOT_FOUND when the model is neither resident, loading nor in the cache
  // folder: the client uploads it and asks again.
  void CreateContext(const ContextRequest& request, ContextCallback done);
  // Hashes, compiles and keeps a model. Equal uploads at one time are loaded
  // once.
  void UploadModel(ModelUpload upload, StatusCallback done);
  absl::Status DestroyContext(uint32_t context);
  void SetCoreMask(uint32_t context, uint32_t core_mask, StatusCallback done);
  // Chooses the row of a model's listed shapes; in force from the next
  // submitted job on. Memory that is too small for it is unbound, which the
  // next job hears of. `shapes`: one for each input.
  absl::StatusOr<ShapeChoice> SetShapes(uint32_t context,
                                        const std::vector<InputShape>& shapes);
  // In force from the next submitted job on.
  absl::Status Bind(const BindRequest& request);
  absl::Status BindFrame(const FrameRequest& request);
  // Internal memory that the program brings, for a context that was made with
  // RKNN_FLAG_MEM_ALLOC_OUTSIDE or _INTERNAL_ALLOC_OUTSIDE. Contexts whose
  // memory overlaps never run at once, whoever they belong to.
  absl::Status SetInternalMemory(const MemoryRequest& request);
  // Fills the memory with the model's weights, once; nothing reads it here.
  void SetWeightMemory(const MemoryRequest& request, StatusCallback done);

  // What jobs name by these numbers from now on.
  absl::Status RegisterFence(Fence fence);
  // Jobs that wait for it, or will signal it, keep it.
  absl::Status ReleaseFence(uint32_t fence);
  // In force from the next submitted job on.
  absl::Status SetQueue(const QueueRequest& request);
  absl::StatusOr<Admission> Admit(const AdmissionRequest& request);

  // Large ones are made elsewhere, while the loop goes on; until then the
  // number is taken and nothing can be bound to it.
  void AllocateBuffer(uint32_t buffer, uint64_t size, uint32_t flags,
                      BufferCallback done);
  void ImportBuffer(uint32_t buffer, base::UniqueFd fd, uint64_t expected_size,
                    BufferCallback done);
  // Memory by its physical address, where the configuration allows it to the
  // session's user.
  void ImportPhysical(uint32_t buffer, const PhysicalRange& range,
                      BufferCallback done);
  // The number is free again at once; the memory when no binding and no job
  // uses it.
  absl::Status ReleaseBuffer(uint32_t buffer);
  // A name by which other sessions may use the memory; the same for each
  // question, and good until the number is free again.
  absl::StatusOr<KeyedBuffer> GetBufferKey(uint32_t buffer);
  // Another session's buffer as one of this session's: bound like its own, not
  // copied, not charged again. Its bindings go when the number is released, or
  // when the owner gives the buffer up, and the number with them; jobs that
  // were submitted before keep it to their ends.
  absl::StatusOr<BufferInfo> AdoptBuffer(uint32_t buffer, const BufferKey& key);
  // The program synchronises its cache with the memory.
  absl::Status SyncBuffer(uint32_t buffer, driver::CacheSide side);

  absl::StatusOr<MemorySize> GetMemorySize(uint32_t context) const;
  // The context's next job leaves the outputs of all its layers, which are to
  // be had by contexts().TakeDump().
  absl::Status ArmDump(uint32_t context);

  // Cores were lent: answers queued jobs that can run nowhere else.
  void AnswerStranded() { gate_->AnswerStranded(); }

  // Gives up all it owns; a running job keeps what it needs.
  void End();
  // Jobs that had not been answered when it ended.
  [[nodiscard]] size_t abandoned() const { return abandoned_; }
  // While the daemon drains, jobs are answered with UNAVAILABLE.
  void SetRefusing(bool refusing) { gate_->SetRefusing(refusing); }

  [[nodiscard]] SessionReport Report() const;
  void AppendContexts(std::vector<ContextReport>* reports) const;
  void AppendBuffers(std::vector<BufferReport>* reports) const;
  [[nodiscard]] uint32_t buffer_count() const {
    return static_cast<uint32_t>(buffers_.all().size());
  }
  [[nodiscard]] const std::string& holder() const { return account_->holder(); }
  [[nodiscard]] const std::shared_ptr<Tenant>& tenant() const {
    return tenant_;
  }
  [[nodiscard]] Share& share() { return *share_; }
  // The service's limits have changed.
  void TakeLimits();
  // With what is on its way, and what only bindings and jobs still have.
  [[nodiscard]] uint32_t buffers_taken() const { return buffers_.live(); }
  // Of this process, at most.
  [[nodiscard]] uint64_t descriptors_taken() const;

 private:
  // A line for the client's log and the daemon's.
  void Warn(const std::string& text) const;
  [[nodiscard]] absl::Status RequireOpen() const;
  // The context of an open session.
  [[nodiscard]] absl::StatusOr<Context*> OpenContext(uint32_t number);
  [[nodiscard]] absl::Status CheckNewContext(uint32_t number) const;
  // Whose turn its models are loaded in.
  [[nodiscard]] LoadPayer payer() const;
  // Its model is there: makes room for its jobs, then adds it.
  void PrepareContext(const ContextRequest& request, uint64_t token,
                      ModelUse use, ContextCallback done);
  // `own_arena`: with vendor sharing. `begins`: where its first jobs run.
  const driver::ModelInfo* AddContext(const ContextRequest& request,
                                      ModelUse use,
                                      std::shared_ptr<Arena> own_arena,
                                      const CoreChoice& begins);
  // Jobs run on all of these cores when there is room.
  void WidenLater(const ContextRequest& request, const CoreChoice& cores);
  void MoveTo(uint32_t context, uint32_t core_mask, const CoreChoice& cores,
              StatusCallback done);
  // The buffer to fill, null for none; or why not.
  [[nodiscard]] absl::StatusOr<std::shared_ptr<Buffer>> CheckWeightMemory(
      const MemoryRequest& request);
  // Whether the session's tenant may have one more.
  [[nodiscard]] absl::Status CheckTenant(const CountLimit& limit,
                                         CommonKind kind) const;

  const SessionId id_;
  const SessionPeer peer_;
  const std::shared_ptr<const ServiceParts> parts_;
  const std::shared_ptr<Tenant> tenant_;
  const std::shared_ptr<Share> share_;
  const std::shared_ptr<LogSink> log_;
  const std::shared_ptr<Account> account_;
  const std::shared_ptr<JobGateImpl> gate_;
  const CoreRights rights_;

  bool ended_ = false;
  size_t abandoned_ = 0;
  uint32_t weight_copies_ = 0;
  ModelUploads uploads_;
  PagerTurns turns_;
  BufferTable buffers_;
  ContextTable contexts_;
  Presence presence_;  // until it has ended
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSIONS_SESSION_H_
