// What runs wait for and what they tell: numbers for descriptors, which the
// daemon gets over the socket before an entry of the ring may name them. A
// number is given back when its run has ended, with the next request if the
// socket is busy. The next daemon gets those of runs that are on their way.

#ifndef CLIENT_SESSION_FENCE_TABLE_H_
#define CLIENT_SESSION_FENCE_TABLE_H_

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "client/session/connection.h"
#include "client/session/link.h"
#include "client/session/record.h"
#include "client/target/types.h"
#include "proto/wire/ring.h"

namespace rknnd::client {

// Thread: any; "with access" is the thread that may use the link's socket. The
// lock is a leaf.
class FenceTable {
 public:
  explicit FenceTable(SessionLink& link) : link_(link) {}

  // As Target's.
  base::Expected<uint32_t> Register(int fd);
  base::Expected<FenceOut> Make();
  void Release(uint32_t fence);

  // A number for what is no fence and has one, too, until it is given back;
  // with access.
  uint32_t Reserve();
  void GiveBack(uint32_t number);
  // The run that had this job's has ended.
  void GiveBackOf(const wire::Submission& job, base::Code code);
  // Whether the daemon of now has a fence that a run may tell.
  [[nodiscard]] bool CanBeTold(uint32_t number);

  // Tells the daemon of the numbers that nobody uses any more; those that it
  // cannot be told of within `patience` are kept for the next time. With
  // access.
  void ReleaseStale(Connection& connection,
                    base::Nanoseconds patience = Connection::kNotifyPatience);
  // Without access, and soon over: now, or with the next fence.
  void TryReleaseStale();

  // Gives the next daemon what runs on their way have; those that have ended
  // are given back by now. With access.
  base::Expected<void> Replay(Connection& connection, const Grace& grace);

 private:
  // What a run waits for.
  struct Waited {
    base::UniqueFd fd;
    uint32_t source = 0;  // one of made_, 0: the program's own
  };
  // A fence that another run of this session may wait for. The descriptor that
  // the program has dies with the daemon; the two runs meet at a new one then.
  struct Made {
    dev_t device = 0;
    ino_t inode = 0;
    base::UniqueFd renewed;
  };

  // The next four with access.
  uint32_t NextNumber();
  // What a run that waits for `fd` is to wait for, and which made fence that
  // is.
  base::Expected<Waited> SourceOf(base::UniqueFd fd) const;
  // The other end of a made fence once more, for runs of a rebuilt session.
  base::Expected<base::UniqueFd> Renew(Connection& connection, uint32_t source);
  // Its run has ended; `untold`: perhaps without a word to the program's end.
  void ForgetMade(uint32_t number, bool untold);

  SessionLink& link_;

  // Touched only by the thread that has access. By number: what runs wait for,
  // and the fences that runs tell.
  std::map<uint32_t, Waited> waited_;
  std::map<uint32_t, Made> made_;
  uint32_t last_number_ = 0;
  // Made ones of runs that ended well, and that their daemon died without
  // telling; the newest, by device and inode.
  std::deque<std::pair<dev_t, ino_t>> ended_;

  base::Mutex mutex_;
  std::set<uint32_t> reserved_ RKNND_GUARDED_BY(mutex_);
  // Fences that the daemon of now has, for runs to tell.
  std::set<uint32_t> told_ RKNND_GUARDED_BY(mutex_);
  std::vector<uint32_t> stale_ RKNND_GUARDED_BY(mutex_);
  // Fences among the stale ones whose runs did not end well.
  std::set<uint32_t> failed_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_FENCE_TABLE_H_
