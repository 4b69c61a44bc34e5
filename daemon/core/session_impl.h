// The daemon's side of one session: its contexts, buffers and gate. Every value
// that comes in was chosen by a client and is checked here or below.

#ifndef DAEMON_CORE_SESSION_IMPL_H_
#define DAEMON_CORE_SESSION_IMPL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/buffer_table.h"
#include "daemon/core/context.h"
#include "daemon/core/job_gate_impl.h"
#include "daemon/core/ledger.h"
#include "daemon/core/model_registry.h"
#include "daemon/core/runner_impl.h"
#include "daemon/core/session.h"
#include "daemon/core/sram.h"
#include "driver/device.h"
#include "driver/memory/heap.h"

namespace rknnd::core {

// What all sessions share. Thread: loop.
struct ServiceParts {
  driver::Device* device = nullptr;
  const driver::Heaps* heaps = nullptr;
  SessionLimits limits;
  bool vendor_sharing = false;
  bool draining = false;
  std::shared_ptr<Ledger> ledger;
  std::shared_ptr<Account> internal_memory;  // arenas
  std::shared_ptr<ModelRegistry> models;
  std::shared_ptr<RunnerImpl> runner;
  std::shared_ptr<Sram> sram;

  // Makes the arenas fit the models there are.
  absl::Status FitArenas() const {
    return runner->arenas().Fit(models->ArenaNeeds(device->info().cores));
  }
};

// open --End--> ended: owns nothing and refuses everything. Thread: loop.
class SessionImpl final : public Session,
                          public std::enable_shared_from_this<SessionImpl> {
 public:
  SessionImpl(SessionId id, SessionPeer peer,
              std::shared_ptr<const ServiceParts> parts,
              std::shared_ptr<CompletionSink> completions,
              std::shared_ptr<LogSink> log);

  [[nodiscard]] SessionId id() const override { return id_; }
  [[nodiscard]] const SessionPeer& peer() const override { return peer_; }
  [[nodiscard]] std::shared_ptr<JobGate> gate() const override { return gate_; }

  void CreateContext(const ContextRequest& request,
                     ContextCallback done) override;
  void UploadModel(ModelUpload upload, StatusCallback done) override;
  absl::Status DestroyContext(uint32_t context) override;
  absl::Status SetCoreMask(uint32_t context, uint32_t core_mask) override;
  absl::StatusOr<ShapeChoice> SetShapes(
      uint32_t context, const std::vector<InputShape>& shapes) override;
  absl::Status Bind(const BindRequest& request) override;
  absl::StatusOr<BufferInfo> AllocateBuffer(uint32_t buffer, uint64_t size,
                                            uint32_t flags) override;
  absl::StatusOr<BufferInfo> ImportBuffer(uint32_t buffer, base::UniqueFd fd,
                                          uint64_t expected_size) override;
  absl::Status ReleaseBuffer(uint32_t buffer) override;
  absl::Status SyncBuffer(uint32_t buffer, driver::CacheSide side) override;
  [[nodiscard]] absl::StatusOr<MemorySize> GetMemorySize(
      uint32_t context) const override;
  [[nodiscard]] absl::StatusOr<std::string> PerfDetail(
      uint32_t context) const override;
  [[nodiscard]] absl::StatusOr<std::vector<LayerRow>> PerfLayers(
      uint32_t context) const override;
  [[nodiscard]] absl::StatusOr<std::string> ModelDetail(
      uint32_t context) const override;
  absl::Status ArmDump(uint32_t context) override;
  absl::StatusOr<DumpReport> TakeDump(uint32_t context) override;

  // Gives up all it owns; a running job keeps what it needs.
  void End();
  // The daemon drains: jobs are answered with UNAVAILABLE.
  void Refuse() { gate_->Refuse(); }

  [[nodiscard]] SessionReport Report() const;
  void AppendContexts(std::vector<ContextReport>* reports) const;
  void AppendBuffers(std::vector<BufferReport>* reports) const;
  [[nodiscard]] uint32_t context_count() const;
  [[nodiscard]] uint32_t buffer_count() const;
  // Weights and internal memory counted once per context.
  [[nodiscard]] uint64_t UnsharedModelBytes() const;

 private:
  [[nodiscard]] absl::Status RequireOpen() const;
  [[nodiscard]] absl::Status CheckNewContext(uint32_t number) const;
  // INVALID_ARGUMENT, FAILED_PRECONDITION and the like before bytes are read.
  [[nodiscard]] absl::StatusOr<uint64_t> CheckUpload(
      const ModelUpload& upload) const;
  absl::StatusOr<const driver::ModelInfo*> AddContext(
      const ContextRequest& request, ModelUse use);
  // Makes room for jobs of `use`'s model on `cores`; undone when it fails.
  absl::Status Reach(ModelUse& use, uint32_t cores) const;
  [[nodiscard]] const Context* FindContext(uint32_t number) const;

  const SessionId id_;
  const SessionPeer peer_;
  const std::shared_ptr<const ServiceParts> parts_;
  const std::shared_ptr<LogSink> log_;
  const std::shared_ptr<Account> account_;
  const std::shared_ptr<JobGateImpl> gate_;

  bool ended_ = false;
  uint64_t next_token_ = 1;
  uint32_t uploads_ = 0;
  BufferTable buffers_;
  // Contexts whose model is being loaded, with a token that tells one from a
  // later one of the same number.
  std::map<uint32_t, uint64_t> pending_;
  std::map<uint32_t, Context> contexts_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSION_IMPL_H_
