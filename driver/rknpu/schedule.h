// In which order a program runs: pieces of its task lists that the NPU runs as
// one job each, and nodes that the file leaves to the CPU between them.
//
// The list of one core is cut only at such nodes. Those of two and three cores
// are cut at every barrier as well, and wherever a node that all cores share
// follows one that core 0 runs alone, or the other way round: inside a piece
// all links from task to task are right in the file, from piece to piece they
// often are not. Thread: any.

#ifndef DRIVER_RKNPU_SCHEDULE_H_
#define DRIVER_RKNPU_SCHEDULE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/rknpu/file/program_file.h"

namespace rknnd::rknpu {

inline constexpr uint32_t kMostCores = 3;

// A contiguous part of ProgramFile::tasks.
struct TaskRange {
  uint32_t first = 0, count = 0;
};

// One job of the NPU: its cores step together, task by task.
struct Piece {
  uint32_t cores = 1;  // the first so many of the set
  std::array<TaskRange, kMostCores> ranges;
  uint32_t first_node = 0, last_node = 0;
};

struct Step {
  bool on_cpu = false;
  uint32_t node = 0;  // of the CPU
  Piece piece;        // of the NPU
};

// For a set of `cores`, 1 to 3. FAILED_PRECONDITION: the file has no lists for
// so many. INVALID_ARGUMENT: the lists do not fit each other, or inside a piece
// the hardware would follow a link to something else than the next task.
absl::StatusOr<std::vector<Step>> MakeSchedule(const ProgramFile& file,
                                               uint32_t cores);

// Whether the file has lists for so many cores.
bool HasLists(const ProgramFile& file, uint32_t cores);

// Neither has work of its own, unless it has tasks: conversions of ports are
// the caller's part.
bool IsPortNode(const Node& node);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_SCHEDULE_H_
