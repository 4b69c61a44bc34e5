// Nodes of a compiled model that a program computes itself cut it into parts
// (driver/custom/custom_model.h): what each part reads and makes, and the
// description for the program.
//
// Nodes are in the file's order; a part has those between two such nodes. A
// part keeps the file's memory plan: what it is given lies where the whole
// model would have left it.
//
// Thread: any; immutable once made. What it reads is not trusted.

#ifndef DRIVER_RKNPU_DEVICE_CUSTOM_PARTS_H_
#define DRIVER_RKNPU_DEVICE_CUSTOM_PARTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/rknpu/file/program_file.h"
#include "driver/rknpu/schedule.h"

namespace rknnd::rknpu {

class CustomParts {
 public:
  // Nodes of the CPU that are unknown here, or of one of `types`.
  static absl::StatusOr<CustomParts> Of(const ProgramFile& file,
                                        std::span<const std::string> types);

  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  [[nodiscard]] bool Has(uint32_t node) const;
  // custom::Write of it.
  [[nodiscard]] std::string Describe(const ProgramFile& file) const;
  // "operator 'cstFoo' of node 'foo'": the first one.
  [[nodiscard]] std::string First(const ProgramFile& file) const;

  // The file's inputs and outputs become the part's.
  absl::Status CutPorts(uint32_t part, ProgramFile& file) const;
  // Of a schedule of the whole file: the part's steps.
  [[nodiscard]] std::vector<Step> StepsOf(uint32_t part,
                                          std::vector<Step> steps) const;

 private:
  struct Ports {
    // Of the file's inputs and outputs; of tensors_. Ascending.
    std::vector<uint32_t> own_inputs, own_outputs, inputs, outputs;
  };

  absl::Status Find(const ProgramFile& file);
  [[nodiscard]] uint32_t NumberOf(uint32_t tensor) const;

  std::vector<uint32_t> nodes_;    // ascending
  std::vector<uint32_t> tensors_;  // between; ascending
  std::vector<Ports> ports_;       // by part
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_DEVICE_CUSTOM_PARTS_H_
