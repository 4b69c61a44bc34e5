// The parts of Read(), one file each. Each takes what it reads from, fills in
// its part of the program and says what is wrong; whether an offset led outside
// is asked of the section once all of them are done (Section::Check), so that a
// field that does so reads as absent meanwhile.

#ifndef DRIVER_RKNPU_FILE_PARTS_H_
#define DRIVER_RKNPU_FILE_PARTS_H_

#include <span>
#include <vector>

#include "base/values/expected.h"
#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/file/section.h"

namespace rknnd::rknpu {

// Contents by number: field 20 of the model.
using Buffers = std::vector<std::span<const std::byte>>;

base::Expected<void> ReadTensors(Section& section,
                                 const rknn_file::FlatTable& graph,
                                 const Buffers& buffers, ProgramFile& file);
// After the tensors, as the next ones.
base::Expected<void> ReadNodes(Section& section,
                               const rknn_file::FlatTable& graph,
                               ProgramFile& file);
// Commands, the task table, its lists and the relocations; after the nodes.
base::Expected<void> ReadTasks(Section& section,
                               const rknn_file::FlatTable& graph,
                               ProgramFile& file);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_FILE_PARTS_H_
