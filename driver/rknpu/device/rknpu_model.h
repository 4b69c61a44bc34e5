// A compiled model that is ready to run: checked, its constants in the NPU's
// memory once, its commands there once for each core.
//
//   Load      file -> placement -> schedules -> check -> ports, CPU nodes ->
//             memory -> survey (what each task costs, and that it can be run)
//   Run       inputs -> internal memory, steps of the schedule, outputs
//
// A job works in the internal memory that it brings; the tensors of the file
// lie at the file's own offsets in it. An input or output whose memory is laid
// out as the NPU has it is used where it is: the job changes the few words that
// name it. Every other one is converted into internal memory, or out of it.
//
// Thread: Load on any; Run on a worker, one at a time for each core.

#ifndef DRIVER_RKNPU_DEVICE_RKNPU_MODEL_H_
#define DRIVER_RKNPU_DEVICE_RKNPU_MODEL_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "driver/device.h"
#include "driver/rknpu/backend.h"
#include "driver/rknpu/checker.h"
#include "driver/rknpu/device/cpu_node.h"
#include "driver/rknpu/device/custom_parts.h"
#include "driver/rknpu/device/port.h"
#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/placement.h"
#include "driver/rknpu/relocated_commands.h"
#include "driver/rknpu/schedule.h"
#include "driver/soft/attached_memory.h"

namespace rknnd::rknpu {

// What models have to know of the NPU.
struct NpuInfo {
  std::string platform;  // "rk3588"
  uint32_t cores = 1;
  uint32_t mhz = 0;         // of a core, at most; 0: unknown
  uint64_t sram_bytes = 0;  // 0: it has none
};

class RknpuModel final : public driver::Model {
 public:
  // `backend` outlives the model; it is the NPU that `npu` tells of. Errors
  // name what the file has that cannot be run.
  static absl::StatusOr<std::unique_ptr<RknpuModel>> Load(
      const driver::LoadRequest& request, const NpuInfo& npu, Backend& backend);

  [[nodiscard]] const driver::ModelInfo& info() const override { return info_; }
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t program, driver::Direction direction, uint32_t index,
      const driver::TensorFormat& format) const override;
  [[nodiscard]] absl::StatusOr<driver::FrameSizes> CheckFrame(
      uint32_t program, uint32_t index,
      const driver::FrameFormat& frame) const override;
  [[nodiscard]] driver::SramPlan PlanSram(uint32_t program,
                                          uint64_t bytes) const override;
  absl::Status CopyWeights(driver::Memory& to, uint64_t offset) const override;
  // The file's weights, and all that it takes to run them: what the compiler
  // generated, and commands and private memory of each core.
  [[nodiscard]] uint64_t held_weights() const override { return held_; }
  // Of conversions, for each job.
  [[nodiscard]] size_t scratch_bytes() const { return scratch_bytes_; }

  // What a run has beside its job.
  struct Around {
    const base::Clock* clock = nullptr;
    const std::atomic<bool>* stop_too = nullptr;  // beside the job's own
    std::byte* scratch = nullptr;                 // scratch_bytes()
  };
  absl::Status Run(const driver::JobRequest& job, const Around& around) const;
  // So many of its jobs did not end since the last one that did at once.
  [[nodiscard]] uint32_t hangs() const { return hangs_.load(); }
  void CountHang() const { ++hangs_; }
  void CountEnd() const {
    if (hangs_.load(std::memory_order_relaxed) != 0) hangs_ = 0;
  }

 private:
  // What a core needs to run the model.
  struct Core {
    std::unique_ptr<PlacedMemory> private_memory, commands;
    std::unique_ptr<RelocatedCommands> relocated;
    std::unique_ptr<PlacedTasks> table;
  };
  // One run, as its steps see it.
  struct Running;

  RknpuModel() = default;
  absl::Status MakePorts();
  // What a program computes itself, and which part of the file this is.
  absl::Status CutAtCustomOperators(const driver::LoadRequest& request);
  absl::Status MakeSteps(uint32_t cores);
  void AllowDirect(const CheckedPorts& checked);
  absl::Status PlaceConstants(Backend& backend);
  absl::Status MakeCores(uint32_t cores, Backend& backend);
  absl::Status Survey(Backend& backend);
  absl::Status SurveyPiece(const Piece& piece, Backend& backend,
                           std::vector<TaskCost>& costs) const;
  void Describe(const std::string& name, const NpuInfo& npu);

  void BindPorts(Running& run) const;
  void MoveTensors(Running& run) const;
  absl::Status RunStep(Running& run, const Step& step) const;
  absl::Status RunPiece(Running& run, const Piece& piece) const;
  absl::Status RunTasks(Running& run, const Piece& piece) const;
  absl::Status RunCpuNode(Running& run, uint32_t node) const;
  absl::Status RunPorts(Running& run, driver::Direction direction) const;
  // The input that is this output too, of a part.
  [[nodiscard]] std::optional<size_t> PassedFrom(size_t output) const;
  absl::Status EndNode(Running& run, uint32_t node) const;
  absl::Status Show(Running& run, uint32_t node) const;
  // A part of attached memory, for the NPU.
  absl::StatusOr<std::unique_ptr<PlacedMemory>> Place(
      const soft::AttachedMemory& memory, std::span<std::byte> bytes) const;
  absl::Status Sync(const Running& run, uint32_t tensor, SyncSide side) const;
  // The words that were changed since the core's last job.
  absl::Status SyncCommands(Running& run) const;
  std::byte* Locate(const Running& run, uint32_t tensor) const;

  Backend* backend_ = nullptr;
  driver::ModelInfo info_;
  ProgramFile file_;  // its constants are gone after Load
  CustomParts custom_;
  std::optional<uint32_t> part_;  // nothing: the whole file
  absl::Status stop_;  // why no job of the whole can run: who computes it?
  Placement placement_;
  std::optional<AddressWords> address_words_;
  std::vector<Port> inputs_, outputs_;
  // By node; only those of the CPU have one.
  std::vector<std::optional<CpuNode>> cpu_nodes_;
  // For one core, two and three; empty where the file has none.
  std::array<std::vector<Step>, kMostCores> schedules_;
  std::unique_ptr<PlacedMemory> constants_;
  std::vector<std::unique_ptr<Core>> cores_;
  // By node, of a run on one core.
  std::vector<TaskCost> costs_;
  uint64_t held_ = 0;
  size_t scratch_bytes_ = 0;
  mutable std::atomic<uint32_t> hangs_{0};
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_DEVICE_RKNPU_MODEL_H_
