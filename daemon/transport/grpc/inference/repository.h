// Models that are served by name: a folder of them on the board's disk, and
// those that clients load with their own bytes. The endpoint asks it which
// model a name and version mean; what is loaded there stays loaded in
// daemon/core. Names, versions and files come from clients: none of them leads
// out of the folder.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/grpc/environment.h"
#include "daemon/transport/grpc/options.h"

namespace rknnd::transport {

// What a name and a version mean at one moment.
struct ServedModel {
  std::string name;
  std::string version;
  core::ModelId id{};
};

class Repository {
 public:
  // `state` as the protocol's clients know it: "READY", "LOADING",
  // "UNLOADING", "UNAVAILABLE".
  struct Entry {
    std::string name, version, state, reason;
  };

  struct LoadRequest {
    std::string repository;  // empty: any
    std::string name;
    std::string config;  // JSON of a ModelConfig, or empty
    // "<version>/<name>" and its bytes, in place of the folder's files.
    std::vector<std::pair<std::string, std::string>> files;
  };

  using Done = std::function<void(absl::Status)>;

  // Without a folder it has what clients load only. Thread: loop.
  static absl::StatusOr<std::unique_ptr<Repository>> Create(
      const GrpcOptions& options, const GrpcEnvironment& environment);
  virtual ~Repository() = default;

  // An empty version is the newest that is loaded. NOT_FOUND: no such name or
  // version; UNAVAILABLE: it is there and not loaded. Never waits for the disk
  // or the loop: each inference asks. Thread: any.
  [[nodiscard]] virtual absl::StatusOr<ServedModel> Find(
      std::string_view name, std::string_view version) const = 0;
  // Whether all that lay in the folder at the start has been loaded, or could
  // not be. Thread: any.
  [[nodiscard]] virtual bool settled() const = 0;
  // Every version of every name. Thread: any.
  [[nodiscard]] virtual std::vector<Entry> Index() const = 0;

  // From the folder as it is now, or from the request's files. What is served
  // goes on until another version has taken its place, and stays when that
  // fails. `done` on any thread, once; also when it is stopped.
  // DEADLINE_EXCEEDED: it takes long and goes on. Thread: any.
  virtual void Load(LoadRequest request, Done done) = 0;
  // What runs of it ends first.
  virtual void Unload(const std::string& repository, const std::string& name,
                      Done done) = 0;

  // Ends what it does and lets go of its models; nothing is posted to the loop
  // afterwards. Thread: loop.
  virtual void Stop() = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_H_
