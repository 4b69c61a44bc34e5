// Quantised networks with the float ones they were made of, for tests of what
// is lost on the way.

#ifndef TESTS_INTEGRATION_HARNESS_QUANTIZED_MODELS_H_
#define TESTS_INTEGRATION_HARNESS_QUANTIZED_MODELS_H_

#include <string>

#include "tests/integration/harness/models.h"

namespace rknnd::integration {

// Four convolutions of four channels in a row, c0 to c3, the first with a Relu;
// input "x" and output "y" of 1x4x8x8. Quantised, each tensor T has its 8-bit
// form T_QuantizeLinear_Output. `wrong`: convolution number so reads its input
// with 32 times the scale that it has; -1: none does. Without an output file.
TestModel MakeQuantizedChain(const std::string& folder, int wrong = -1);
// The same in float32, with weights that 8 bits hold.
TestModel MakeFloatChain(const std::string& folder);

// Relu "r", its logarithm "l", which is infinite, and a Relu of that.
TestModel MakeInfinite(const std::string& folder);

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_QUANTIZED_MODELS_H_
