// A relay between clients and a daemon's session socket, as a proxy that loses
// connections when told, and that lets them wait as a daemon does that is being
// started. Messages go through whole, with their descriptors; the ring is the
// daemon's own.

#ifndef TESTS_INTEGRATION_HARNESS_SESSION_RELAY_H_
#define TESTS_INTEGRATION_HARNESS_SESSION_RELAY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"

namespace rknnd::integration {

// Thread: any.
class SessionRelay {
 public:
  enum class From { kClient, kDaemon };

  // Listens at `path`. Fails the test when it cannot.
  SessionRelay(const std::string& path, std::string daemon);
  ~SessionRelay();
  SessionRelay(const SessionRelay&) = delete;
  SessionRelay& operator=(const SessionRelay&) = delete;

  // The connection that carries the `count`-th message (1: the next) from that
  // side is lost with it, before it is handed on or right after; once.
  void LoseAt(From from, int64_t count, bool handed_on);
  [[nodiscard]] int lost() const { return lost_; }

  // Connections wait to be accepted, or no longer.
  void SetAccepting(bool accepting);
  // Whether one waits for it; as long as nothing is accepted.
  bool HasWaiting(int timeout_ms) const;

 private:
  struct Pair {
    base::UniqueFd client, daemon;
    bool over = false;
  };
  struct Plan {
    From from = From::kClient;
    int64_t left = 0;  // 0: nothing is lost
    bool handed_on = false;
  };

  void Run();
  void Accept();
  // One message; false when the connection is over.
  bool Carry(const Pair& pair, From from);
  // Whether this message is the one.
  bool IsFatal(From from, bool* handed_on);

  const std::string daemon_;
  base::UniqueFd listener_, wakeup_;
  std::atomic<bool> accepting_{true};
  std::atomic<bool> stop_{false};
  std::atomic<int> lost_{0};
  base::Mutex mutex_;
  Plan plan_ RKNND_GUARDED_BY(mutex_);
  std::list<Pair> pairs_;          // the thread's
  std::vector<std::byte> buffer_;  // the thread's
  std::thread thread_;
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_SESSION_RELAY_H_
