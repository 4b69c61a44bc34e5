// A model so small that any device runs it in microseconds, whose answer is
// known to the last bit: what the self-test runs on each core. Made here, so
// that it needs no file.

#ifndef DAEMON_BOARD_TEST_MODEL_H_
#define DAEMON_BOARD_TEST_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/tensor.h"

namespace rknnd::board {

// ONNX: a 1x1 convolution with bias over 8 channels of 8x8, and a Relu. All
// numbers are whole and small enough that half precision is exact.
std::vector<std::byte> TestModel();

// An input in the layout of `attribute`, as float32; each `round` another one,
// so that an answer of an earlier run is not taken for this one's.
void FillTestInput(const driver::TensorAttr& attribute, uint32_t round,
                   std::span<std::byte> input);
// How many numbers of the answer are wrong.
size_t CountWrong(const driver::TensorAttr& attribute, uint32_t round,
                  std::span<const std::byte> output);

}  // namespace rknnd::board

#endif  // DAEMON_BOARD_TEST_MODEL_H_
