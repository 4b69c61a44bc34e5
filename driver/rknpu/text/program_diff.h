// What two programs have their NPU do otherwise, for rknnctl info --diff: two
// versions of a network, or one network from two toolkits. Tasks are matched
// by list, by the name of their layer, and by their place among its tasks.
//
// What tasks write is compared, by register; not what short tasks leave as it
// was. Addresses are compared as tensors and the distance from their start.
// Thread: any.

#ifndef DRIVER_RKNPU_TEXT_PROGRAM_DIFF_H_
#define DRIVER_RKNPU_TEXT_PROGRAM_DIFF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/text/program_text.h"

namespace rknnd::rknpu {

// One register, as each of the two tasks has it; none: it is not written.
struct RegisterDifference {
  std::optional<WrittenRegister> first, second;
};

// One task, or what stands in its place.
struct TaskDifference {
  TaskList list;
  std::string layer;                      // "Conv:Conv_1"
  std::optional<uint32_t> first, second;  // of each table; none: not there
  uint32_t first_enable = 0, second_enable = 0;
  std::vector<RegisterDifference> registers;
};

struct ProgramDifference {
  std::string first_platform, second_platform;
  uint32_t same = 0;  // tasks that are alike
  // By list and layer, as the first program has them; then what only the second
  // one has.
  std::vector<TaskDifference> tasks;
};

// Tensors of the result belong to the two files.
ProgramDifference Compare(const ProgramFile& first, const ProgramFile& second);

std::string DifferenceText(const ProgramDifference& difference);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_TEXT_PROGRAM_DIFF_H_
