// What a call has seen of daemons' ends, and when it is not put to another one.

#ifndef CLIENT_SESSION_LOSSES_H_
#define CLIENT_SESSION_LOSSES_H_

#include <string>

#include "base/posix/clock.h"
#include "base/values/expected.h"

namespace rknnd::client {

// A call that ends every daemon it is put to is not put to them forever. One
// that others' daemons end under is: time alone bounds that.
class Losses {
 public:
  // `may_be_it`: what was asked may be what ended the daemon.
  void Add(bool may_be_it, base::Nanoseconds now) {
    if (deaths_++ == 0) first_ = now;
    if (may_be_it) ++suspected_;
  }
  [[nodiscard]] bool any() const { return deaths_ != 0; }
  // `bound`: for how long at least it is tried anew where it is no suspect.
  [[nodiscard]] bool TooMany(base::Nanoseconds now,
                             base::Nanoseconds bound) const {
    return suspected_ >= kMost || (deaths_ >= kMost && now - first_ >= bound);
  }
  // To be waited before the next try: a daemon that closes the session at once
  // is not asked again at once, time after time.
  [[nodiscard]] base::Nanoseconds Pause() const {
    if (deaths_ < kMost) return 0;
    constexpr base::Nanoseconds kLongest = 500 * base::kMillisecond;
    const base::Nanoseconds pause = deaths_ * (10 * base::kMillisecond);
    return pause < kLongest ? pause : kLongest;
  }
  // `last`: how the last one went.
  [[nodiscard]] base::Error ToError(const std::string& last = "") const;

 private:
  static constexpr int kMost = 5;

  int deaths_ = 0;
  int suspected_ = 0;
  base::Nanoseconds first_ = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_LOSSES_H_
