// A layer's output as people read it: out of its blocked form, 8-bit numbers as
// what they stand for. Called by Program for runs that are dumped.
//
// Thread: worker.

#ifndef DRIVER_SOFT_PLAN_LAYER_DUMP_H_
#define DRIVER_SOFT_PLAN_LAYER_DUMP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "driver/device.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// An operand that is worth showing once its step is over.
struct DumpedOperand {
  uint32_t step = 0;     // index in Program::steps
  uint32_t operand = 0;  // index in Program::operands
  std::string name;      // of the ONNX value
  TensorSpec spec;
  std::optional<Quantization> quantization;
};

// `data` holds the tensor as dumped.spec says.
absl::Status DumpTensor(const DumpedOperand& dumped, uint32_t layer,
                        const std::byte* data, driver::LayerSink& sink);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_LAYER_DUMP_H_
