// Tensors as lists of numbers in a message, and the largest of an answer's: the
// parts of a conversion that look at elements. What a client wrote.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_TYPED_CONTENTS_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_TYPED_CONTENTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "daemon/transport/grpc/inference/datatype.h"

namespace inference {
class InferTensorContents;
}  // namespace inference

namespace rknnd::transport {

// Elements in all its lists together.
uint64_t CountTyped(const inference::InferTensorContents& contents);

// INVALID_ARGUMENT: the list of that datatype has another number of elements,
// one that the datatype cannot hold, or another list is there too; FP16 and
// BF16 have no list.
absl::Status CheckTyped(const inference::InferTensorContents& contents,
                        Datatype datatype, uint64_t elements);

// Writes what was found to be right; `to` has the size of all elements.
void CopyTyped(const inference::InferTensorContents& contents,
               Datatype datatype, std::span<std::byte> to);

// The `classes` largest of each of `batch` equal parts of a tensor, as elements
// of BYTES: "value:index", the largest first; of equals the first one first,
// and what is no number last.
std::string Classify(Datatype datatype, std::span<const std::byte> tensor,
                     uint64_t batch, uint32_t classes);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_TYPED_CONTENTS_H_
