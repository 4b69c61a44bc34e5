// See tensor_values.h.

#include "examples/demo/tensor_values.h"

#include <cstddef>
#include <cstdint>

#include "base/values/half.h"

namespace rknnd::demo {
namespace {

// All elements as they lie in memory, padding included.
std::vector<float> InMemoryOrder(const Tensor& tensor, const void* memory) {
  const size_t count = tensor.elements();
  std::vector<float> values(count);
  switch (tensor.type()) {
    case RKNN_TENSOR_FLOAT32:
      values.assign(static_cast<const float*>(memory),
                    static_cast<const float*>(memory) + count);
      break;
    case RKNN_TENSOR_FLOAT16:
      base::HalfToFloat({static_cast<const uint16_t*>(memory), count}, values);
      break;
    case RKNN_TENSOR_INT8:
      for (size_t i = 0; i < count; ++i) {
        values[i] = tensor.Dequantize(static_cast<const int8_t*>(memory)[i]);
      }
      break;
    case RKNN_TENSOR_UINT8:
      for (size_t i = 0; i < count; ++i) {
        values[i] = tensor.Dequantize(static_cast<const uint8_t*>(memory)[i]);
      }
      break;
    default:
      throw Error(RKNN_ERR_OUTPUT_INVALID, "output '" + tensor.name() +
                                               "' is " +
                                               get_type_string(tensor.type()));
  }
  return values;
}

}  // namespace

std::vector<float> Values(const Tensor& native, const Tensor& like,
                          const void* memory) {
  std::vector<float> blocks = InMemoryOrder(native, memory);
  if (native.format() != RKNN_TENSOR_NC1HWC2) return blocks;
  const std::vector<uint32_t> shape = like.shape();
  const size_t channels = shape.at(1), block = native.shape().at(4);
  const size_t pixels = size_t{shape.at(2)} * shape.at(3);
  std::vector<float> values;
  values.reserve(channels * pixels);
  for (size_t channel = 0; channel < channels; ++channel) {
    const float* from =
        blocks.data() + channel / block * pixels * block + channel % block;
    for (size_t i = 0; i < pixels; ++i) values.push_back(from[i * block]);
  }
  return values;
}

}  // namespace rknnd::demo
