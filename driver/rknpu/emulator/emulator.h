// The NPU of the RK3588 on a CPU: executes its register programs and leaves the
// bytes in memory that the hardware leaves there. It is a witness for what
// executes compiled models: it shares no arithmetic with it, nor with the
// software NPU, and computes only what is known of the hardware. A register, a
// value or a combination that is not known ends the job with UNIMPLEMENTED and
// a text that names core, task, node, block, register and value.
//
// Programs are not trusted. No access leaves the memory that the job was given
// (OUT_OF_RANGE names task, register and address), no chain is followed further
// than the tasks that the job names, and a long task can be stopped.
//
//   tasks of a job --> banks of registers --> one description of the task
//        (machine)        (delta tasks)       (conv, reader, output, pool)
//                                                   |
//                          plain engine  <---------+--------->  fast engine
//               one value at a time, as a manual      the same bytes, for the
//               of the registers would tell it        common kinds of task
//
// Used by the back end of driver/rknpu that needs no hardware, and by tests.

#ifndef DRIVER_RKNPU_EMULATOR_EMULATOR_H_
#define DRIVER_RKNPU_EMULATOR_EMULATOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "driver/rknpu/emulator/memory.h"

namespace rknnd::rknpu {

inline constexpr size_t kCores = 3;

// One entry of a task table, without what the hardware does not look at.
struct Task {
  uint32_t node = 0;            // for messages only
  uint32_t enable_mask = 0;     // 0x1d, 0x0d, 0x18 or 0x60
  uint32_t interrupt_mask = 0;  // 0x300, or 0xc00 of pooling
  uint32_t words = 0;           // commands, without the four of the chain
  uint64_t commands = 0;        // NPU address of the first
};

// What a task did, from its registers: for reports and schedules.
struct TaskReport {
  uint32_t core = 0;
  uint32_t task = 0;  // position in the core's list
  uint32_t node = 0;
  uint32_t enable_mask = 0;
  uint64_t macs = 0;  // multiplications with an addition
  uint64_t bytes_read = 0, bytes_written = 0;
  // At least so many of the NPU's clock: the longer one of computing and of
  // moving bytes. An estimate: the hardware's stalls are not modelled.
  uint64_t cycles = 0;
  uint64_t computing = 0, moving = 0;
  bool fast = false;  // which engine computed it, or is likely to
};

enum class Engine : uint8_t {
  kFast,   // where it knows the kind of task, else the plain one
  kPlain,  // reads like the register manual; some fifty times slower
};

struct RunOptions {
  Engine engine = Engine::kFast;
  // False: the tasks are read, checked and counted, and touch no memory but
  // their commands.
  bool executes = true;
  // Looked at between tasks and every few milliseconds inside them; once one of
  // them holds true the job ends with CANCELLED and its outputs are undefined.
  // Null: not looked at.
  const std::atomic<bool>* stop = nullptr;
  const std::atomic<bool>* stop_too = nullptr;
  // One entry is appended for each task that was executed, or counted.
  std::vector<TaskReport>* report = nullptr;
};

// One NPU. Thread: any; two jobs at once must use different cores.
class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Executes one job: list i on core i, an empty list leaves its core alone, at
  // most kCores lists. The cores step together, task by task, as the hardware's
  // rendezvous between the tasks of a split node makes them. All registers of
  // the cores in use are empty at the beginning. Returns when the job is done.
  absl::Status Run(const Memory& memory,
                   std::span<const std::span<const Task>> cores,
                   const RunOptions& options);

 private:
  struct Core;
  std::array<std::unique_ptr<Core>, kCores> cores_;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_EMULATOR_H_
