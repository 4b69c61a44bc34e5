// A published program in memory of its own, ready to be run by the emulator,
// list by list or node by node. For tests and measurements.

#ifndef DRIVER_RKNPU_EMULATOR_TESTING_LOADED_PROGRAM_H_
#define DRIVER_RKNPU_EMULATOR_TESTING_LOADED_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/placement.h"
#include "driver/rknpu/schedule.h"

namespace rknnd::rknpu::testing {

class LoadedProgram {
 public:
  // Null: the published files are not there.
  static std::unique_ptr<LoadedProgram> Load(const std::string& name);

  [[nodiscard]] const ProgramFile& file() const { return file_; }
  [[nodiscard]] const Memory& memory() const { return memory_; }
  // By name; must be there.
  [[nodiscard]] const Tensor& TensorOf(const std::string& name) const;

  // The bytes of a tensor in internal memory.
  std::span<std::byte> BytesOf(const Tensor& tensor);
  // Its values in the order of its shape, NCHW, of one byte or two each.
  std::vector<std::byte> LogicalOf(const Tensor& tensor);
  // `image`: lines of pixels of an interleaved input, without padding.
  void SetImage(const Tensor& tensor, std::span<const std::byte> image);
  void ClearInternal();

  // All jobs of the lists for so many cores; CPU nodes are left out.
  absl::Status Run(Machine& machine, uint32_t cores, const RunOptions& options);
  // The same, one node a job; `after` is called after each node that has tasks.
  absl::Status RunByNode(Machine& machine, uint32_t cores,
                         const RunOptions& options,
                         const std::function<void(uint32_t node)>& after);

 private:
  LoadedProgram() = default;
  absl::Status RunRanges(Machine& machine, std::span<const TaskRange> ranges,
                         const RunOptions& options);

  std::vector<std::byte> bytes_;
  ProgramFile file_;
  Placement placement_;
  std::vector<std::byte> constants_, private_, internal_;
  std::vector<uint64_t> commands_;
  Memory memory_;
};

}  // namespace rknnd::rknpu::testing

#endif  // DRIVER_RKNPU_EMULATOR_TESTING_LOADED_PROGRAM_H_
