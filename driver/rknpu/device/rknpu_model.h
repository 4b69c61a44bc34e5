// A compiled model that is ready to run: checked, its constants in the NPU's
// memory once, its commands there once for each core.
//
//   Load      file -> placement -> schedules -> check -> ports, CPU nodes
//   Run       inputs -> internal memory, steps of the schedule, outputs
//
// A job works in the internal memory that it brings; the tensors of the file
// lie at the file's own offsets in it. Everything that comes from programs is
// converted into and out of it, so the NPU never touches their memory.
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
#include "base/posix/mapping.h"
#include "driver/device.h"
#include "driver/rknpu/backend.h"
#include "driver/rknpu/device/cpu_node.h"
#include "driver/rknpu/device/port.h"
#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/placement.h"
#include "driver/rknpu/relocated_commands.h"
#include "driver/rknpu/schedule.h"

namespace rknnd::rknpu {

class RknpuModel final : public driver::Model {
 public:
  // `backend` outlives the model; it is an NPU of `platform` with `cores`.
  // Errors name what the file has that cannot be run.
  static absl::StatusOr<std::unique_ptr<RknpuModel>> Load(
      const driver::LoadRequest& request, const std::string& platform,
      uint32_t cores, Backend& backend);

  [[nodiscard]] const driver::ModelInfo& info() const override { return info_; }
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t program, driver::Direction direction, uint32_t index,
      const driver::TensorFormat& format) const override;
  [[nodiscard]] absl::StatusOr<driver::FrameSizes> CheckFrame(
      uint32_t program, uint32_t index,
      const driver::FrameFormat& frame) const override;
  absl::Status CopyWeights(driver::Memory& to, uint64_t offset) const override;

  // `stop_too` is looked at beside the job's own.
  absl::Status Run(const driver::JobRequest& job, const base::Clock& clock,
                   const std::atomic<bool>* stop_too) const;

 private:
  // What a core needs to run the model.
  struct Core {
    std::unique_ptr<PlacedMemory> private_memory, commands;
    std::unique_ptr<RelocatedCommands> relocated;
    std::unique_ptr<PlacedTasks> table;
    base::Mapping scratch;  // of conversions
  };
  // One run, as its steps see it.
  struct Running;

  RknpuModel() = default;
  absl::Status MakePorts();
  absl::Status MakeSteps(uint32_t cores);
  absl::Status PlaceConstants(Backend& backend);
  absl::Status MakeCores(uint32_t cores, Backend& backend);
  void Describe(const std::string& name);

  absl::Status RunSlice(Running& run, uint32_t slice) const;
  absl::Status RunStep(Running& run, const Step& step) const;
  absl::Status RunPiece(Running& run, const Piece& piece) const;
  absl::Status RunTasks(Running& run, const Piece& piece) const;
  absl::Status RunCpuNode(Running& run, uint32_t node) const;
  absl::Status RunPorts(Running& run, uint32_t slice,
                        driver::Direction direction) const;
  absl::Status EndNode(Running& run, uint32_t node) const;
  absl::Status Show(Running& run, uint32_t node) const;
  std::byte* Locate(const Running& run, uint32_t tensor) const;

  Backend* backend_ = nullptr;
  driver::ModelInfo info_;
  ProgramFile file_;  // its constants are gone after Load
  Placement placement_;
  std::optional<AddressWords> address_words_;
  std::vector<Port> inputs_, outputs_;
  // By node; only those of the CPU have one.
  std::vector<std::optional<CpuNode>> cpu_nodes_;
  // For one core, two and three; empty where the file has none.
  std::array<std::vector<Step>, kMostCores> schedules_;
  std::unique_ptr<PlacedMemory> constants_;
  std::vector<std::unique_ptr<Core>> cores_;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_DEVICE_RKNPU_MODEL_H_
