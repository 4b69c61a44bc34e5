// What requests of all peers may hold of this process together: so many of
// them, and so many bytes of their messages and answers. Taken before a message
// is read, given back when its answer has left. No peer gets more than three
// quarters of it, so that one that never reads keeps nobody else out; nor does
// it begin many requests before the first of them are answered, so that their
// messages do not wait in memory for each other. Asked by the endpoints, and by
// the queue of those who wait for room (request_turns.h); sizes and names of
// peers are theirs, so nothing here trusts them to be small.

#ifndef DAEMON_TRANSPORT_GRPC_REQUEST_BUDGET_H_
#define DAEMON_TRANSPORT_GRPC_REQUEST_BUDGET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"

namespace rknnd::transport {

// Of the requests that a peer holds, no more than kAtOnce were taken within
// `window` before `now`. Those that take longer wait for something else than
// for each other: a slow network, a reader that does not read.
struct RequestPace {
  static constexpr size_t kAtOnce = 16;
  base::Nanoseconds now = 0;
  base::Nanoseconds window = 0;  // 0: there is no such bound
};

// Thread: any.
class RequestBudget {
 public:
  struct Limits {
    uint64_t bytes = 0;
    uint32_t requests = 0;
  };
  explicit RequestBudget(const Limits& limits);

  // What one request holds, until it is destroyed. One thread at a time; the
  // budget outlives it.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&& other) noexcept;
    ~Hold() { Release(); }

    // So many bytes more, of those it took ahead first. RESOURCE_EXHAUSTED: it
    // keeps what it has.
    absl::Status Grow(uint64_t bytes);
    // Gives back what it took ahead and did not grow into.
    void DropAhead();
    void Release();
    [[nodiscard]] uint64_t bytes() const { return bytes_; }

   private:
    friend class RequestBudget;
    RequestBudget* budget_ = nullptr;
    std::string peer_;
    uint64_t bytes_ = 0;
    uint64_t ahead_ = 0;           // of bytes_
    base::Nanoseconds taken_ = 0;  // when; 0: it has no pace
    bool grown_ = false;           // its message has been read
  };

  // `peer`: GrpcPeer::account. RESOURCE_EXHAUSTED, saying which limit and who
  // holds how much of it.
  absl::StatusOr<Hold> Take(const std::string& peer, uint64_t bytes);

  // The same for who can wait: kNotForPeer, it has its part. `ahead`: bytes of
  // a message that is to be read, which gRPC gathers first: no more of them are
  // gathered at once than have room.
  enum class Room : uint8_t { kYes, kNotForPeer, kNone };
  Room TryTake(const std::string& peer, uint64_t bytes, uint64_t ahead,
               Hold* hold, const RequestPace& pace = {});
  // What to take ahead where nobody can tell how long a message is: what the
  // peer's last ones held with their answers, while it has some.
  [[nodiscard]] uint64_t ExpectedBytes(const std::string& peer) const;
  // Whether no peer can ever have so much.
  [[nodiscard]] bool IsTooMuch(uint64_t bytes, uint64_t ahead) const {
    return bytes > of_one_.bytes || ahead > of_one_.bytes - bytes;
  }
  // Called when something was given back, on whatever thread, with whatever its
  // caller has locked. Set while nothing is held.
  void set_on_room(std::function<void()> on_room) {
    on_room_ = std::move(on_room);
  }

  struct Usage {
    uint64_t bytes = 0;
    uint32_t requests = 0;
    uint64_t refused = 0;  // since the start
  };
  [[nodiscard]] Usage usage() const;

 private:
  struct Share {
    uint64_t bytes = 0;
    uint32_t requests = 0;
    uint64_t expected = 0;  // of its next message; 0: not known
    std::multiset<base::Nanoseconds> taken;  // when; of those with a pace
  };

  [[nodiscard]] static bool IsTooSoon(const Share& share,
                                      const RequestPace& pace);
  Room TryCharge(const std::string& peer, uint64_t bytes, uint32_t requests,
                 const RequestPace& pace) RKNND_REQUIRES(mutex_);
  // Charges `peer`, or says why not.
  absl::Status Charge(const std::string& peer, uint64_t bytes,
                      uint32_t requests) RKNND_EXCLUDES(mutex_);
  // What a request took ahead in vain, or all of one that has ended.
  struct Given {
    uint64_t bytes = 0;
    uint32_t requests = 0;
    uint64_t used = 0;  // what it held; 0: nothing can be learned
    base::Nanoseconds taken = 0;
  };
  void GiveBack(const std::string& peer, const Given& given)
      RKNND_EXCLUDES(mutex_);

  const Limits limits_;
  const Limits of_one_;  // the part that one peer may have
  std::function<void()> on_room_;
  mutable base::Mutex mutex_;
  Usage usage_ RKNND_GUARDED_BY(mutex_);
  std::map<std::string, Share> peers_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_REQUEST_BUDGET_H_
