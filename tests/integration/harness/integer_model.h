// A model of whole numbers, which the NPU takes as they are in the file:
// nothing is converted on their way.

#ifndef TESTS_INTEGRATION_HARNESS_INTEGER_MODEL_H_
#define TESTS_INTEGRATION_HARNESS_INTEGER_MODEL_H_

#include <string>

namespace rknnd::integration {

// The bytes of an ONNX file: y = x + x, of 1 x 16 numbers of 32 bits each.
std::string IntegerSum();

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_INTEGER_MODEL_H_
