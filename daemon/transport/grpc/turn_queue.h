// Calls that wait for their turn. Accounts come in turn, whatever the number of
// their connections; of one account its connections, of one connection what
// came first:
//
//   account   connection   calls
//   a ------- a:1          1 2 3          1, 8, 4, 2, 5, 3
//     \------ a:2          4 5       =>   (a, b, a, a, a, a)
//   b ------- b:1          8
//
// It has a bound. Where it is full, one more takes the place of the newest call
// of whoever has most, so that a crowd leaves everybody a place. Names are
// peers' addresses and their tokens' names.

#ifndef DAEMON_TRANSPORT_GRPC_TURN_QUEUE_H_
#define DAEMON_TRANSPORT_GRPC_TURN_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"

namespace rknnd::transport {

// Thread: one, or under its owner's lock.
class TurnQueue {
 public:
  using Ticket = uint64_t;
  static constexpr base::Nanoseconds kNoDeadline =
      std::numeric_limits<base::Nanoseconds>::max();

  TurnQueue(uint32_t most, const base::Clock* clock)
      : most_(most), clock_(clock) {}

  struct Entered {
    Ticket ticket = 0;
    // Had to leave for it; may be the ticket itself.
    std::optional<Ticket> displaced;
  };
  // `deadline`: on the clock.
  Entered Add(const std::string& account, const std::string& connection,
              base::Nanoseconds deadline);
  // False: it is not here (any more).
  bool Remove(Ticket ticket);
  // Takes those that can be in time no more: what remains until their deadline
  // is not more than `needed`.
  std::vector<Ticket> TakeLate(base::Nanoseconds needed);

  // Whether a ticket can go now.
  enum class Answer : uint8_t {
    kGoes,
    kAccountMustWait,  // others may go
    kAllMustWait,      // nobody may pass it
  };
  // Takes the next in turn that can go.
  std::optional<Ticket> TakeNext(const std::function<Answer(Ticket)>& ask);

  [[nodiscard]] size_t size() const { return calls_.size(); }
  // Who has most of what waits; empty: nothing waits.
  [[nodiscard]] std::string LargestAccount() const;

 private:
  // What has turns among its like: an account, or a connection of one.
  struct Turn {
    uint64_t turn = 0;  // the least of all goes first
    size_t size = 0;
  };
  struct Line : Turn {
    std::set<Ticket> tickets;  // their numbers rise
  };
  struct Account : Turn {
    std::map<std::string, Line> lines;
    std::map<uint64_t, std::string> by_turn;
    std::set<std::pair<size_t, uint64_t>> by_size;  // size and turn
  };
  struct Call {
    std::string account, connection;
    base::Nanoseconds deadline = kNoDeadline;
  };

  void Take(Ticket ticket, bool served);
  // Who leaves for a call that has just come: the newest of the largest line of
  // the largest account; of equals the call itself, then who has its turn last.
  [[nodiscard]] Ticket OneTooMany(const Call& came) const;

  const uint32_t most_;
  const base::Clock* const clock_;
  uint64_t last_ = 0;  // ticket, or turn
  std::map<Ticket, Call> calls_;
  std::map<std::string, Account> accounts_;
  std::map<uint64_t, std::string> by_turn_;
  std::set<std::pair<size_t, uint64_t>> by_size_;
  std::set<std::pair<base::Nanoseconds, Ticket>> by_deadline_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_TURN_QUEUE_H_
