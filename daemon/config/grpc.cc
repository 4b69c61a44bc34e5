// The file is an administrator's: wrong, perhaps, but not hostile.

#include "daemon/config/grpc.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"

namespace rknnd {
namespace {

// Below this a message has no room for an image.
constexpr uint64_t kLeastMessage = uint64_t{64} << 10;
// Where protobuf's own limit is.
constexpr uint64_t kMostMessage = std::numeric_limits<int32_t>::max();
constexpr uint64_t kLeastMemory = uint64_t{1} << 20;
// Each may open streams of its own, and takes a descriptor.
constexpr uint32_t kMostConnections = 100'000;
constexpr uint32_t kMostStreams = 10'000;
constexpr uint32_t kMostRequests = 1'000'000;
constexpr double kLeastSeconds = 1;
constexpr double kMostSeconds = 3600;

absl::Status CheckPath(const char* key, const std::string& path) {
  if (path.empty() || path.front() == '/') return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": '", path, "' must be a path from the root"));
}

}  // namespace

Setters GrpcKeys(transport::GrpcOptions& options) {
  return {
      {"listen", Texts(options.addresses, /*one=*/true)},
      {"insecure", Flag(options.insecure)},
      {"certificate", Path(options.certificate)},
      {"key", Path(options.key)},
      {"client_ca", Path(options.client_ca)},
      {"operators", Texts(options.operators, /*one=*/true)},
      {"tokens", Path(options.tokens)},
      {"message_bytes",
       Bytes(options.message_bytes, kLeastMessage, kMostMessage)},
      {"memory", Bytes(options.memory, kLeastMemory)},
      {"connections", Number(options.connections, 1, kMostConnections)},
      {"streams", Number(options.streams, 1, kMostStreams)},
      {"requests", Number(options.requests, 1, kMostRequests)},
      {"keepalive", Seconds(options.keepalive, kLeastSeconds, kMostSeconds)},
      {"unread", Seconds(options.unread, kLeastSeconds, kMostSeconds)},
      {"advertise", Flag(options.advertise)},
  };
}

absl::Status CheckGrpc(const transport::GrpcOptions& options) {
  Complaints complaints;
  complaints.Add(CheckPath("grpc.certificate", options.certificate));
  complaints.Add(CheckPath("grpc.key", options.key));
  complaints.Add(CheckPath("grpc.client_ca", options.client_ca));
  complaints.Add(CheckPath("grpc.tokens", options.tokens));
  complaints.Add(CheckPath("models.repository", options.model_repository));
  if (!options.operators.empty() && options.client_ca.empty()) {
    complaints.Add(absl::InvalidArgumentError(
        "grpc.operators are names of clients' certificates, which takes "
        "grpc.client_ca; for tokens, roles stand in their file"));
  }
  return complaints.status();
}

}  // namespace rknnd
