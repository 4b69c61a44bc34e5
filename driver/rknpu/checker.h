// Whether a program stays in its memory, asked once while it is loaded: of
// every job of its schedules, every task and every address, with all that the
// task does there (footprint.h). What is allowed does not depend on where the
// memories lie, so that the answer holds for every run.
//
//   constants    are read
//   internal     is read and written
//   private      is read and written
//   commands     are neither
//
// It also tells which ports may lie in a program's own memory instead of
// internal memory: those that no task leaves, inputs that are only read, and
// outputs of which tasks write all.
//
// Thread: any.

#ifndef DRIVER_RKNPU_CHECKER_H_
#define DRIVER_RKNPU_CHECKER_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/placement.h"
#include "driver/rknpu/schedule.h"

namespace rknnd::rknpu {

struct CheckedPorts {
  // By tensor: inputs and outputs that may lie outside of internal memory, as
  // far as tasks go.
  std::vector<bool> may_be_bound;
  // How many bytes from its start tasks read of an input, or write of an
  // output, without a gap; 0: tasks do not touch it.
  std::vector<int64_t> touched;
};

// The enable masks that are known: a convolution with and without operands from
// memory, the output stage alone, pooling.
bool IsKnownMask(uint32_t enable_mask);

// Of the schedules for all numbers of cores that are used. INVALID_ARGUMENT and
// UNIMPLEMENTED name task, node, register and tensor.
absl::StatusOr<CheckedPorts> CheckProgram(
    const ProgramFile& file, const Placement& placement,
    std::span<const std::vector<Step>> schedules);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_CHECKER_H_
