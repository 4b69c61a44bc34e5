// What is known of a model once it is loaded: its tensors, layers, memory and
// times, as reports and the C API tell of them.

#ifndef DRIVER_MODEL_INFO_H_
#define DRIVER_MODEL_INFO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "driver/tensor.h"

namespace rknnd::driver {

struct LayerInfo {
  std::string name;  // of the ONNX node it came from
  std::string type;  // "Conv", "ConvRelu", "InputOperator"
  std::string input_shape, output_shape;
  std::string data_type;  // what it computes in: "INT8", "FLOAT16"
  // What a device without an NPU computes it with: "bytes avx2", "oneDNN
  // jit:avx2", "loops".
  std::string kernel;
  // No kernel is made for this CPU and shape: tens of times slower than others.
  bool is_slow = false;
  bool on_cpu = false;  // not the NPU's work: conversions of inputs, outputs
  bool splits = false;  // the cores of a gang share it out
  // By the SoC's timing model, on one core of it, in cycles of that core.
  uint64_t ddr_cycles = 0, npu_cycles = 0;
  uint64_t ddr_bytes = 0;  // read and written, weights included
  uint64_t ddr_read = 0;   // of them, read: what the vendor's tables call RW
  uint64_t macs = 0;
  // What pace makes of it, at the highest clock with the memory to itself.
  base::Nanoseconds modelled = 0;
};

// One tensor of internal memory, as the memory tables of the reports show it.
struct TensorPlace {
  std::string name;          // of the ONNX value
  std::string data_type;     // "INT8", "FLOAT16"
  std::string shape;         // "1,32,112,112": as the model has it
  std::string native_shape;  // "1,2,112,112,16": as the NPU has it
  uint32_t user = 0;         // index in ProgramInfo::layers: its first reader
  // Tensors of one number share bytes: one is part of the other, or is written
  // over what nobody reads any more.
  uint32_t storage = 0;
  uint32_t first = 0, last = 0;    // steps between which it is alive
  uint64_t offset = 0, size = 0;   // in internal memory
  uint64_t written = 0, read = 0;  // bytes of a run, each reader's counted
  [[nodiscard]] uint64_t traffic() const { return written + read; }
};

// Which of a program's tensors lie in SRAM, chosen by the DDR traffic that
// saves; tensors alive at once never share a byte of it. A forecast: on the
// board the runtime's own choice may differ.
struct SramPlan {
  struct Entry {
    uint32_t tensor = 0;  // index in ProgramInfo::tensors
    uint64_t offset = 0;  // from the start of the SRAM
    uint64_t hit = 0;     // its bytes that lie there, from its start
    uint64_t saved = 0;   // DDR bytes of a run that this saves
  };
  uint64_t size = 0;           // of the SRAM planned for
  uint64_t used = 0;           // of it, whole pages
  uint64_t saved = 0;          // sum over the entries
  std::vector<Entry> entries;  // by tensor
};
// SRAM is handed out in pages.
inline constexpr uint64_t kSramPage = 4096;

// One input-shape row of a model, ready to run. It is a list of segments;
// between two segments nothing lives in internal memory, so another job may
// use the arena there.
struct ProgramInfo {
  std::vector<TensorAttr> inputs, outputs;
  std::vector<TensorAttr> native_inputs, native_outputs;
  uint64_t internal_size = 0;
  uint32_t segments = 1;
  // rknn_batch_size: a job computes so many slices of the inputs, one after
  // the other on a core. Attributes count all of them, layers and internal_size
  // one.
  uint32_t batch = 1;
  std::vector<LayerInfo> layers;
  // What the SoC takes for one slice of it by the timing model: one core at its
  // highest clock, no other busy. 0: no model. For admission; not a
  // measurement.
  base::Nanoseconds modelled = 0;
  // What this device itself is expected to take for that, before any run was
  // measured; 0: as modelled.
  base::Nanoseconds expected = 0;
  std::vector<TensorPlace> tensors;  // of internal memory, by first step
  SramPlan sram;                     // with all of the SoC's SRAM
};

struct ModelInfo {
  std::string name;  // the graph's
  uint64_t weight_size = 0;
  std::string custom_string;
  // The operators that a program has to bring (driver/custom/custom_model.h);
  // empty: none.
  std::string custom_operators;
  std::string target_platform;
  // One per shape row; a fixed-shape model has one.
  std::vector<ProgramInfo> programs;
  // The row of the largest inputs, all of a row together.
  uint32_t largest = 0;
  // What runs it, where a device has more than one way: "rknpu", "rknnrt"; and
  // why that one. Empty: there is one way.
  std::string run_by, run_by_because;
  // Why no job of it can run, in words for its user: a file that this device
  // can only describe. Such a model has one program, without layers.
  absl::Status runnable;
};

}  // namespace rknnd::driver

#endif  // DRIVER_MODEL_INFO_H_
