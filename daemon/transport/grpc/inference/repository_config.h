// What of a ModelConfig in JSON, as clients send it with a load, means
// something here: which versions are served. Shapes, types and batching are the
// model's.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_CONFIG_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rknnd::transport {

struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  uint32_t count = 1;                 // of kLatest
  std::vector<std::string> versions;  // of kSpecific

  // Which of those there are, the oldest first. NOT_FOUND: one that is asked
  // for is not there.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> Choose(
      const std::vector<std::string>& there) const;
};

// INVALID_ARGUMENT: no JSON, or not of model `name`, or a policy that is none.
// Empty text is the default. Thread: any.
absl::StatusOr<VersionPolicy> ParseModelConfig(const std::string& name,
                                               const std::string& json);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_CONFIG_H_
