#include "daemon/transport/grpc/inference/completions.h"

#include <bit>
#include <utility>

#include "base/posix/futex.h"

namespace rknnd::transport {

void Completions::Complete(const core::JobCompletion& completion) {
  if (completion.slot >= core::kJobSlots) return;
  places_[completion.slot] = completion;
  arrived_[completion.slot / kBits].fetch_or(
      uint64_t{1} << completion.slot % kBits, std::memory_order_release);
  Wake();
}

void Completions::Wake() {
  rings_.fetch_add(1, std::memory_order_release);
  base::FutexWakeOne(&rings_);
}

std::vector<core::JobCompletion> Completions::Take(base::Nanoseconds timeout) {
  std::vector<core::JobCompletion> taken;
  const auto look = [&] {
    for (uint32_t word = 0; word < arrived_.size(); ++word) {
      uint64_t bits = arrived_[word].exchange(0, std::memory_order_acquire);
      for (; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<uint32_t>(std::countr_zero(bits));
        taken.push_back(std::move(places_[word * kBits + bit]));
      }
    }
    return !taken.empty();
  };
  const uint32_t rung = rings_.load(std::memory_order_acquire);
  if (rung != seen_) {
    seen_ = rung;
    look();
    return taken;
  }
  if (look() || timeout <= 0) return taken;
  base::FutexWait(&rings_, rung, timeout);
  seen_ = rings_.load(std::memory_order_acquire);
  look();
  return taken;
}

}  // namespace rknnd::transport
