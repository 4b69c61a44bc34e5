// A session with the daemon that is only there, or misbehaves: the session
// socket after Hello, with its doorbell, and nothing of the client library.

#ifndef BENCH_HOTPATH_RAW_SESSION_H_
#define BENCH_HOTPATH_RAW_SESSION_H_

#include <sys/types.h>

#include <string>

#include "base/posix/unique_fd.h"

namespace rknnd::bench {

class RawSession {
 public:
  // `target` as in RKNND_TARGET. Throws std::runtime_error.
  explicit RawSession(const std::string& target);

  void Ring() const;

 private:
  base::UniqueFd socket_, doorbell_;
};

// A process that rings a session's doorbell as fast as it can, for nothing.
class Flood {
 public:
  Flood(const std::string& target, int cpu);
  ~Flood();
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

 private:
  pid_t child_ = -1;
};

}  // namespace rknnd::bench

#endif  // BENCH_HOTPATH_RAW_SESSION_H_
