// The folder that models are served from, as it lies on the disk:
//
//   NAME/VERSION/model.onnx     several versions, by number
//   NAME/model.onnx             version 1
//   NAME.onnx                   version 1
//
// or .rknn in place of .onnx; beside each its options as .yml. All else is
// passed over. Whoever maintains the folder may change it at any time; names
// and versions come from clients.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_FOLDER_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_FOLDER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/terms/types.h"

namespace rknnd::transport {

// Models there may be, in the folder and of clients together, and versions of
// one.
inline constexpr size_t kRepositoryModels = 256;
inline constexpr size_t kRepositoryVersions = 64;

// A letter, digit, '_' or '-' first, then also '.'; INVALID_ARGUMENT otherwise.
absl::Status CheckModelName(std::string_view name);
// A number without a sign or leading zeros.
bool IsModelVersion(std::string_view version);
// True for a version with a higher number than `other`; both are versions.
bool IsNewerVersion(std::string_view version, std::string_view other);

// Thread: one at a time, which may wait for the disk.
class RepositoryFolder {
 public:
  // Files above `largest` bytes are refused. Once `*stop` is set, reading ends
  // soon.
  static absl::StatusOr<std::unique_ptr<RepositoryFolder>> Open(
      const std::string& path, uint64_t largest, const std::atomic<bool>* stop);

  // Names of what looks like models, in order.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> Names() const;
  // Of a model, the oldest first. NOT_FOUND: there is none of that name.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> Versions(
      const std::string& name) const;
  // The model's bytes in a sealed memfd, its options and the hash of both: what
  // happens to the folder afterwards changes none of it. ABORTED: the file
  // changed while it was read.
  [[nodiscard]] absl::StatusOr<core::ModelUpload> Read(
      const std::string& name, const std::string& version) const;

 private:
  RepositoryFolder(base::UniqueFd folder, uint64_t largest,
                   const std::atomic<bool>* stop)
      : folder_(std::move(folder)), largest_(largest), stop_(stop) {}

  // Paths below the folder that a version may be, without their endings.
  [[nodiscard]] std::vector<std::string> Stems(
      const std::string& name, const std::string& version) const;
  // The path of the model file, or NOT_FOUND.
  [[nodiscard]] absl::StatusOr<std::string> Locate(
      const std::string& name, const std::string& version) const;
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> List(
      const base::UniqueFd& folder) const;

  const base::UniqueFd folder_;
  const uint64_t largest_;
  const std::atomic<bool>* const stop_;
};

// What a client sent in place of the folder's files: "<version>/<name>" and its
// bytes.
using ModelFiles = std::vector<std::pair<std::string, std::string>>;

// One upload for each version in `files`, the oldest first.
absl::StatusOr<std::vector<std::pair<std::string, core::ModelUpload>>>
PackModelFiles(const std::string& name, const ModelFiles& files);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_FOLDER_H_
