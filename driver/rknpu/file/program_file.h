// A compiled model file (.rknn, container 6) as a program that can be placed
// and run: tensors with the memory they live in, nodes, relocations, commands
// and the task table. driver/rknn_file only describes such files; this is what
// the executor, the disassembler and the emulator's tests work from.
//
// The file comes from a client and is not trusted. Read() follows no offset
// that it has not checked, and keeps no more than a few times the file's size;
// what it returns is consistent in itself: indices lie inside their lists,
// tensors inside the memory that the file declares, tasks inside the commands.
// It does not look at what the commands say: that is the checker's part.
//
// Layout and meaning of all numbers: docs/rknpu.md. Thread: any; immutable.

#ifndef DRIVER_RKNPU_FILE_PROGRAM_FILE_H_
#define DRIVER_RKNPU_FILE_PROGRAM_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/values/expected.h"

namespace rknnd::rknpu {

// The file's numbers.
enum class ElementType : uint8_t {
  kNone = 0,
  kFloat32 = 1,
  kInt8 = 3,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kFloat16 = 10,
  kWords = 13,
};
// Bytes of one; 0 for kNone and kWords.
size_t ElementBytes(ElementType type);
const char* ElementTypeName(ElementType type);  // "int8"

enum class Layout : uint8_t {
  kPlain = 0,  // the model's own order of axes
  kNhwc = 1,
  kNchw = 2,
  kFeature = 64,  // NC1HWC2, or interleaved (Tensor::interleaved)
  kWeights = 65,
};

enum class TensorClass : uint8_t {
  kNone = 0,
  kInput = 1,
  kOutput = 2,
  kInternal = 3,
  kWeights = 4,
  kConstant = 5,   // of the source graph
  kTable = 6,      // a name only: its loader touches one dummy pixel
  kGenerated = 8,  // constants that the compiler made
  kCommands = 9,
  kTasks = 10,
};

struct Tensor {
  std::string name;  // relocations refer to it; unique
  ElementType type = ElementType::kNone;
  Layout layout = Layout::kPlain;
  TensorClass kind = TensorClass::kNone;
  std::vector<uint32_t> native_shape;  // kFeature: N, C1, H, W, C2
  std::vector<uint32_t> shape;         // as the model has it
  // One for the tensor, one for each channel, or none.
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  uint64_t bytes = 0;   // in memory, padding included
  uint64_t offset = 0;  // in internal memory: inputs, outputs, internal ones
  // Constants, commands and tasks: what the file has. Of the file's bytes.
  std::span<const std::byte> data;

  // An input of 1, 3 or 4 channels, pixel by pixel.
  [[nodiscard]] bool interleaved() const {
    return kind == TensorClass::kInput && layout == Layout::kFeature &&
           native_shape.size() == 5 && native_shape[1] == 1 &&
           (native_shape[4] == 1 || native_shape[4] == 3 ||
            native_shape[4] == 4);
  }
  // Lives in internal memory, unless it is bound elsewhere.
  [[nodiscard]] bool in_internal_memory() const {
    return kind == TensorClass::kInput || kind == TensorClass::kOutput ||
           kind == TensorClass::kInternal;
  }
};

// What a node's type leaves open. Which of them are there depends on the type.
struct NodeAttributes {
  uint8_t kind = 0;  // the file's number of the union; 0: none
  std::vector<int32_t> kernel, pads, strides, dilations;
  uint32_t group = 1;
  int32_t axis = 0;
  std::vector<int32_t> split_sizes, permutation;
};

// RK3588 files have six task lists: of one core, of two, of three.
inline constexpr uint32_t kMaxLists = 6;

struct Node {
  std::string type, name;  // "ConvExSwish", "Conv:Conv_1"
  bool on_npu = false;
  std::vector<uint32_t> inputs, outputs;  // of ProgramFile::tensors
  NodeAttributes attributes;
  // A BSON document: of custom operators. Of the file's bytes.
  std::span<const std::byte> custom_attributes;
  // How many tasks it has in each list, those that load a table included, and
  // where in ProgramFile::tasks they start.
  std::vector<uint32_t> task_counts, first_tasks;
};

// A place in the commands whose value is an address.
struct Relocation {
  uint32_t tensor = 0;
  uint32_t word = 0;    // 64-bit words from the start of the commands
  uint32_t addend = 0;  // from the tensor's start
};

// 40 bytes of the task table, which the hardware and the kernel read as well.
struct TaskEntry {
  uint32_t flags = 0;
  uint32_t node = 0;
  uint32_t enable_mask = 0;  // blocks: bit 0 CNA, 2 CORE, 3 DPU, ...
  uint32_t interrupt_mask = 0;
  uint32_t interrupt_clear = 0;
  uint32_t interrupt_status = 0;
  uint32_t words = 0;       // of commands, the chain's four not counted
  uint32_t first_word = 0;  // regcfg_offset
  uint64_t commands = 0;    // bytes from the start of the commands
};
inline constexpr size_t kTaskEntryBytes = 40;
// Behind each task's words: next address, next length, sync, enable.
inline constexpr uint32_t kChainWords = 4;

// A contiguous part of the task table: what one core runs in a set of `cores`.
struct TaskList {
  uint32_t cores = 1, core = 0;
  uint32_t first = 0, count = 0;
};

// How a real number becomes input's: (x - mean) / deviation, channel by
// channel, then the tensor's scale and zero point.
struct InputScaling {
  std::vector<float> means, deviations;
  std::vector<uint32_t> channel_order;
};

struct ProgramFile {
  std::string platform;   // "rk3588"
  std::string versions;   // of toolkit and compiler, as the file has it
  std::string framework;  // "ONNX"
  // Slices that the runtime runs one after the other; 1 for most models.
  uint32_t batch = 1;
  uint64_t weight_bytes = 0;     // of classes kWeights and kConstant
  uint64_t internal_bytes = 0;   // of inputs, outputs and internal tensors
  uint64_t generated_bytes = 0;  // of kGenerated
  std::vector<Tensor> tensors;   // the first one is an empty dummy
  std::vector<Node> nodes;       // in order of execution
  std::vector<uint32_t> inputs, outputs;    // of tensors
  std::vector<InputScaling> input_scaling;  // one for each input, or none
  std::vector<Relocation> relocations;      // by word
  std::vector<uint64_t> commands;
  std::vector<TaskEntry> tasks;
  std::vector<TaskList> lists;  // the first one is the one-core list
};

// More than real files have.
inline constexpr uint32_t kMaxTensors = 65536;
inline constexpr uint32_t kMaxNodes = 65536;
inline constexpr uint32_t kMaxTasks = 65536;
inline constexpr uint32_t kMaxTaskWords = 4096;  // a table's loader has 1097

// `bytes` must outlive the result: constants are not copied. kInvalidArgument:
// the file is damaged, or no .rknn file. kUnimplemented: it is a .rknn file of
// a kind that cannot be run, which is named (encrypted, container 2, dynamic
// shapes, several graphs, compressed weights, unknown types and layouts).
base::Expected<ProgramFile> Read(std::span<const std::byte> bytes);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_FILE_PROGRAM_FILE_H_
