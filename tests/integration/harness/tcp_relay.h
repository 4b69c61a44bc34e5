// A TCP relay on a port of its own, as a proxy between a client and a daemon
// that loses connections when told.

#ifndef TESTS_INTEGRATION_HARNESS_TCP_RELAY_H_
#define TESTS_INTEGRATION_HARNESS_TCP_RELAY_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <thread>

#include "base/posix/unique_fd.h"

namespace rknnd::integration {

// Thread: any.
class TcpRelay {
 public:
  // To 127.0.0.1:`port`. Fails the test when there is no port for it.
  explicit TcpRelay(int port);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  [[nodiscard]] std::string address() const;  // "127.0.0.1:PORT"

  // After so many more bytes from the client the connection that carries them
  // is lost, wherever in a message that is; once.
  void LoseAfter(int64_t bytes) { left_ = bytes; }
  [[nodiscard]] int lost() const { return lost_; }
  // What comes from clients goes on in pieces of so many bytes, each by itself.
  void CutInto(size_t bytes) { piece_ = bytes; }

 private:
  struct Pair {
    base::UniqueFd near, far;
    bool over = false;
  };

  void Run();
  void Accept();
  // One read's worth; false when the connection is over.
  bool Carry(int from, int to, bool from_client);

  const int target_;
  int port_ = 0;
  base::UniqueFd listener_, stop_;
  std::atomic<int64_t> left_{INT64_MAX};
  std::atomic<int> lost_{0};
  std::atomic<size_t> piece_{SIZE_MAX};
  std::list<Pair> pairs_;  // the thread's
  std::thread thread_;
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_TCP_RELAY_H_
