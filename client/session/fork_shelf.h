// The descriptors and mappings of this process's session with the daemon, so
// that a forked child can give up its copies: a session lasts as long as its
// socket is open anywhere, and a child that lived on would keep its dead
// parent's memory alive. Memory that a program made or brought is not on the
// shelf: the child may go on looking at it.

#ifndef CLIENT_SESSION_FORK_SHELF_H_
#define CLIENT_SESSION_FORK_SHELF_H_

#include <cstddef>
#include <map>
#include <set>

#include "base/posix/mutex.h"

namespace rknnd::client {

// Thread: any. The lock is a leaf, held for an insertion or a removal, and by
// the thread that forks over the fork itself.
class ForkShelf {
 public:
  // The process's.
  static ForkShelf& Get();

  // From here to Remove the descriptor or mapping is closed by CloseAll.
  void AddFd(int fd);
  void RemoveFd(int fd);
  void AddMapping(void* address, size_t size);
  void RemoveMapping(void* address);

  // In a child, once: closes and unmaps everything.
  void CloseAll();

  void LockForFork();
  void UnlockAfterFork();

 private:
  base::Mutex mutex_;
  std::set<int> fds_ RKNND_GUARDED_BY(mutex_);
  std::map<void*, size_t> mappings_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_FORK_SHELF_H_
