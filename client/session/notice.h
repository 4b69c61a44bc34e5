// Where a program's event loop sleeps for the ends of its runs: one descriptor
// that outlives daemons. Inside it are the socket into which the daemon of now
// sends a byte for each end, a counter for what is found out on this side, and
// a clock for coming back to a daemon that is away. Used by the program's
// threads; the session attaches a new socket after each rebuild.

#ifndef CLIENT_SESSION_NOTICE_H_
#define CLIENT_SESSION_NOTICE_H_

#include <cstdint>
#include <memory>

#include "base/posix/clock.h"
#include "base/posix/expected.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "client/rknnrt/target.h"

namespace rknnd::client {

class SessionTarget;

// Thread: any. The lock is a leaf: the session is never called with it.
class SessionNotice final : public RunNotice {
 public:
  static base::Expected<std::shared_ptr<SessionNotice>> Make(
      SessionTarget& target, uint32_t number);
  ~SessionNotice() override;
  SessionNotice(const SessionNotice&) = delete;
  SessionNotice& operator=(const SessionNotice&) = delete;

  [[nodiscard]] int fd() const override { return epoll_.get(); }
  [[nodiscard]] uint32_t number() const override { return number_; }
  void Clear(bool runs) override;
  void Remind() override;

  // The program's end of a socket whose other end the daemon has.
  void Attach(base::UniqueFd socket);
  [[nodiscard]] bool attached();
  // `fd` can be read after `delay`, if not before.
  void RemindIn(base::Nanoseconds delay);

 private:
  SessionNotice(SessionTarget& target, uint32_t number, base::UniqueFd epoll,
                base::UniqueFd counter, base::UniqueFd timer);
  void Detach() RKNND_REQUIRES(mutex_);

  SessionTarget& target_;
  const uint32_t number_;
  const base::UniqueFd epoll_, counter_, timer_;

  base::Mutex mutex_;
  base::UniqueFd socket_ RKNND_GUARDED_BY(mutex_);  // invalid: daemon gone
  bool reminded_ RKNND_GUARDED_BY(mutex_) = false;
  bool timed_ RKNND_GUARDED_BY(mutex_) = false;
  base::Nanoseconds delay_ RKNND_GUARDED_BY(mutex_) = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_NOTICE_H_
