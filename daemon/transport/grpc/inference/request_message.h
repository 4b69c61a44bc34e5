// An inference request as it came from the network: its raw tensors stay where
// gRPC has put them and are copied once, into the memory that the device reads;
// only what is around them is parsed. Bytes of any client.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_REQUEST_MESSAGE_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_REQUEST_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace inference {
class ModelInferRequest;
}  // namespace inference

namespace rknnd::transport {

// Thread: any, one at a time.
class RequestMessage {
 public:
  // Pieces of the message, in order; they outlive this.
  using Pieces = std::vector<std::span<const std::byte>>;

  // Whether there may be so many bytes more; asked before they are taken.
  using Charge = std::function<absl::Status(uint64_t)>;

  // INVALID_ARGUMENT: it is no ModelInferRequest, or one of more tensors than
  // any model has. What `charge` refuses is not parsed: a message of few bytes
  // can need many times as much of this process.
  static absl::StatusOr<RequestMessage> Parse(Pieces pieces,
                                              const Charge& charge);
  RequestMessage(RequestMessage&& other) noexcept;
  RequestMessage& operator=(RequestMessage&& other) noexcept;
  ~RequestMessage();

  // All of it but raw_input_contents, which is empty there.
  [[nodiscard]] const inference::ModelInferRequest& head() const {
    return *head_;
  }
  // Of each of raw_input_contents.
  [[nodiscard]] const std::vector<uint64_t>& raw_sizes() const {
    return raw_sizes_;
  }
  // Bytes `from` to `from` + to.size() of a raw tensor, which are in it.
  void CopyRaw(size_t index, uint64_t from, std::span<std::byte> to) const;

 private:
  RequestMessage();

  Pieces pieces_;
  std::vector<uint64_t> starts_;  // of the pieces in the message
  std::unique_ptr<inference::ModelInferRequest> head_;
  std::vector<uint64_t> raw_starts_, raw_sizes_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_REQUEST_MESSAGE_H_
