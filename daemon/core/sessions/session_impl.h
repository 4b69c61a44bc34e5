// The daemon's side of one session: its contexts, buffers and gate. Every value
// that comes in was chosen by a client and is checked here or below.

#ifndef DAEMON_CORE_SESSIONS_SESSION_IMPL_H_
#define DAEMON_CORE_SESSIONS_SESSION_IMPL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/accounts/share.h"
#include "daemon/core/accounts/tenant.h"
#include "daemon/core/contexts/context.h"
#include "daemon/core/memory/buffer_table.h"
#include "daemon/core/memory/sram.h"
#include "daemon/core/models/model_registry.h"
#include "daemon/core/running/job_gate_impl.h"
#include "daemon/core/running/runner_impl.h"
#include "daemon/core/scheduling/admission.h"
#include "daemon/core/scheduling/leases.h"
#include "daemon/core/sessions/common_limits.h"
#include "daemon/core/sessions/drain.h"
#include "daemon/core/sessions/open_sessions.h"
#include "daemon/core/sessions/session.h"
#include "daemon/core/terms/presence.h"
#include "driver/device.h"
#include "driver/memory/heap.h"
#include "driver/memory/physical.h"

namespace rknnd::core {

// Levels of what clients are told, of those of RKNN_LOG_LEVEL.
inline constexpr uint32_t kLogWarning = 2;
inline constexpr uint32_t kLogInfo = 3;

// What all sessions share. Thread: loop.
struct ServiceParts {
  driver::Device* device = nullptr;
  const driver::Heaps* heaps = nullptr;
  const driver::PhysicalMemory* physical = nullptr;  // null: none is allowed
  base::Executor* loop = nullptr;
  base::Executor* pager = nullptr;  // what takes long with memory
  LogSink* log = nullptr;           // the daemon's; or null
  SessionLimits limits;
  bool vendor_sharing = false;
  Drain drain;
  std::shared_ptr<Ledger> ledger;
  std::shared_ptr<Account> internal_memory;  // arenas
  std::shared_ptr<ModelRegistry> models;
  std::shared_ptr<RunnerImpl> runner;
  std::shared_ptr<Sram> sram;
  std::shared_ptr<BufferKeys> keys;

  // The service's own: nobody asks them once its session has ended.
  const OpenSessions* sessions = nullptr;
  const CommonLimits* common = nullptr;

  std::shared_ptr<Leases> leases;
  // The cores there are for streams.
  [[nodiscard]] Board board() const;

  [[nodiscard]] Paging paging() const { return {device, heaps, loop, pager}; }
};

// DDR bytes that so many bytes of SRAM save a run of a model.
using SramForecasts =
    std::map<std::pair<const LoadedModel*, uint64_t>, uint64_t>;

// open --End--> ended: owns nothing and refuses everything. Thread: loop.
class SessionImpl final : public Session,
                          public std::enable_shared_from_this<SessionImpl> {
 public:
  SessionImpl(SessionId id, SessionPeer peer,
              std::shared_ptr<const ServiceParts> parts,
              std::shared_ptr<Tenant> tenant, std::shared_ptr<Share> share,
              std::shared_ptr<CompletionSink> completions,
              std::shared_ptr<LogSink> log);

  [[nodiscard]] SessionId id() const override { return id_; }
  [[nodiscard]] const SessionPeer& peer() const override { return peer_; }
  [[nodiscard]] std::shared_ptr<JobGate> gate() const override { return gate_; }

  void CreateContext(const ContextRequest& request,
                     ContextCallback done) override;
  void UploadModel(ModelUpload upload, StatusCallback done) override;
  absl::Status DestroyContext(uint32_t context) override;
  void SetCoreMask(uint32_t context, uint32_t core_mask,
                   StatusCallback done) override;
  absl::StatusOr<ShapeChoice> SetShapes(
      uint32_t context, const std::vector<InputShape>& shapes) override;
  absl::Status Bind(const BindRequest& request) override;
  absl::Status BindFrame(const FrameRequest& request) override;
  absl::Status SetInternalMemory(const MemoryRequest& request) override;
  void SetWeightMemory(const MemoryRequest& request,
                       StatusCallback done) override;
  absl::Status RegisterFence(Fence fence) override;
  absl::Status ReleaseFence(uint32_t fence) override;
  absl::Status SetQueue(const QueueRequest& request) override;
  absl::StatusOr<Admission> Admit(const AdmissionRequest& request) override;
  void AllocateBuffer(uint32_t buffer, uint64_t size, uint32_t flags,
                      BufferCallback done) override;
  void ImportBuffer(uint32_t buffer, base::UniqueFd fd, uint64_t expected_size,
                    BufferCallback done) override;
  void ImportPhysical(uint32_t buffer, const PhysicalRange& range,
                      BufferCallback done) override;
  absl::Status ReleaseBuffer(uint32_t buffer) override;
  absl::StatusOr<KeyedBuffer> GetBufferKey(uint32_t buffer) override;
  absl::StatusOr<BufferInfo> AdoptBuffer(uint32_t buffer,
                                         const BufferKey& key) override;
  absl::Status SyncBuffer(uint32_t buffer, driver::CacheSide side) override;
  [[nodiscard]] absl::StatusOr<MemorySize> GetMemorySize(
      uint32_t context) const override;
  [[nodiscard]] absl::StatusOr<std::string> PerfDetail(
      uint32_t context) const override;
  [[nodiscard]] absl::StatusOr<std::vector<LayerRow>> PerfLayers(
      uint32_t context) const override;
  [[nodiscard]] absl::StatusOr<std::span<const driver::LayerInfo>> ModelLayers(
      uint32_t context) const override;
  [[nodiscard]] absl::StatusOr<std::string> ModelDetail(
      uint32_t context) const override;
  absl::Status ArmDump(uint32_t context) override;
  absl::StatusOr<DumpReport> TakeDump(uint32_t context) override;

  // Its streams that room is kept for, but that of one context.
  void AppendStreams(uint32_t but, std::vector<Stream>* streams) const;
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
  [[nodiscard]] uint32_t context_count() const;
  [[nodiscard]] uint32_t buffer_count() const;
  [[nodiscard]] const std::string& holder() const { return account_->holder(); }
  [[nodiscard]] const std::shared_ptr<Tenant>& tenant() const {
    return tenant_;
  }
  [[nodiscard]] Share& share() { return *share_; }
  // The service's limits have changed.
  void TakeLimits();
  // With what is on its way, and what only bindings and jobs still have.
  [[nodiscard]] uint32_t contexts_taken() const;
  [[nodiscard]] uint32_t buffers_taken() const { return buffers_.live(); }
  // Of this process, at most.
  [[nodiscard]] uint64_t descriptors_taken() const;
  // What SRAM saves its contexts, into the windows they have. What has been
  // worked out for the report is `known`.
  void AddSramSaved(SramReport* report, SramForecasts* known);
  // Weights and internal memory counted once per context.
  [[nodiscard]] uint64_t UnsharedModelBytes() const;

 private:
  // A line for the client's log and the daemon's.
  void Warn(const std::string& text) const;
  [[nodiscard]] absl::Status RequireOpen() const;
  static absl::Status NoContext(uint32_t number);
  static absl::Status NotForRuns(uint32_t number);
  [[nodiscard]] absl::Status CheckNewContext(uint32_t number) const;
  // INVALID_ARGUMENT, FAILED_PRECONDITION and the like before bytes are read.
  [[nodiscard]] absl::StatusOr<uint64_t> CheckUpload(
      const ModelUpload& upload) const;
  // Whose turn its models are loaded in.
  [[nodiscard]] LoadPayer payer() const;
  // Of one of its files: its size.
  [[nodiscard]] absl::StatusOr<uint64_t> CheckModelFile(
      const base::UniqueFd& bytes, const std::string& options,
      const std::string& what) const;
  // Whether the context is still awaited; not any more then.
  bool TakePending(uint32_t number, uint64_t token);
  // Its model is there: makes room for its jobs, then adds it.
  void PrepareContext(const ContextRequest& request, uint64_t token,
                      ModelUse use, ContextCallback done);
  // Whether arenas of that size may be made, before the first of them is.
  [[nodiscard]] absl::Status CheckRoom(const ArenaNeed& need) const;
  // `own_arena`: with vendor sharing. `begins`: where its first jobs run.
  const driver::ModelInfo* AddContext(const ContextRequest& request,
                                      ModelUse use,
                                      std::shared_ptr<Arena> own_arena,
                                      const CoreChoice& begins);
  // Jobs run on all of these cores when there is room.
  void WidenLater(const ContextRequest& request, const CoreChoice& cores);
  void MoveTo(uint32_t context, uint32_t core_mask, const CoreChoice& cores,
              StatusCallback done);
  // Of all contexts.
  void Unbind(const Buffer& buffer);
  // The buffer to fill, null for none; or why not.
  [[nodiscard]] absl::StatusOr<std::shared_ptr<Buffer>> CheckWeightMemory(
      const MemoryRequest& request) const;
  [[nodiscard]] absl::StatusOr<CoreChoice> CheckCoreMask(
      uint32_t context, uint32_t core_mask) const;
  void ChangeCoreMask(Context& context, uint32_t core_mask,
                      const CoreChoice& cores);
  // What a new context gets of the SRAM; how much that is, is logged.
  [[nodiscard]] SramLease TakeSram(const ContextRequest& request,
                                   const ContextTraits& traits,
                                   const LoadedModel& model,
                                   uint32_t cores) const;
  // Whether the session's tenant may have one more.
  [[nodiscard]] absl::Status CheckTenant(const CountLimit& limit,
                                         CommonKind kind) const;
  // The cores that its tenant may have (bits).
  [[nodiscard]] uint32_t MyCores() const;
  // PERMISSION_DENIED, when the cores of `core_mask` are not all among them.
  [[nodiscard]] absl::Status CheckMine(const CoreChoice& cores,
                                       uint32_t core_mask) const;
  // The mask to use in place of `core_mask`, which is one: that of a core of
  // mine, where any was left to us and not all are mine.
  uint32_t TakeMask(uint32_t core_mask);
  [[nodiscard]] const Context* FindContext(uint32_t number) const;
  // Of the shapes that its next run has.
  static uint32_t RowOf(const Context& context);

  const SessionId id_;
  const SessionPeer peer_;
  const std::shared_ptr<const ServiceParts> parts_;
  const std::shared_ptr<Tenant> tenant_;
  const std::shared_ptr<Share> share_;
  const std::shared_ptr<LogSink> log_;
  const std::shared_ptr<Account> account_;
  const std::shared_ptr<JobGateImpl> gate_;

  bool ended_ = false;
  Presence presence_;
  size_t abandoned_ = 0;
  uint64_t next_token_ = 1;
  uint32_t uploads_ = 0;
  uint32_t weight_copies_ = 0;
  PagerTurns turns_;
  BufferTable buffers_;
  // Contexts whose model or room to run is on its way, with a token that tells
  // one from a later one of the same number.
  std::map<uint32_t, uint64_t> pending_;
  std::map<uint32_t, Context> contexts_;
  // Room that is kept, by context.
  struct KeptStream {
    uint64_t rate_mhz = 0;
    Priority priority = Priority::kMedium;
    uint32_t core_mask = 0;  // the context's, unless it was named
  };
  std::map<uint32_t, KeptStream> streams_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSIONS_SESSION_IMPL_H_
