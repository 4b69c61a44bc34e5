// The output stages of one task, made ready for the loops of kernels.h: numbers
// of all channels in the order they are read, and a proof that doubles hold
// every value that can occur exactly, so that the result is that of integers
// of any size. A task without that proof is left to the plain engine.
//
// Thread: one at a time.

#ifndef DRIVER_RKNPU_EMULATOR_FAST_STAGE_PLAN_H_
#define DRIVER_RKNPU_EMULATOR_FAST_STAGE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/rknpu/emulator/access.h"
#include "driver/rknpu/emulator/core_state.h"
#include "driver/rknpu/emulator/kernels/kernels.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu::fast {

// The tables together with the conversion behind them, one byte for each value
// that they cover. Kept from task to task: those of a node use the same.
class TableBytes {
 public:
  static constexpr int32_t kEnd = 16384;  // from -kEnd to kEnd

  // Of value v: result[v + kEnd].
  const int8_t* Of(const Tables& tables, const ConvertSpec& convert,
                   const Kernels& kernels);

 private:
  uint64_t version_ = 0;
  ConvertSpec convert_;
  std::vector<int8_t> bytes_;
};

// What a stage's sums can be, by magnitude.
struct SumBounds {
  uint64_t sum = 0;         // of products, or a value
  uint64_t window_sum = 0;  // of a window's values
};

class StagePlan {
 public:
  // False: not for the fast engine. `ow_offset` is added to each channel's ow:
  // what the form of the products leaves to correct. Everything is read here.
  bool Make(const OutputSpec& spec, uint32_t channels, const SumBounds& bounds,
            int32_t ow_offset, const Tables& tables, TableBytes& table_bytes,
            const Kernels& kernels, Access& access);

  [[nodiscard]] bool uses_window_sums() const { return uses_window_sums_; }
  // The whole ow of a channel, for sums that are made with it.
  [[nodiscard]] int32_t OwOf(size_t channel) const {
    return static_cast<int32_t>(ow_[channel]);
  }
  // Sums come with ow in them already.
  void ForgetOw();
  // Every channel is treated alike and there is no operand.
  [[nodiscard]] bool is_function_of_byte() const { return uniform_; }

  // Fills the job's parameters of surface `s` and runs it: `job` has count,
  // sums or values, window_sums, operands and out.
  void Run(uint32_t s, StageJob job);

 private:
  bool Prove(const OutputSpec& spec, const SumBounds& bounds) const;
  void RunTable(const StageJob& job);

  const Kernels* kernels_ = nullptr;
  std::vector<uint32_t> ow_, bias_;
  std::vector<double> bs_factor_, bn_factor_, bn_addend_;
  StageJob common_;
  bool uses_window_sums_ = false, uniform_ = false;
  // With a table.
  const int8_t* table_ = nullptr;
  TableEnds ends_;
  std::vector<double> values_;
  std::vector<int32_t> places_;
};

}  // namespace rknnd::rknpu::fast

#endif  // DRIVER_RKNPU_EMULATOR_FAST_STAGE_PLAN_H_
