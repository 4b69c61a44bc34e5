// What a file is to a model's input: pictures are fitted, raw tensors checked
// by their size, arrays by their shape. Nothing is normalised here: a picture
// reaches the model as pixel values 0..255, as the library's UINT8 inputs do.

#ifndef CLIENT_CTL_MODELS_TENSOR_INPUT_H_
#define CLIENT_CTL_MODELS_TENSOR_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "rknn_api.h"

namespace rknnd::client {

// Data for rknn_inputs_set, with pass_through 0.
struct TensorInput {
  std::vector<std::byte> bytes;
  rknn_tensor_type type = RKNN_TENSOR_FLOAT32;
  rknn_tensor_format format = RKNN_TENSOR_NHWC;
};

// Reads `path` for the input that `attr` (RKNN_QUERY_INPUT_ATTR) describes:
//   .jpg .jpeg .png  stretched to the input's size, RGB (or grey for one
//                    channel), UINT8, NHWC; every item of a batch the same
//   .npy             NCHW or NHWC, whichever its shape fits (NCHW if both)
//   .bin             the type by its size; 4-D: NCHW for all types but UINT8,
//                    which is NHWC
base::Expected<TensorInput> ReadTensorInput(const std::string& path,
                                            const rknn_tensor_attr& attr);

// The same noise for the same input and number each time, of a kind the model
// takes: pixels for 4-D inputs, 0..1 for other reals, 0..9 for integers.
TensorInput NoiseInput(const rknn_tensor_attr& attr, uint32_t number);

// Bytes of one element; 0 for types that have no whole bytes.
[[nodiscard]] size_t ElementBytes(rknn_tensor_type type);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_TENSOR_INPUT_H_
