// A program in words for people: its tasks, the layer each belongs to, and the
// registers that it writes, by name, with the tensor whose address one gets.
// For rknnctl info --program. Nothing is executed: a short task shows what it
// writes, not what it leaves as it was. Thread: any.

#ifndef DRIVER_RKNPU_TEXT_PROGRAM_TEXT_H_
#define DRIVER_RKNPU_TEXT_PROGRAM_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/registers/registers.h"

namespace rknnd::rknpu {

// One command of a task.
struct WrittenRegister {
  Command command;
  std::string name;  // "CNA CONV_CON1 (0x100c)"
  // The tensor whose address is added to the value; null: none.
  const Tensor* tensor = nullptr;
};
std::vector<WrittenRegister> CommandsOf(const ProgramFile& file,
                                        const TaskEntry& task);

// "0x00000048", with so many digits at least.
std::string HexText(uint64_t number, int digits);

// "CNA CORE DPU": what an enable mask switches on.
std::string BlocksText(uint32_t enable_mask);

// "1 core", "core 1 of 2".
std::string ListText(const TaskList& list);

std::string ProgramText(const ProgramFile& file);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_TEXT_PROGRAM_TEXT_H_
