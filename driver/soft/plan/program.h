// One shape row of a model, ready to run: a list of steps over an arena.
// Immutable; any number of workers run it at once, each with its own arena and
// scratch.

#ifndef DRIVER_SOFT_PLAN_PROGRAM_H_
#define DRIVER_SOFT_PLAN_PROGRAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "driver/device.h"
#include "driver/soft/gang.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/kernels/stop.h"
#include "driver/soft/plan/io_port.h"
#include "driver/soft/plan/layer_dump.h"
#include "driver/soft/timing/layer_cost.h"

namespace rknnd::soft {

// Where a step finds a tensor.
struct Operand {
  enum class Kind : uint8_t { kNone, kArena, kConstant };
  Kind kind = Kind::kNone;
  uint64_t offset = 0;                  // kArena
  const std::byte* constant = nullptr;  // kConstant
};

struct Step {
  enum class Kind : uint8_t { kInput, kKernel, kOutput };
  Kind kind = Kind::kKernel;
  uint32_t layer = 0;              // index in ProgramInfo::layers
  uint32_t port = 0;               // kInput, kOutput
  const Kernel* kernel = nullptr;  // kKernel; the model's
  // Ranges of Program::operands: inputs, then outputs.
  uint32_t first_operand = 0, inputs = 0, outputs = 0;
};

// Scratch for the transfer of an input of this shape, frames included, of which
// there may be one in place of any image. Pages of it that are not used cost
// nothing.
size_t InputScratch(const Shape& shape);

// A camera's frame to the tensor of an image input, which is `inside`;
// `scratch` is as large as InputScratch says. DATA_LOSS: a plane went away.
absl::Status ReadFrame(const IoPort& port, const driver::Frame& frame,
                       const TensorSpec& inside, std::byte* tensor,
                       std::byte* scratch);

// What one run works with.
struct RunMemory {
  std::byte* arena = nullptr;    // ProgramInfo::internal_size bytes
  std::byte* scratch = nullptr;  // Program::scratch_size bytes
  std::span<const driver::TensorBinding> inputs, outputs;  // AttachedMemory
  Gang* gang = nullptr;  // cores that share the layers that can be shared
  driver::LayerSink* sink = nullptr;  // of runs that are dumped
  const StopSignal* stop = nullptr;   // whether to go on; null: to the end
  // Of RunSlices: a page of the arena went away.
  std::atomic<bool>* torn = nullptr;
};

struct Program {
  driver::ProgramInfo info;
  std::vector<IoPort> inputs, outputs;
  std::vector<Step> steps;
  std::vector<Operand> operands;
  // What lies behind each port, as it is inside.
  std::vector<TensorSpec> input_tensors, output_tensors;
  // What a run that is dumped shows, by step.
  std::vector<DumpedOperand> dumped;
  // What each layer takes on the SoC; jobs are paced by it.
  std::vector<LayerTime> times;
  // Why the steps end before the outputs: an operator of a foreign domain.
  absl::Status stop;
  uint64_t scratch_size = 0;

  // Thread: worker. Allocates nothing unless it fails. DATA_LOSS naming the
  // binding, or the arena, when a client's memory goes away under it.
  // Nothing in the arena is trusted: a client may change it meanwhile.
  // `layer_times` is empty or has a place for each layer.
  absl::Status Run(const RunMemory& memory, std::span<int64_t> layer_times,
                   const base::Clock& clock) const {
    return RunSlices(0, info.batch, memory, layer_times, clock);
  }
  // Slices `first` to `first + count` of ProgramInfo::batch alone: they share
  // nothing, so that several cores may run a part each, with arena and scratch
  // of their own and the same inputs and outputs. `layer_times` get the sum.
  absl::Status RunSlices(uint32_t first, uint32_t count,
                         const RunMemory& memory,
                         std::span<int64_t> layer_times,
                         const base::Clock& clock) const;

 private:
  [[nodiscard]] std::span<std::byte> ArenaOf(const RunMemory& memory) const {
    return {memory.arena, static_cast<size_t>(info.internal_size)};
  }
  absl::Status RunSteps(uint32_t slice, const RunMemory& memory,
                        std::span<int64_t> layer_times,
                        const base::Clock& clock) const;
  absl::Status Transfer(const Step& step, uint32_t slice,
                        const RunMemory& memory) const;
  absl::Status Compute(const Step& step, const RunMemory& memory) const;
  // Tells memory.sink what the step has left.
  absl::Status Show(const Step& step, const RunMemory& memory) const;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_PROGRAM_H_
