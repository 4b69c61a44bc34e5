// Where a program's event loop sleeps for the ends of its runs: one descriptor
// that outlives daemons. Inside it are the socket into which the daemon of now
// sends a byte for each end, a counter for what is found out on this side, and
// a clock for coming back to a daemon that is away. Used by the program's
// threads; the session attaches a new socket after each rebuild.

#ifndef CLIENT_SESSION_NOTICE_H_
#define CLIENT_SESSION_NOTICE_H_

#include <cstdint>
#include <map>
#include <memory>

#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "client/session/fence_table.h"
#include "client/session/link.h"
#include "client/session/record.h"

namespace rknnd::client {

class NoticeTable;
class PendingRuns;

// Where a thread sleeps for the ends of many runs: a descriptor that can be
// read, level-triggered, when one of the runs that name its number ended, or
// when the daemon is gone and somebody must look after them. Thread: any. The
// lock is a leaf: the session is never called with it.
class RunNotice {
 public:
  // The number is nobody's afterwards. `table` and `runs` stay longer.
  static base::Expected<std::shared_ptr<RunNotice>> Make(NoticeTable& table,
                                                         PendingRuns& runs);
  ~RunNotice();
  RunNotice(const RunNotice&) = delete;
  RunNotice& operator=(const RunNotice&) = delete;

  [[nodiscard]] int fd() const { return epoll_.get(); }
  [[nodiscard]] uint32_t number() const { return number_; }
  // To be called before one looks which runs are done, never after: what is
  // told in between is then seen now or makes `fd` readable again. Where the
  // daemon is gone it looks once whether another one is there, and comes back
  // to that by itself as long as runs are on their way.
  void Clear();
  // A run was started that names it. Where no daemon could tell of its end, as
  // none was there when `fd` was cleared, that look is made soon.
  void Expect();
  // `fd` stays readable until the next Clear.
  void Remind();
  // `fd` can be read after `delay`, if not before.
  void RemindIn(base::Nanoseconds delay);

  // The program's end of a socket whose other end the daemon has.
  void Attach(base::UniqueFd socket);
  [[nodiscard]] bool attached();

 private:
  RunNotice(NoticeTable& table, PendingRuns& runs, base::UniqueFd epoll,
            base::UniqueFd counter, base::UniqueFd timer);
  void Detach() RKNND_REQUIRES(mutex_);

  NoticeTable& table_;
  PendingRuns& runs_;
  const base::UniqueFd epoll_, counter_, timer_;

  base::Mutex mutex_;
  base::UniqueFd socket_ RKNND_GUARDED_BY(mutex_);  // invalid: daemon gone
  bool reminded_ RKNND_GUARDED_BY(mutex_) = false;
  bool timed_ RKNND_GUARDED_BY(mutex_) = false;
  base::Nanoseconds delay_ RKNND_GUARDED_BY(mutex_) = 0;
  const uint32_t number_;  // last: with it others find this
};

// A session's notices, by number. Thread: any. The lock is held before a
// notice's, and no other.
class NoticeTable {
 public:
  NoticeTable(SessionLink& link, FenceTable& fences)
      : link_(link), fences_(fences) {}

  // Gives the daemon a new end of a notice's socket; with access.
  base::Expected<void> Attach(Connection& connection, uint32_t number);
  // All of them, the next daemon; with access.
  base::Expected<void> Replay(Connection& connection, const Grace& grace);
  // Its daemon is gone: looks once whether one is there; whether the notice has
  // its socket again.
  bool Restore(RunNotice& notice);

  // With access.
  uint32_t Add(RunNotice& notice);
  void Remove(uint32_t number);
  // Where there is one of that number.
  void Expect(uint32_t number);
  void Remind(uint32_t number);
  void RemindIn(uint32_t number, base::Nanoseconds delay);
  void RemindAll();

 private:
  SessionLink& link_;
  FenceTable& fences_;
  base::Mutex mutex_;
  std::map<uint32_t, RunNotice*> notices_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_NOTICE_H_
