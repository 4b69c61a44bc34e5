// A gRPC client for tests: any method of any service by its path, with messages
// as JSON or as bytes, and inference with tensors. Its messages are those of
// this tree's .proto files; gRPC's headers stay in its source file, as they are
// slow to compile.

#ifndef TESTS_INTEGRATION_HARNESS_GRPC_CLIENT_H_
#define TESTS_INTEGRATION_HARNESS_GRPC_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace rknnd::integration {

// gRPC's status codes, by their numbers.
enum class GrpcCode : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};
std::ostream& operator<<(std::ostream& out, GrpcCode code);

struct GrpcResult {
  GrpcCode code = GrpcCode::kUnknown;
  std::string message;  // of the status
  std::string bytes;    // of the reply
  // The server asks to come again then ("grpc-retry-pushback-ms").
  std::optional<std::chrono::milliseconds> come_again = {};
  [[nodiscard]] bool ok() const { return code == GrpcCode::kOk; }
};

struct GrpcJson {
  GrpcCode code = GrpcCode::kUnknown;
  std::string message;
  // With the .proto's field names; unset fields are there with their defaults.
  nlohmann::json reply;
  [[nodiscard]] bool ok() const { return code == GrpcCode::kOk; }
};

// One tensor as the Open Inference Protocol has it; `raw` is its bytes.
struct OipTensor {
  std::string name;
  std::string datatype;
  std::vector<int64_t> shape;
  std::string raw;
};

struct OipRequest {
  std::string model, version, id;
  std::vector<OipTensor> inputs;
  std::vector<std::string> outputs;  // none: all
};

struct OipAnswer {
  GrpcCode code = GrpcCode::kUnknown;
  std::string message;
  std::string model, version, id;
  std::vector<OipTensor> outputs;
  [[nodiscard]] bool ok() const { return code == GrpcCode::kOk; }
};

// The bytes of inference.ModelInferRequest, to be changed or sent by hand.
std::string EncodeOip(const OipRequest& request);
OipAnswer DecodeOip(const GrpcResult& result);

struct GrpcClientOptions {
  // PEM files; any of them set: TLS.
  std::string ca = {}, certificate = {}, key = {};
  // That the server's certificate is for, if not the address.
  std::string host_name = {};
  std::string token = {};  // sent with each call
  // Sent with each call: names in lower case.
  std::vector<std::pair<std::string, std::string>> headers = {};
  // As gRPC's channel arguments.
  std::vector<std::pair<std::string, std::string>> text_arguments = {};
  std::vector<std::pair<std::string, int>> number_arguments = {};
  std::chrono::milliseconds timeout{60000};  // of each call
};

// A call that is open: of one message or many in both directions. It may be
// dropped at any time, which cancels it. Thread: any, one at a time.
class GrpcCall {
 public:
  virtual ~GrpcCall() = default;
  // False: the call is over. Waits until gRPC has taken it, which it does only
  // as far as the peer reads.
  virtual bool Write(const std::string& message) = 0;
  virtual bool WritesDone() = 0;
  // Nothing: the call is over, or it has sent all.
  virtual std::optional<std::string> Read() = 0;
  virtual void Cancel() = 0;
  // After Read returned nothing, or Cancel; without `bytes`.
  virtual GrpcResult Finish() = 0;
};

// Thread: any.
class GrpcClient {
 public:
  // "HOST:PORT", "unix:PATH" or any name that gRPC knows.
  explicit GrpcClient(const std::string& address,
                      const GrpcClientOptions& options = {});
  ~GrpcClient();
  GrpcClient(const GrpcClient&) = delete;
  GrpcClient& operator=(const GrpcClient&) = delete;

  // `method`: "/inference.GRPCInferenceService/ModelInfer".
  GrpcResult Call(const std::string& method, const std::string& request) const;
  // The same without waiting; Read() it.
  [[nodiscard]] std::unique_ptr<GrpcCall> Start(
      const std::string& method) const;

  // `method`: "inference.GRPCInferenceService/ModelMetadata", of a service in
  // this tree's .proto files.
  [[nodiscard]] GrpcJson Ask(
      const std::string& method,
      const nlohmann::json& request = nlohmann::json::object()) const;
  // The same of the inference service: "ModelMetadata".
  [[nodiscard]] GrpcJson AskOip(
      const std::string& method,
      const nlohmann::json& request = nlohmann::json::object()) const;
  [[nodiscard]] OipAnswer Infer(const OipRequest& request) const;

  // grpc.health.v1's Check: 1 is SERVING, 2 NOT_SERVING; nothing: an error.
  [[nodiscard]] std::optional<int> Health(const std::string& service) const;
  // Waits until the connection stands; false after `timeout`.
  [[nodiscard]] bool Connect(std::chrono::milliseconds timeout) const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

// Between a message's bytes and JSON; `message`: "inference.ModelInferRequest".
std::string GrpcMessage(const std::string& message, const nlohmann::json& json);
nlohmann::json GrpcMessageJson(const std::string& message,
                               const std::string& bytes);

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_GRPC_CLIENT_H_
