// The file is an administrator's: wrong, perhaps, but not hostile.

#include "daemon/config_grpc.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

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

// One text, or a list of them.
Setter Texts(std::vector<std::string>& target) {
  return [&target](const toml::node& node) -> absl::Status {
    target.clear();
    if (node.is_string()) return Text(target.emplace_back())(node);
    const auto* list = node.as_array();
    if (list == nullptr) return WrongType("a list of texts in quotes");
    for (const toml::node& entry : *list) {
      RKNND_RETURN_IF_ERROR(Text(target.emplace_back())(entry));
    }
    return absl::OkStatus();
  };
}

absl::Status CheckPath(const char* key, const std::string& path) {
  if (path.empty() || path.front() == '/') return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": '", path, "' must be a path from the root"));
}

}  // namespace

Setters GrpcKeys(transport::GrpcOptions& options) {
  return {
      {"listen", Texts(options.addresses)},
      {"insecure", Flag(options.insecure)},
      {"certificate", Text(options.certificate)},
      {"key", Text(options.key)},
      {"client_ca", Text(options.client_ca)},
      {"operators", Texts(options.operators)},
      {"tokens", Text(options.tokens)},
      {"message_bytes",
       Number(options.message_bytes, kLeastMessage, kMostMessage)},
      {"memory", Number(options.memory, kLeastMemory)},
      {"connections", Number(options.connections, 1, kMostConnections)},
      {"streams", Number(options.streams, 1, kMostStreams)},
      {"requests", Number(options.requests, 1, kMostRequests)},
      {"keepalive", Seconds(options.keepalive, kLeastSeconds, kMostSeconds)},
      {"unread", Seconds(options.unread, kLeastSeconds, kMostSeconds)},
      {"advertise", Flag(options.advertise)},
  };
}

absl::Status CheckGrpc(const transport::GrpcOptions& options) {
  RKNND_RETURN_IF_ERROR(CheckPath("grpc.certificate", options.certificate));
  RKNND_RETURN_IF_ERROR(CheckPath("grpc.key", options.key));
  RKNND_RETURN_IF_ERROR(CheckPath("grpc.client_ca", options.client_ca));
  RKNND_RETURN_IF_ERROR(CheckPath("grpc.tokens", options.tokens));
  RKNND_RETURN_IF_ERROR(
      CheckPath("models.repository", options.model_repository));
  if (!options.operators.empty() && options.client_ca.empty()) {
    return absl::InvalidArgumentError(
        "grpc.operators are names of clients' certificates, which takes "
        "grpc.client_ca; for tokens, roles stand in their file");
  }
  return absl::OkStatus();
}

}  // namespace rknnd
