// The output stages of the DPU, one value at a time, and the writer: part of
// the plain engine (plain_engine.h). What is computed is specs.h in arithmetic
// of 64 bits; numbers that outgrow even those end the task.

#ifndef DRIVER_RKNPU_EMULATOR_PLAIN_STAGES_H_
#define DRIVER_RKNPU_EMULATOR_PLAIN_STAGES_H_

#include <cstddef>
#include <cstdint>

#include "driver/rknpu/emulator/access.h"
#include "driver/rknpu/emulator/coefficients.h"
#include "driver/rknpu/emulator/core_state.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu {

// The value of the tables at `v`.
int64_t TableAt(const Tables& tables, const SlopeSpec& slopes, int64_t v);

class PlainStages {
 public:
  // All outlive the object. `channels` come to it.
  PlainStages(const OutputSpec& spec, uint32_t channels, const Tables& tables,
              Access& access);

  // Sixteen sums, or values, of channel 16 s on, and the sums of their windows
  // (null: none); writes one atom. False: the task ends.
  bool Put(uint32_t s, uint32_t y, uint32_t x, const int64_t* values,
           const int64_t* window_sums);
  // Eight float16 results, not yet rounded.
  bool PutHalf(uint32_t s, uint32_t y, uint32_t x, const double* values);

 private:
  int64_t Stage(const StageSpec& spec, const Coefficients& memory,
                bool add_first, size_t channel, int64_t v);
  int64_t ElementWise(int64_t v, int8_t operand);
  int8_t Convert(int64_t v);
  int64_t Add(int64_t a, int64_t b);
  int64_t Mul(int64_t a, int64_t b);
  int64_t Shift(int64_t v, uint32_t n);

  const OutputSpec& spec_;
  const Tables& tables_;
  Access& access_;
  Coefficients bs_, bn_;
  bool outgrown_ = false;
};

// A double as float16, to the nearest, halves to even.
uint16_t ToHalf(double value);
double FromHalf(uint16_t half);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_PLAIN_STAGES_H_
