// Which tensor of a model a call means. Programs give names, numbers and
// attributes that may be anything.

#ifndef CLIENT_RKNNRT_CONTEXT_MATCH_TENSOR_H_
#define CLIENT_RKNNRT_CONTEXT_MATCH_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/values/expected.h"
#include "client/include/rknn_api.h"
#include "client/session/target.h"

namespace rknnd::client {

// Finds the tensor that rknn_set_io_mem means: by name, and where an input and
// an output share it by what else the attribute says.
struct TensorMatch {
  Direction direction = Direction::kInput;
  uint32_t index = 0;
};
base::Expected<TensorMatch> MatchTensor(const ModelDescription& model,
                                        const rknn_tensor_attr& attr);

// Which output each entry of rknn_outputs_get means. Indices 0..n-1 in any
// order are used; all 0 with n > 1 is by position. Anything else names an
// output twice, or one that is not there.
base::Expected<std::vector<uint32_t>> ResolveOutputs(
    std::span<const rknn_output> outputs, size_t model_outputs);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CONTEXT_MATCH_TENSOR_H_
