// The common kinds of task, quickly: convolutions of int8, depthwise or not,
// and flights of int8 through the output stages. Leaves the same bytes as the
// plain engine, or says that a task is not for it and has touched nothing.
//
// Keeps memory and tables from task to task. Thread: one at a time.

#ifndef DRIVER_RKNPU_EMULATOR_FAST_FAST_ENGINE_H_
#define DRIVER_RKNPU_EMULATOR_FAST_FAST_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/rknpu/emulator/access.h"
#include "driver/rknpu/emulator/core_state.h"
#include "driver/rknpu/emulator/fast/conv_band.h"
#include "driver/rknpu/emulator/fast/conv_weights.h"
#include "driver/rknpu/emulator/fast/stage_plan.h"
#include "driver/rknpu/emulator/kernels/kernels.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu::fast {

class FastEngine {
 public:
  FastEngine();
  explicit FastEngine(const Kernels& kernels) : kernels_(kernels) {}

  // True: the task was executed, or ended with the error in `access`.
  bool RunConv(const ConvSpec& conv, const OutputSpec& output,
               const Tables& tables, Access& access);
  bool RunFlight(const FlightSpec& flight, const Tables& tables,
                 Access& access);

 private:
  struct Target;
  void Convolve(const ConvSpec& conv, const OutputSpec& output,
                const Target& target, const int32_t* window_sums,
                Access& access);
  void FillIdle(const int32_t* window_sums, size_t count);
  void ConvolveDepthwise(const ConvSpec& conv, const OutputSpec& output,
                         const Target& target, Access& access);
  void Deliver(const ConvSpec& conv, const OutputSpec& output,
               const Target& target, uint32_t surface, size_t first,
               size_t count, const int32_t* sums, const int32_t* window_sums);

  const Kernels& kernels_;
  ConvBand band_;
  ConvWeights weights_;
  StagePlan plan_;
  TableBytes table_bytes_;
  std::vector<int32_t> depthwise_, sums_;
  std::vector<ptrdiff_t> offsets_;
  std::vector<const std::byte*> windows_;
  std::vector<int8_t> operands_, results_;
};

}  // namespace rknnd::rknpu::fast

#endif  // DRIVER_RKNPU_EMULATOR_FAST_FAST_ENGINE_H_
