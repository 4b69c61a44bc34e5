// Which model a name means: one of the repository's, one that some client
// has loaded and still uses (by its file's name without folder and extension),
// or any by the 64 hexadecimal digits of its hash.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_MODEL_DIRECTORY_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_MODEL_DIRECTORY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "daemon/core/service.h"
#include "daemon/transport/grpc/inference/repository.h"

namespace rknnd::transport {

// Held by shared_ptr: what it has posted finds it gone.
class ModelDirectory final
    : public std::enable_shared_from_this<ModelDirectory> {
 public:
  using Found = std::function<void(absl::StatusOr<ServedModel>)>;
  using Listed = std::function<void(std::vector<Repository::Entry>)>;

  struct Parts {
    Repository* repository = nullptr;  // outlives it, as all here
    core::Service* service = nullptr;
    base::EventLoop* loop = nullptr;
    const base::Clock* clock = nullptr;
    // Runs a task on a thread that may take its time; false: no more.
    std::function<bool(std::function<void()>)> elsewhere;
  };
  explicit ModelDirectory(Parts parts) : parts_(std::move(parts)) {}

  // NOT_FOUND: nobody has such a model; UNAVAILABLE: it is not ready;
  // INVALID_ARGUMENT: two sessions have different ones of that name. `found` at
  // once where the answer is known, else elsewhere. Thread: any.
  void Find(const std::string& name, const std::string& version, Found found);
  // All that are served; `listed` elsewhere. Thread: any.
  void List(Listed listed);

  // Nothing is posted to the loop after the return. Thread: loop.
  void Stop();

 private:
  // What sessions have loaded: of a name, more than one for different models.
  using Names = std::multimap<std::string, core::ModelId>;

  static absl::StatusOr<ServedModel> Pick(const Names& names,
                                          const std::string& name);
  void Refresh(std::function<void()> done);
  void OnLoop();

  const Parts parts_;
  base::Mutex mutex_;
  Names names_ RKNND_GUARDED_BY(mutex_);
  base::Nanoseconds refreshed_ RKNND_GUARDED_BY(mutex_) = 0;
  bool fresh_ RKNND_GUARDED_BY(mutex_) = false;  // refreshed_ is set
  // Who waits for the names; a look at them is on its way when there is any.
  std::vector<std::function<void()>> waiting_ RKNND_GUARDED_BY(mutex_);
  bool stopped_ RKNND_GUARDED_BY(mutex_) = false;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_MODEL_DIRECTORY_H_
