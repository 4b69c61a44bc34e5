// One task by both engines, each on its own copy of the same memory: they must
// end alike, and leave the same bytes when they end well. For tests with random
// tasks and for the fuzzer.

#ifndef DRIVER_RKNPU_EMULATOR_TESTING_BOTH_ENGINES_H_
#define DRIVER_RKNPU_EMULATOR_TESTING_BOTH_ENGINES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/rknpu/emulator/kernels/kernels.h"
#include "driver/rknpu/emulator/testing/arena.h"
#include "driver/rknpu/emulator/testing/task_builder.h"

namespace rknnd::rknpu::testing {

// A task with the tables that it may use.
struct AnyTask {
  uint32_t mask = kFlightMask;
  RegisterValues registers;
  bool loads_tables = false;
};

// A task of some kind, with everything about it chosen by `choose`, which gives
// a number below its argument. It works in an Arena of kArenaBytes.
inline constexpr uint32_t kArenaBytes = 0x8000;
AnyTask ChooseTask(const std::function<uint32_t(uint32_t)>& choose);

struct Comparison {
  bool ran = false;        // both ended well
  bool fast = false;       // the fast engine did it
  std::string difference;  // empty: none
  std::string refusal;
};
// `fill`: what the memory holds, repeated.
Comparison RunBoth(const AnyTask& task, const std::vector<uint8_t>& fill,
                   const fast::Kernels& kernels);

// One engine (`kernels` null: the plain one) on a task whose job is stopped
// already when the engine begins. True: it ended with CANCELLED.
bool EndsWhenStopped(const AnyTask& task, const fast::Kernels* kernels);

}  // namespace rknnd::rknpu::testing

#endif  // DRIVER_RKNPU_EMULATOR_TESTING_BOTH_ENGINES_H_
