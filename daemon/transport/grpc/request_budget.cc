// Called by the endpoints, on gRPC's threads and the loop, for every request of
// every peer.

#include "daemon/transport/grpc/request_budget.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::transport {
namespace {

// Of a limit, what one peer may have: room is left for others, and a large
// message still goes through where there is only one.
template <class Number>
Number PartOf(Number limit) {
  return std::max<Number>(1, limit - limit / 4);
}

// Taken ahead for a peer's first messages: a camera's picture, but no more than
// this part of what its peer may have.
constexpr uint64_t kAhead = uint64_t{1} << 20;
constexpr uint64_t kAheadPart = 64;
// What is expected of a peer follows larger messages at once, and smaller ones
// by this part.
constexpr uint64_t kForget = 16;

}  // namespace

RequestBudget::Hold::Hold(Hold&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)),
      peer_(std::move(other.peer_)),
      bytes_(std::exchange(other.bytes_, 0)),
      ahead_(std::exchange(other.ahead_, 0)),
      taken_(other.taken_),
      grown_(std::exchange(other.grown_, false)) {}

RequestBudget::Hold& RequestBudget::Hold::operator=(Hold&& other) noexcept {
  if (this == &other) return *this;
  Release();
  budget_ = std::exchange(other.budget_, nullptr);
  peer_ = std::move(other.peer_);
  bytes_ = std::exchange(other.bytes_, 0);
  ahead_ = std::exchange(other.ahead_, 0);
  taken_ = other.taken_;
  grown_ = std::exchange(other.grown_, false);
  return *this;
}

absl::Status RequestBudget::Hold::Grow(uint64_t bytes) {
  if (budget_ == nullptr) {
    return absl::InternalError("a request that holds nothing cannot grow");
  }
  const uint64_t had = std::min(ahead_, bytes);
  absl::Status charged = budget_->Charge(peer_, bytes - had, 0);
  if (!charged.ok()) return charged;
  ahead_ -= had;
  bytes_ += bytes - had;
  grown_ = true;
  return charged;
}

void RequestBudget::Hold::DropAhead() {
  if (budget_ == nullptr) return;
  const uint64_t ahead = std::exchange(ahead_, 0);
  bytes_ -= ahead;
  if (ahead != 0) budget_->GiveBack(peer_, {.bytes = ahead});
}

void RequestBudget::Hold::Release() {
  if (budget_ == nullptr) return;
  const uint64_t used = grown_ ? bytes_ - ahead_ : 0;
  ahead_ = 0;
  grown_ = false;
  std::exchange(budget_, nullptr)
      ->GiveBack(peer_, {std::exchange(bytes_, 0), 1, used, taken_});
}

RequestBudget::RequestBudget(const Limits& limits)
    : limits_(limits), of_one_{PartOf(limits.bytes), PartOf(limits.requests)} {}

absl::StatusOr<RequestBudget::Hold> RequestBudget::Take(const std::string& peer,
                                                        uint64_t bytes) {
  absl::Status charged = Charge(peer, bytes, 1);
  if (!charged.ok()) return charged;
  Hold hold;
  hold.budget_ = this;
  hold.peer_ = peer;
  hold.bytes_ = bytes;
  return hold;
}

RequestBudget::Room RequestBudget::TryTake(const std::string& peer,
                                           uint64_t bytes, uint64_t ahead,
                                           Hold* hold,
                                           const RequestPace& pace) {
  {
    base::MutexLock lock(mutex_);
    const Room room = TryCharge(peer, bytes + ahead, 1, pace);
    if (room != Room::kYes) return room;
  }
  Hold taken;
  taken.budget_ = this;
  taken.peer_ = peer;
  taken.bytes_ = bytes + ahead;
  taken.ahead_ = ahead;
  if (pace.window > 0) taken.taken_ = pace.now;
  *hold = std::move(taken);
  return Room::kYes;
}

uint64_t RequestBudget::ExpectedBytes(const std::string& peer) const {
  const uint64_t least = std::min(kAhead, of_one_.bytes / kAheadPart);
  base::MutexLock lock(mutex_);
  const auto found = peers_.find(peer);
  if (found == peers_.end() || found->second.expected == 0) return least;
  return std::min(found->second.expected, of_one_.bytes / 2);
}

bool RequestBudget::IsTooSoon(const Share& share, const RequestPace& pace) {
  constexpr auto kAtOnce = static_cast<long>(RequestPace::kAtOnce);
  return pace.window > 0 && share.taken.size() >= RequestPace::kAtOnce &&
         *std::prev(share.taken.end(), kAtOnce) > pace.now - pace.window;
}

RequestBudget::Room RequestBudget::TryCharge(const std::string& peer,
                                             uint64_t bytes, uint32_t requests,
                                             const RequestPace& pace) {
  // Sums stay below the limits, so that nothing here can overflow.
  if (usage_.requests + requests > limits_.requests ||
      bytes > limits_.bytes - usage_.bytes) {
    return Room::kNone;
  }
  const auto found = peers_.find(peer);
  const Share none;
  const Share& has = found == peers_.end() ? none : found->second;
  if (has.requests + requests > of_one_.requests ||
      bytes > of_one_.bytes - has.bytes || IsTooSoon(has, pace)) {
    return Room::kNotForPeer;
  }
  usage_.bytes += bytes;
  usage_.requests += requests;
  Share& share = found == peers_.end() ? peers_[peer] : found->second;
  share.bytes += bytes;
  share.requests += requests;
  if (pace.window > 0) share.taken.insert(pace.now);
  return Room::kYes;
}

absl::Status RequestBudget::Charge(const std::string& peer, uint64_t bytes,
                                   uint32_t requests) {
  base::MutexLock lock(mutex_);
  if (TryCharge(peer, bytes, requests, {}) == Room::kYes) {
    return absl::OkStatus();
  }
  ++usage_.refused;
  const auto found = peers_.find(peer);
  const Share none;
  const Share& has = found == peers_.end() ? none : found->second;
  std::string reason;
  if (usage_.requests + requests > limits_.requests) {
    reason = absl::StrCat("all ", limits_.requests,
                          " requests are taken (grpc.requests)");
  } else if (has.requests + requests > of_one_.requests) {
    reason = absl::StrCat("a peer may have ", of_one_.requests, " of the ",
                          limits_.requests, " requests (grpc.requests)");
  } else if (bytes > limits_.bytes - usage_.bytes) {
    reason = absl::StrCat("a request needs ", bytes, " bytes, ",
                          limits_.bytes - usage_.bytes, " of ", limits_.bytes,
                          " are free (grpc.memory)");
  } else {
    reason = absl::StrCat("a request needs ", bytes, " bytes, a peer may have ",
                          of_one_.bytes, " of the ", limits_.bytes,
                          " (grpc.memory)");
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      reason, "; '", peer, "' has ", has.requests, " requests with ", has.bytes,
      " bytes: try again when answers have been read"));
}

void RequestBudget::GiveBack(const std::string& peer, const Given& given) {
  {
    base::MutexLock lock(mutex_);
    usage_.bytes -= given.bytes;
    usage_.requests -= given.requests;
    const auto found = peers_.find(peer);
    Share& share = found->second;
    share.bytes -= given.bytes;
    share.requests -= given.requests;
    if (given.used > share.expected) {
      share.expected = given.used;
    } else if (given.used != 0) {
      share.expected -= (share.expected - given.used) / kForget;
    }
    if (given.taken != 0) share.taken.erase(share.taken.find(given.taken));
    if (share.requests == 0) peers_.erase(found);
  }
  if (on_room_) on_room_();
}

RequestBudget::Usage RequestBudget::usage() const {
  base::MutexLock lock(mutex_);
  return usage_;
}

}  // namespace rknnd::transport
