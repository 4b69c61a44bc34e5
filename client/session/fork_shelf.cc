// Called by connections as they come and go, and around fork().

#include "client/session/fork_shelf.h"

#include <sys/mman.h>
#include <unistd.h>

namespace rknnd::client {

ForkShelf& ForkShelf::Get() {
  static ForkShelf& shelf = *new ForkShelf;
  return shelf;
}

void ForkShelf::AddFd(int fd) {
  const base::MutexLock lock(mutex_);
  fds_.insert(fd);
}

void ForkShelf::RemoveFd(int fd) {
  const base::MutexLock lock(mutex_);
  fds_.erase(fd);
}

void ForkShelf::AddMapping(void* address, size_t size) {
  const base::MutexLock lock(mutex_);
  mappings_[address] = size;
}

void ForkShelf::RemoveMapping(void* address) {
  const base::MutexLock lock(mutex_);
  mappings_.erase(address);
}

void ForkShelf::CloseAll() {
  for (const int fd : fds_) close(fd);
  for (const auto& [address, size] : mappings_) munmap(address, size);
  fds_.clear();
  mappings_.clear();
}

void ForkShelf::LockForFork() RKNND_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }

void ForkShelf::UnlockInParent() RKNND_NO_THREAD_SAFETY_ANALYSIS {
  mutex_.unlock();
}

// Of the fork's thread, the only one there is here: memory is allocated and
// freed as ever, which glibc sees to.
void ForkShelf::UnlockInChild() RKNND_NO_THREAD_SAFETY_ANALYSIS {
  CloseAll();
  mutex_.unlock();
}

}  // namespace rknnd::client
