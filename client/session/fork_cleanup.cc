// Called by connections as they come and go, and around fork().

#include "client/session/fork_cleanup.h"

#include <sys/mman.h>
#include <unistd.h>

namespace rknnd::client {

ForkCleanup& ForkCleanup::Get() {
  static ForkCleanup& cleanup = *new ForkCleanup;
  return cleanup;
}

void ForkCleanup::AddFd(int fd) {
  const base::MutexLock lock(mutex_);
  fds_.insert(fd);
}

void ForkCleanup::RemoveFd(int fd) {
  const base::MutexLock lock(mutex_);
  fds_.erase(fd);
}

void ForkCleanup::AddMapping(void* address, size_t size) {
  const base::MutexLock lock(mutex_);
  mappings_[address] = size;
}

void ForkCleanup::RemoveMapping(void* address) {
  const base::MutexLock lock(mutex_);
  mappings_.erase(address);
}

void ForkCleanup::CloseAll() {
  for (const int fd : fds_) close(fd);
  for (const auto& [address, size] : mappings_) munmap(address, size);
  fds_.clear();
  mappings_.clear();
}

void ForkCleanup::LockForFork() RKNND_NO_THREAD_SAFETY_ANALYSIS {
  mutex_.lock();
}

void ForkCleanup::UnlockInParent() RKNND_NO_THREAD_SAFETY_ANALYSIS {
  mutex_.unlock();
}

// Of the fork's thread, the only one there is here: memory is allocated and
// freed as ever, which glibc sees to.
void ForkCleanup::UnlockInChild() RKNND_NO_THREAD_SAFETY_ANALYSIS {
  CloseAll();
  mutex_.unlock();
}

}  // namespace rknnd::client
