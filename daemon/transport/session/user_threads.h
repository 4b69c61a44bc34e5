// Threads for work that a user's programs can make last, so that the loop waits
// for nobody: above all closing what they have sent, as a client decides how
// long it takes to close a connection of its own that lingers, a file of its
// own file system or gigabytes of memory; and telling those who are slow to
// hear (notices.h). Used by the server and its connections.

#ifndef DAEMON_TRANSPORT_SESSION_USER_THREADS_H_
#define DAEMON_TRANSPORT_SESSION_USER_THREADS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"

namespace rknnd::transport {

// The work of each owner is done piece by piece, in its order, so that an owner
// holds up its own and one thread at most. Thread: any.
class UserThreads {
 public:
  // Descriptors that one owner may keep from being closed: as many as its
  // sessions' sockets and a few messages.
  static constexpr size_t kMostOfOwner = 4096;

  UserThreads();
  // Waits for those that can be closed at once.
  ~UserThreads();
  UserThreads(const UserThreads&) = delete;
  UserThreads& operator=(const UserThreads&) = delete;

  // Has a thread from now on; before it closes at once.
  void Start();
  void Close(const std::string& owner, std::vector<base::UniqueFd> fds);
  // Does `work` there, which may last as well, and returns how long the owner's
  // next piece is to wait. False, and nothing is done, where the owner has as
  // much to be closed and done as it may, or no thread.
  bool Do(const std::string& owner, std::function<base::Nanoseconds()> work);
  // False while too many of its descriptors could not be closed.
  [[nodiscard]] bool HasRoom(const std::string& owner) const;

 private:
  struct State;
  // Shared with threads, of which one may outlive this.
  const std::shared_ptr<State> state_;
};

// While one lives, what UniqueFd would close on this thread is appended to
// `left` in its place; but memfds of few pages, which take no time. Nested, the
// inner one counts. Thread: that which made it.
class ClosesElsewhere {
 public:
  explicit ClosesElsewhere(std::vector<base::UniqueFd>* left);
  ~ClosesElsewhere();
  ClosesElsewhere(const ClosesElsewhere&) = delete;
  ClosesElsewhere& operator=(const ClosesElsewhere&) = delete;

 private:
  std::vector<base::UniqueFd>* const outer_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_USER_THREADS_H_
