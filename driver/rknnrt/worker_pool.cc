#include "driver/rknnrt/worker_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/rknnrt/versions.h"

namespace rknnd::rknnrt {

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Open(
    PoolOptions options, const base::Clock& clock) {
  std::unique_ptr<WorkerPool> pool(new WorkerPool(std::move(options), clock));
  RKNND_ASSIGN_OR_RETURN(pool->watch_,
                         WorkerWatch::Start(clock, pool->options_.log));
  base::MutexLock lock(pool->mutex_);
  pool->library_ = pool->options_.setup.library;
  RKNND_ASSIGN_OR_RETURN(pool->ready_, pool->Start());
  return pool;
}

absl::StatusOr<std::shared_ptr<WorkerProcess>> WorkerPool::Start() {
  WorkerSetup setup = options_.setup;
  RKNND_ASSIGN_OR_RETURN(const LibraryFile now,
                         CheckLibraryFile(library_.path));
  if (!(now == library_)) {
    Say(absl::StrCat("the vendor's library '", library_.path,
                     "' was replaced: workers that start from now on have the "
                     "new one"));
    library_ = now;
  }
  setup.library = library_;
  RKNND_ASSIGN_OR_RETURN(std::shared_ptr<WorkerProcess> worker,
                         WorkerProcess::Start(setup, *watch_, clock_));
  std::erase_if(all_, [](const auto& other) { return other.expired(); });
  all_.push_back(worker);
  return worker;
}

absl::StatusOr<std::shared_ptr<WorkerProcess>> WorkerPool::Get() {
  base::MutexLock lock(mutex_);
  if (ready_ == nullptr || ready_->dead()) {
    RKNND_ASSIGN_OR_RETURN(ready_, Start());
  }
  if (options_.one_for_all) return ready_;
  return std::exchange(ready_, nullptr);
}

void WorkerPool::NoteVersions(const std::string& library,
                              const std::string& driver) {
  {
    base::MutexLock lock(mutex_);
    if (library == library_version_) return;
    library_version_ = library;
  }
  Say(absl::StrCat("the vendor's library is version ", library, ", on driver ",
                   driver));
  if (const std::string why = WhyDriverIsOld(driver); !why.empty()) Say(why);
}

std::string WorkerPool::library_version() const {
  base::MutexLock lock(mutex_);
  return library_version_;
}

void WorkerPool::ResetBusy() {
  std::vector<std::shared_ptr<WorkerProcess>> busy;
  {
    base::MutexLock lock(mutex_);
    for (const auto& weak : all_) {
      auto worker = weak.lock();
      if (worker != nullptr && !worker->dead() && worker->has_jobs()) {
        busy.push_back(std::move(worker));
      }
    }
  }
  for (const auto& worker : busy) worker->KillForReset();
}

}  // namespace rknnd::rknnrt
