// Programs of tasks that a test writes register by register: what is not in the
// test is as in SmallProgram() (file/testing/program_builder.h).

#ifndef DRIVER_RKNPU_TESTING_TASK_WRITER_H_
#define DRIVER_RKNPU_TESTING_TASK_WRITER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "driver/rknpu/file/testing/program_builder.h"

namespace rknnd::rknpu::testing {

// Values by the registers' numbers.
using Registers = std::map<uint16_t, uint32_t>;

// A convolution of 1x1: 16 channels of 4 lines of 8 pixels to 32 channels,
// without operands from memory: enable mask 0xd.
Registers SmallConvolution();

// A program of one core with tensors 'x' (internal memory 0 to 512), 'y' (512
// to 1536), weights 'w' (512 bytes), and nodes that tests add tasks to.
class TaskWriter {
 public:
  TaskWriter();

  // A further node.
  TaskWriter& Node(const std::string& name);
  // A task of the last node. `addresses` are of tensors, by register.
  TaskWriter& Add(uint32_t enable_mask, const Registers& registers,
                  const std::map<uint16_t, std::string>& addresses);

  [[nodiscard]] ProgramSpec& spec() { return spec_; }

 private:
  ProgramSpec spec_;
  std::map<std::string, size_t> relocations_;
};

// A program of one task, written by hand: it copies 16 channels of 4 lines of 8
// pixels from 'x' to 'y', which read them with another scale.
ProgramSpec CopyProgram();

}  // namespace rknnd::rknpu::testing

#endif  // DRIVER_RKNPU_TESTING_TASK_WRITER_H_
