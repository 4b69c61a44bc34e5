// Models that are served by name: a folder of them on the board's disk, and
// those that clients load with their own bytes. The endpoint asks it which
// model a name and version mean; what is loaded there stays loaded in
// daemon/core. Names, versions and files come from clients: none of them leads
// out of the folder.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_H_

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "base/posix/task_thread.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/grpc/environment.h"
#include "daemon/transport/grpc/inference/repository_folder.h"
#include "daemon/transport/grpc/inference/repository_session.h"
#include "daemon/transport/grpc/inference/repository_table.h"
#include "daemon/transport/grpc/options.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::transport {

class Repository {
 public:
  using Entry = RepositoryTable::Entry;

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
  ~Repository() { Stop(); }
  Repository(const Repository&) = delete;
  Repository& operator=(const Repository&) = delete;

  // An empty version is the newest that is loaded. NOT_FOUND: no such name or
  // version; UNAVAILABLE: it is there and not loaded. Never waits for the disk
  // or the loop: each inference asks. Thread: any.
  [[nodiscard]] absl::StatusOr<ServedModel> Find(
      std::string_view name, std::string_view version) const {
    return table_.Find(name, version);
  }
  // Whether all that lay in the folder at the start has been loaded, or could
  // not be. Thread: any.
  [[nodiscard]] bool settled() const { return settled_; }
  // Every version of every name. Thread: any.
  [[nodiscard]] std::vector<Entry> Index() const { return table_.Index(); }

  // From the folder as it is now, or from the request's files. What is served
  // goes on until another version has taken its place, and stays when that
  // fails. `done` on any thread, once; also when it is stopped.
  // DEADLINE_EXCEEDED: it takes long and goes on. Thread: any.
  void Load(LoadRequest request, Done done);
  // What runs of it ends first.
  void Unload(const std::string& repository, const std::string& name,
              Done done);

  // Ends what it does and lets go of its models; nothing is posted to the loop
  // afterwards. Thread: loop.
  void Stop();

 private:
  struct Work;
  using WorkPtr = std::shared_ptr<Work>;

  Repository(const GrpcOptions& options, const GrpcEnvironment& environment);
  // Opens the folder and begins with what is in it.
  absl::Status Start();
  [[nodiscard]] absl::Status Check(const LoadRequest& request) const;
  void Enqueue(WorkPtr work);
  void Begin();
  // Runs `read` on the reader's thread and `use` with what it gives on the
  // loop.
  template <class Read, class Use>
  void ReadThen(Read read, Use use);
  void OnNames(absl::StatusOr<std::vector<std::string>> names);
  void Listed(absl::Status status);
  void NextVersion();
  void OnRead(absl::StatusOr<core::ModelUpload> upload);
  void OnKept(const core::ModelId& id, absl::StatusOr<uint32_t> context);
  void OnVersionFailed(const absl::Status& why);
  void DoUnload();
  void LetGo(const std::vector<uint32_t>& contexts);
  void Finish(const absl::Status& status);
  void Answer(Work& work, const absl::Status& status);
  void Note(Severity severity, const std::string& version,
            const std::string& what) const;
  // Those of the work, and the one it is at.
  [[nodiscard]] std::vector<std::string> Versions() const;
  [[nodiscard]] const std::string& version() const;

  const GrpcOptions options_;
  const GrpcEnvironment environment_;
  const base::MonotonicClock clock_;
  mutable FailureLog lines_{environment_.log, &clock_};
  // For the reader: whether it is to end.
  std::atomic<bool> stopping_{false};
  std::unique_ptr<RepositoryFolder> folder_;  // null: there is none
  base::TaskThread reader_;
  std::unique_ptr<RepositorySession> session_;
  std::deque<WorkPtr> waiting_;  // of clients
  std::deque<std::string> initial_;
  WorkPtr work_;  // null: nothing is done
  bool listing_ = false;
  std::atomic<bool> settled_{false};

  RepositoryTable table_;
  base::Mutex mutex_;
  bool stopped_ RKNND_GUARDED_BY(mutex_) = false;
  // For what is posted to the loop: whether this is still there.
  const std::shared_ptr<Repository*> self_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_REPOSITORY_H_
