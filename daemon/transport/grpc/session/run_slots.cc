// See the header.

#include "daemon/transport/grpc/session/run_slots.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/codec.h"

namespace rknnd::transport {

RunSlots::RunSlots(std::function<void()> ended, bool held)
    : ended_(std::move(ended)), hold_(held) {}

absl::Status RunSlots::Take(uint32_t slot, uint32_t sequence,
                            std::vector<Output> outputs) {
  base::MutexLock lock(mutex_);
  if (slot >= slots_.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("run: slot '", slot, "' is not below ", slots_.size()));
  }
  Slot& taken = slots_[slot];
  if (taken.state != State::kFree) {
    return absl::FailedPreconditionError(
        absl::StrCat("run: slot '", slot, "' is still in flight"));
  }
  taken.state = State::kRunning;
  taken.sequence = sequence;
  taken.outputs = std::move(outputs);
  return absl::OkStatus();
}

void RunSlots::Seal() {
  base::MutexLock lock(mutex_);
  closed_ = true;
}

void RunSlots::Close() {
  std::vector<std::vector<Output>> freed;
  base::MutexLock lock(mutex_);
  closed_ = true;
  count_ = 0;
  held_ = 0;
  for (Slot& slot : slots_) {
    slot.state = State::kFree;
    freed.push_back(std::move(slot.outputs));
    slot.outputs.clear();
  }
}

void RunSlots::Complete(const core::JobCompletion& completion) {
  {
    base::MutexLock lock(mutex_);
    // Our own number, checked when it was taken; checked again because a slip
    // here would write outside.
    if (closed_ || completion.slot >= slots_.size()) return;
    Slot& slot = slots_[completion.slot];
    if (slot.state != State::kRunning) return;
    slot.state = State::kEnded;
    slot.end.slot = completion.slot;
    slot.end.sequence = completion.sequence;
    slot.end.code = completion.status.raw_code();
    slot.end.frame = completion.frame;
    slot.end.queue_ns = static_cast<uint64_t>(completion.queue);
    slot.end.run_ns = static_cast<uint64_t>(completion.run);
    slot.end.total_ns = static_cast<uint64_t>(completion.total);
    slot.end.core = completion.core;
    slot.end.drops = completion.drops;
    slot.end.count = completion.count;
    slot.text_size = 0;
    if (!completion.status.ok()) {
      const absl::string_view text = completion.status.message();
      slot.text_size = static_cast<uint32_t>(wire::FittingPrefix(
          std::string_view(text.data(), text.size()), slot.text.size()));
      std::memcpy(slot.text.data(), text.data(), slot.text_size);
    }
    order_[(first_ + count_) % order_.size()] =
        static_cast<uint8_t>(completion.slot);
    ++count_;
    if (hold_) ++held_;
  }
  ended_();
}

bool RunSlots::HasEnded() const {
  base::MutexLock lock(mutex_);
  return count_ > held_;
}

std::optional<RunSlots::Ended> RunSlots::TakeEnded() {
  base::MutexLock lock(mutex_);
  if (count_ == held_) return std::nullopt;
  Slot& slot = slots_[order_[first_]];
  first_ = (first_ + 1) % order_.size();
  --count_;
  Ended ended;
  ended.end = slot.end;
  ended.text.assign(slot.text.data(), slot.text_size);
  ended.outputs = std::move(slot.outputs);
  slot.outputs.clear();
  slot.state = State::kFree;
  return ended;
}

uint32_t RunSlots::held() const {
  base::MutexLock lock(mutex_);
  return held_;
}

std::vector<uint32_t> RunSlots::HeldBuffers() const {
  base::MutexLock lock(mutex_);
  std::set<uint32_t> buffers;
  for (uint32_t i = count_ - held_; i < count_; ++i) {
    for (const Output& output :
         slots_[order_[(first_ + i) % order_.size()]].outputs) {
      buffers.insert(output.range.buffer);
    }
  }
  return {buffers.begin(), buffers.end()};
}

void RunSlots::Release(uint32_t count) {
  base::MutexLock lock(mutex_);
  held_ -= std::min(count, held_);
}

}  // namespace rknnd::transport
