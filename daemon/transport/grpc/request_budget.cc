// Called by the endpoints, on gRPC's threads and the loop, for every request of
// every peer.

#include "daemon/transport/grpc/request_budget.h"

#include <algorithm>
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

// Taken ahead for a message that is not read yet: a camera's picture, but no
// more than this part of what its peer may have.
constexpr uint64_t kAhead = uint64_t{1} << 20;
constexpr uint64_t kAheadPart = 64;

}  // namespace

RequestBudget::Hold::Hold(Hold&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)),
      peer_(std::move(other.peer_)),
      bytes_(std::exchange(other.bytes_, 0)),
      ahead_(std::exchange(other.ahead_, 0)) {}

RequestBudget::Hold& RequestBudget::Hold::operator=(Hold&& other) noexcept {
  if (this == &other) return *this;
  Release();
  budget_ = std::exchange(other.budget_, nullptr);
  peer_ = std::move(other.peer_);
  bytes_ = std::exchange(other.bytes_, 0);
  ahead_ = std::exchange(other.ahead_, 0);
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
  return charged;
}

void RequestBudget::Hold::DropAhead() {
  if (budget_ == nullptr) return;
  const uint64_t ahead = std::exchange(ahead_, 0);
  bytes_ -= ahead;
  budget_->GiveBack(peer_, ahead, 0);
}

void RequestBudget::Hold::Release() {
  if (budget_ == nullptr) return;
  ahead_ = 0;
  std::exchange(budget_, nullptr)->GiveBack(peer_, std::exchange(bytes_, 0), 1);
}

RequestBudget::RequestBudget(const Limits& limits)
    : limits_(limits), of_one_{PartOf(limits.bytes), PartOf(limits.requests)} {}

absl::StatusOr<RequestBudget::Hold> RequestBudget::Take(const std::string& peer,
                                                        uint64_t bytes,
                                                        bool unread) {
  const uint64_t ahead =
      unread ? std::min(kAhead, of_one_.bytes / kAheadPart) : 0;
  bytes += ahead;
  absl::Status charged = Charge(peer, bytes, 1);
  if (!charged.ok()) return charged;
  Hold hold;
  hold.budget_ = this;
  hold.peer_ = peer;
  hold.bytes_ = bytes;
  hold.ahead_ = ahead;
  return hold;
}

absl::Status RequestBudget::Charge(const std::string& peer, uint64_t bytes,
                                   uint32_t requests) {
  base::MutexLock lock(mutex_);
  const auto found = peers_.find(peer);
  const Share has = found == peers_.end() ? Share{} : found->second;
  // Sums stay below the limits, so that nothing here can overflow.
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
  } else if (bytes > of_one_.bytes - has.bytes) {
    reason = absl::StrCat("a request needs ", bytes, " bytes, a peer may have ",
                          of_one_.bytes, " of the ", limits_.bytes,
                          " (grpc.memory)");
  } else {
    usage_.bytes += bytes;
    usage_.requests += requests;
    Share& share = peers_[peer];
    share.bytes += bytes;
    share.requests += requests;
    return absl::OkStatus();
  }
  ++usage_.refused;
  return absl::ResourceExhaustedError(absl::StrCat(
      reason, "; '", peer, "' has ", has.requests, " requests with ", has.bytes,
      " bytes: try again when answers have been read"));
}

void RequestBudget::GiveBack(const std::string& peer, uint64_t bytes,
                             uint32_t requests) {
  base::MutexLock lock(mutex_);
  usage_.bytes -= bytes;
  usage_.requests -= requests;
  const auto found = peers_.find(peer);
  found->second.bytes -= bytes;
  found->second.requests -= requests;
  if (found->second.requests == 0) peers_.erase(found);
}

RequestBudget::Usage RequestBudget::usage() const {
  base::MutexLock lock(mutex_);
  return usage_;
}

}  // namespace rknnd::transport
