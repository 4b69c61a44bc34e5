// What the repository serves: models by name and version, and why some of them
// are not ready. Written by the repository on the loop, read by every
// inference.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_TABLE_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "daemon/core/terms/types.h"

namespace rknnd::transport {

// What a name and a version mean at one moment.
struct ServedModel {
  std::string name;
  std::string version;
  core::ModelId id{};
};

// A version is on its way through:
//
//   Begin --> LOADING --Serve--> READY --Serve, Fail--> READY (the new one; the
//                |                 |                    one before, and why)
//               Fail             Unload
//                v                 v
//           UNAVAILABLE       UNAVAILABLE, or out of the table
//
// Contexts that are given back here are the caller's to let go.
// Thread: any (Find, Index); loop (all else).
class RepositoryTable {
 public:
  // `state` as the protocol's clients know it: "READY", "LOADING",
  // "UNLOADING", "UNAVAILABLE".
  struct Entry {
    std::string name, version, state, reason;
  };

  [[nodiscard]] absl::StatusOr<ServedModel> Find(
      std::string_view name, std::string_view version) const;
  [[nodiscard]] std::vector<Entry> Index() const;

  // It will be tried. RESOURCE_EXHAUSTED: it is new, and there are too many.
  absl::Status Add(const std::string& name);
  // These of its versions are about to be loaded. Whether the name is new.
  absl::StatusOr<bool> Begin(const std::string& name,
                             const std::vector<std::string>& versions);
  // Whether that version is served with just those bytes: nothing is to be
  // done.
  bool StillServes(const std::string& name, const std::string& version,
                   const core::ModelId& id);
  // The context of what it was before; 0: none. `of_client`: its bytes are in
  // no folder.
  uint32_t Serve(const std::string& name, const std::string& version,
                 const core::ModelId& id, uint32_t context, bool of_client);
  void Fail(const std::string& name, const std::string& version,
            const absl::Status& why);
  // None of its versions can be tried.
  void Fail(const std::string& name, const absl::Status& why);
  // All versions but those; the contexts of what was served.
  std::vector<uint32_t> DropOthers(const std::string& name,
                                   const std::vector<std::string>& versions);
  // Nothing for a name that is not known.
  std::optional<std::vector<uint32_t>> Unload(const std::string& name);
  // A name of which nothing is served.
  void ForgetUnserved(const std::string& name);

 private:
  struct Newer {
    bool operator()(const std::string& a, const std::string& b) const;
  };
  struct Version {
    core::ModelId id{};
    uint32_t context = 0;  // 0: it is not served
    bool tried = false;
    std::string reason;  // why it is not served, or why not newer bytes of it
  };
  struct Model {
    std::map<std::string, Version, Newer> versions;
    std::string reason;  // of all of it; empty: see the versions
    bool of_client = false;
  };

  mutable base::Mutex mutex_;
  std::map<std::string, Model, std::less<>> models_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_TABLE_H_
