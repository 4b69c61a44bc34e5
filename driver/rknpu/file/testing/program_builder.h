// Makes .rknn files of container 6 with commands and tasks, for tests and for
// the fuzzer's seeds. What a file could get wrong is set in the spec: nothing
// is checked here.

#ifndef DRIVER_RKNPU_FILE_TESTING_PROGRAM_BUILDER_H_
#define DRIVER_RKNPU_FILE_TESTING_PROGRAM_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "driver/rknpu/file/program_file.h"

namespace rknnd::rknpu::testing {

struct TensorSpec {
  std::string name = {};
  uint8_t type = 3;     // int8
  uint8_t layout = 64;  // feature map
  uint8_t kind = 3;     // internal
  std::vector<uint32_t> native_shape = {};
  std::vector<uint32_t> shape = {};
  std::vector<float> scales = {};
  std::vector<int32_t> zero_points = {};
  uint32_t bytes = 0;
  uint32_t offset = 0;
  uint32_t compressed = 0;
  std::string data = {};  // gets a buffer of its own; empty: buffer 0
};

struct NodeSpec {
  std::string type = {}, name = {};
  uint8_t device = 2;
  std::vector<uint32_t> inputs = {}, outputs = {};
  std::vector<uint32_t> tasks = {0, 0, 0, 0, 0, 0};
  std::vector<uint32_t> table_tasks = {};
  // A Conv's, where there is a kernel; a Transpose's, with a permutation.
  std::vector<int32_t> kernel = {}, pads = {}, strides = {};
  std::vector<int32_t> permutation = {};
  std::string document = {};
};

struct RelocationSpec {
  std::string tensor;
  struct Place {
    uint32_t addend = 0, word = 0;
  };
  std::vector<Place> places;
};

struct ProgramSpec {
  uint64_t container = 6;
  std::string platform = "rk3588";
  std::string shapes = "static_shape";
  std::string batch = "0";
  uint64_t weight_bytes = 0, internal_bytes = 0, generated_bytes = 0;
  std::vector<TensorSpec> tensors;
  std::vector<NodeSpec> nodes;
  std::vector<uint32_t> inputs, outputs;
  std::vector<RelocationSpec> relocations;
  std::vector<uint32_t> list_starts;
  std::vector<uint64_t> commands;
  std::vector<TaskEntry> tasks;
  uint32_t graphs = 1;
};

// An input 'x', weights 'w', an output 'y' and one node with one task of three
// words in every list of the core 0: what Read() accepts.
ProgramSpec SmallProgram();

// Tensors of classes 9 and 10 are appended, with the spec's commands and tasks.
std::string Build(ProgramSpec spec);

}  // namespace rknnd::rknpu::testing

#endif  // DRIVER_RKNPU_FILE_TESTING_PROGRAM_BUILDER_H_
