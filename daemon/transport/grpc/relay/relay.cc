#include "daemon/transport/grpc/relay/relay.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/transport/grpc/relay/relayed_connection.h"

namespace rknnd::transport {
namespace {

constexpr size_t kMostRead = 64 << 10;
constexpr size_t kLittleRead = 4 << 10;
// Kept for peers and for gRPC; above it connections are read in small pieces.
constexpr uint64_t kMuchKept = 8 << 20;
// Who has no room asks again so soon.
constexpr base::Nanoseconds kAskAgain = 5 * base::kMillisecond;
// The pool may be full so long before who holds most of it is ended.
constexpr base::Nanoseconds kLongestFull = 2 * base::kSecond;
// Peers that were cut off and wait for it, each with a descriptor.
constexpr size_t kMostCut = 128;
// Of so many connections or more three quarters must have gone, and gRPC has so
// long to free what it had for them.
constexpr size_t kMany = 32;
constexpr base::Nanoseconds kTrimAfter = 300 * base::kMillisecond;

// Nobody else knows it, so nobody else can have bound the names.
std::string NamePrefix() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) number = 0;
  return absl::StrCat("rknnd-grpc-", absl::Hex(number, absl::kZeroPad16), "-");
}

}  // namespace

Relay::Relay(const RelayOptions& options, base::EventLoop* loop,
             const base::Clock* clock, FailureLog* failures, PeerTable* peers,
             TlsFiles* tls, const std::atomic<int64_t>* live_calls, Give give,
             Trim trim)
    : options_(options),
      loop_(loop),
      clock_(clock),
      failures_(failures),
      peers_(peers),
      tls_(tls),
      live_calls_(live_calls),
      give_(std::move(give)),
      trim_(std::move(trim)),
      prefix_(NamePrefix()),
      scratch_(kMostRead),
      memory_(options.pool),
      resets_(options.resets_at_once, options.reset_interval),
      cut_(kMostCut, loop) {}

Relay::~Relay() {
  finished_ = nullptr;
  while (!connections_.empty()) connections_.begin()->first->End();
  if (retry_ != 0) loop_->CancelTimer(retry_);
  if (finish_ != 0) loop_->CancelTimer(finish_);
  if (trimming_ != 0) loop_->CancelTimer(trimming_);
}

void Relay::Take(AcceptedConnection connection) {
  auto relayed = std::make_shared<RelayedConnection>(
      this, std::move(connection), absl::StrCat(prefix_, next_++));
  connections_.emplace(relayed.get(), relayed);
  most_ = std::max(most_, connections_.size());
  relayed->Begin();
}

std::span<std::byte> Relay::Scratch(size_t most) {
  return std::span(scratch_).first(
      std::min(most, KeepsMuch() ? kLittleRead : kMostRead));
}

bool Relay::KeepsMuch() const { return kept_ >= kMuchKept; }

bool Relay::MayOpen(uint32_t resets, base::RateLimit* host) const {
  const int64_t ending =
      live_calls_->load(std::memory_order_relaxed) - streams_;
  if (ending > options_.ending) return false;
  // Fewer are counted once there are so many.
  if (resets < Http2Room::kUnseenResets) return true;
  return ending <= options_.ending / 4 &&
         host->Take(clock_->Now(), std::min(resets, options_.resets_at_once)) ==
             0;
}

std::shared_ptr<base::RateLimit> Relay::ResetsOf(const std::string& host) {
  if (!host.empty()) return resets_.Of(host, clock_->Now());
  return std::make_shared<base::RateLimit>(options_.resets_at_once,
                                           options_.reset_interval);
}

void Relay::Wait(RelayedConnection* connection) {
  waiting_.insert(connection);
  if (retry_ == 0) {
    retry_ = loop_->RunAfter(kAskAgain, [this] {
      retry_ = 0;
      Retry();
    });
  }
}

void Relay::Retry() {
  bool full = false;
  for (RelayedConnection* waiting : std::exchange(waiting_, {})) {
    // One that ended meanwhile is another's victim.
    const auto found = connections_.find(waiting);
    if (found == connections_.end()) continue;
    const auto held = found->second;
    held->Retry();
    full |= held->lacks_room();
  }
  if (!full) {
    full_since_ = 0;
    return;
  }
  const base::Nanoseconds now = clock_->Now();
  if (full_since_ == 0) full_since_ = now;
  if (now - full_since_ < kLongestFull) return;
  full_since_ = 0;
  const InboundMemory::Account* const greatest = memory_.Greatest();
  for (const auto& [connection, held] : connections_) {
    if (&connection->account() != greatest) continue;
    const auto victim = held;
    return victim->Cut(
        "it holds most of what messages that have not come whole may have "
        "(grpc.memory)");
  }
}

void Relay::Forget(RelayedConnection* connection) {
  waiting_.erase(connection);
  connections_.erase(connection);
  if (most_ >= kMany && connections_.size() <= most_ / 4 && trimming_ == 0) {
    trimming_ = loop_->RunAfter(kTrimAfter, [this] {
      trimming_ = 0;
      most_ = connections_.size();
      trim_();
    });
  }
  if (connections_.empty() && finished_ != nullptr) {
    loop_->Post(std::exchange(finished_, nullptr));
  }
}

void Relay::Finish(base::Nanoseconds within, std::function<void()> done) {
  if (connections_.empty()) return loop_->Post(std::move(done));
  finished_ = std::move(done);
  finish_ = loop_->RunAfter(within, [this] {
    finish_ = 0;
    while (!connections_.empty()) connections_.begin()->first->End();
  });
}

}  // namespace rknnd::transport
