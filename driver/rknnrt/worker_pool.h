// Which worker a model goes to: one of its own, so that a crash costs that
// model only; or one for all, where what the library shares among its models is
// worth more.

#ifndef DRIVER_RKNNRT_WORKER_POOL_H_
#define DRIVER_RKNNRT_WORKER_POOL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "driver/rknnrt/worker_process.h"
#include "driver/rknnrt/worker_watch.h"

namespace rknnd::rknnrt {

struct PoolOptions {
  WorkerSetup setup;
  bool one_for_all = false;
  // A model that ended so many workers one after the other is not run any more.
  uint32_t most_deaths = 3;
  // What a job may take, once it has a core.
  base::Nanoseconds job_limit = 2 * base::kSecond;
  std::function<void(const std::string&)> log;  // may be null
};

// Thread: any.
class WorkerPool {
 public:
  // Starts a worker and has it open the library: errors say why that cannot be
  // used. `clock` outlives the pool.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Open(
      PoolOptions options, const base::Clock& clock);

  // A worker that lives, for a model that has none. Looks at the library's file
  // again: it may have been replaced.
  absl::StatusOr<std::shared_ptr<WorkerProcess>> Get();
  // Of a model in a worker: no other one's, ever.
  uint32_t NextModel() { return ++last_model_; }
  // Kills those that have jobs.
  void ResetBusy();
  void Say(const std::string& line) const {
    if (options_.log != nullptr) options_.log(line);
  }

  // What the library said of itself and of the driver with a model; the first
  // time, and when they change, it is said in the log.
  void NoteVersions(const std::string& library, const std::string& driver);
  // Empty until a model was loaded: the library tells with one only.
  [[nodiscard]] std::string library_version() const;

  [[nodiscard]] const PoolOptions& options() const { return options_; }
  // That ended by themselves, or were killed for what they did.
  [[nodiscard]] uint64_t deaths() const { return deaths_.load(); }
  void CountDeath() { ++deaths_; }

 private:
  WorkerPool(PoolOptions options, const base::Clock& clock)
      : clock_(clock), options_(std::move(options)) {}
  absl::StatusOr<std::shared_ptr<WorkerProcess>> Start() RKNND_REQUIRES(mutex_);

  const base::Clock& clock_;
  const PoolOptions options_;
  std::atomic<uint32_t> last_model_{0};
  std::atomic<uint64_t> deaths_{0};
  std::unique_ptr<WorkerWatch> watch_;
  mutable base::Mutex mutex_;
  std::string library_version_ RKNND_GUARDED_BY(mutex_);
  LibraryFile library_ RKNND_GUARDED_BY(mutex_);
  // The first one, until a model takes it; with one for all, that one.
  std::shared_ptr<WorkerProcess> ready_ RKNND_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<WorkerProcess>> all_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_WORKER_POOL_H_
