// What peers may make gRPC keep before any of our own code looks at it:
// headers, open calls, messages that are not whole. A share of each connection
// is its own, so that who asks for little never waits; the rest is a pool of
// all, and where that stays full whoever holds most of it is ended.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_INBOUND_MEMORY_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_INBOUND_MEMORY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace rknnd::transport {

// Thread: the relay's.
class InboundMemory {
 public:
  // Of each connection, beside the pool.
  static constexpr uint64_t kOwnBytes = 64 << 10;

  // One connection's part.
  class Account {
   public:
    // `host`: whose connection it is. `memory` outlives it.
    Account(InboundMemory* memory, std::string host);
    ~Account();
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

    // False: the pool has no room; nothing was taken.
    bool Take(uint64_t bytes);
    void GiveBack(uint64_t bytes);
    // Of the pool.
    [[nodiscard]] uint64_t pooled() const {
      return held_ > kOwnBytes ? held_ - kOwnBytes : 0;
    }

   private:
    friend class InboundMemory;
    InboundMemory* const memory_;
    const std::string host_;
    uint64_t held_ = 0;
  };

  explicit InboundMemory(uint64_t pool) : pool_(pool) {}

  [[nodiscard]] uint64_t used() const { return used_; }
  // Of the host that holds most of the pool, the connection that does; null:
  // nobody holds any.
  [[nodiscard]] const Account* Greatest() const;

 private:
  void Change(const Account& account, uint64_t before);

  const uint64_t pool_;
  uint64_t used_ = 0;
  std::map<std::string, uint64_t> of_host_;
  std::set<const Account*> accounts_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_INBOUND_MEMORY_H_
