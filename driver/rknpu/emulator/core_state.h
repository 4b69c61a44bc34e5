// What one core of the NPU keeps from task to task: two banks of registers for
// each block, which of them is the next to be written, and the tables. A task
// that leaves a register out gets the value of the task before last that used
// the block; programs rely on it.
//
// Commands are not trusted: what is no known register of a block that the task
// enables is refused. Thread: one at a time.

#ifndef DRIVER_RKNPU_EMULATOR_CORE_STATE_H_
#define DRIVER_RKNPU_EMULATOR_CORE_STATE_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/emulator/memory.h"
#include "driver/rknpu/emulator/task_registers.h"

namespace rknnd::rknpu {

// The two tables of the DPU: LE for negative values, LO for the others.
struct Tables {
  static constexpr size_t kEntries = 513;
  std::array<std::array<int16_t, kEntries>, 2> entries = {};
  std::array<std::bitset<kEntries>, 2> loaded;
  uint64_t version = 0;  // another one after each change

  [[nodiscard]] bool complete() const {
    return loaded[0].all() && loaded[1].all();
  }
};

class CoreState {
 public:
  // Empties banks and tables.
  void Reset();

  // Writes the task's commands into the banks. `next`: the task that follows
  // in the job, which the chain must lead to; null: none. `others`: how many
  // cores step with this one.
  absl::Status Load(const Task& task, const Task* next, size_t others,
                    const Memory& memory);
  // What the task that was loaded is executed with.
  [[nodiscard]] TaskRegisters Registers(const Task& task) const;
  // The task was executed: the pointers of its blocks move on.
  void Finish(const Task& task);

  [[nodiscard]] const Tables& tables() const { return tables_; }

 private:
  absl::Status Points(const Task& task, const std::byte* words);
  absl::Status Write(const Task& task, uint64_t word);
  absl::Status WriteTable(uint16_t reg, uint32_t value);
  [[nodiscard]] absl::Status CheckChain(const Task& task, const Task* next,
                                        size_t others,
                                        const std::byte* words) const;

  std::array<std::array<Bank, 2>, kBankedBlocks> banks_;
  std::array<uint8_t, kBankedBlocks> pointers_ = {};
  std::array<bool, kBankedBlocks> stays_ = {};  // in the task that is loaded
  Tables tables_;
  bool table_writes_ = false;
  size_t table_ = 0, entry_ = 0;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_CORE_STATE_H_
