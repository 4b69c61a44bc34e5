// The numbers of an output as floats, whatever the type and the blocks of
// channels that the NPU left them in.

#ifndef EXAMPLES_DEMO_TENSOR_VALUES_H_
#define EXAMPLES_DEMO_TENSOR_VALUES_H_

#include <vector>

#include "client/include/rknnd.hpp"

namespace rknnd::demo {

// The values of an output that lies in `memory` as `native` says, in the axis
// order of `like`, the model's own description of it. Throws Error for a type
// that no number is read from.
std::vector<float> Values(const Tensor& native, const Tensor& like,
                          const void* memory);

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_TENSOR_VALUES_H_
