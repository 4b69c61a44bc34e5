// The descriptors and mappings of this process's session with the daemon, so
// that a forked child gives up its copies as it begins: a session lasts as long
// as its socket is open anywhere, and a child that lived on would keep its dead
// parent's memory alive. Later their numbers may be the child's own files:
// programs that become daemons close all they have. Memory that a program made
// or brought is not listed: the child may go on looking at it.

#ifndef CLIENT_SESSION_FORK_CLEANUP_H_
#define CLIENT_SESSION_FORK_CLEANUP_H_

#include <cstddef>
#include <map>
#include <set>

#include "base/posix/mutex.h"

namespace rknnd::client {

// Thread: any. The lock is a leaf, held for an insertion or a removal, and by
// the thread that forks over the fork itself.
class ForkCleanup {
 public:
  // The process's.
  static ForkCleanup& Get();

  // From here to Remove the descriptor or mapping is closed in a child.
  void AddFd(int fd);
  void RemoveFd(int fd);
  void AddMapping(void* address, size_t size);
  void RemoveMapping(void* address);

  // Around a fork; in the child all of it is closed and unmapped before
  // anything else runs.
  void LockForFork();
  void UnlockInParent();
  void UnlockInChild();

 private:
  void CloseAll() RKNND_REQUIRES(mutex_);

  base::Mutex mutex_;
  std::set<int> fds_ RKNND_GUARDED_BY(mutex_);
  std::map<void*, size_t> mappings_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_FORK_CLEANUP_H_
