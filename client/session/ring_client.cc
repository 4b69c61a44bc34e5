// Called on the program's threads. The daemon at the other end is trusted; a
// size it writes is bounded all the same.

#include "client/session/ring_client.h"

#include <algorithm>
#include <chrono>

#include "base/posix/futex.h"
#include "base/posix/socket.h"

namespace rknnd::client {

namespace {

// The daemon may be reading it.
template <class T>
void Store(T& shared, T value) {
  __atomic_store_n(&shared, value, __ATOMIC_RELAXED);
}

}  // namespace

RingClient::RingClient(wire::Ring* ring, int doorbell)
    : ring_(ring), doorbell_(doorbell) {
  const base::MutexLock lock(mutex_);
  for (uint32_t i = 0; i < wire::kRingEntries; ++i) {
    // Slot 0 on top: few threads then use few cache lines.
    free_[i] = wire::kRingEntries - 1 - i;
  }
}

std::optional<Ticket> RingClient::Submit(const wire::Submission& job) {
  Ticket ticket;
  {
    const base::MutexLock lock(mutex_);
    if (free_count_ == 0) CollectAbandoned();
    if (free_count_ == 0) {
      ++waiting_for_slot_;
      slot_freed_.wait_for(mutex_, std::chrono::nanoseconds(kSlice));
      --waiting_for_slot_;
    }
    if (free_count_ == 0) return std::nullopt;
    ticket.slot = free_[--free_count_];
    uint32_t& sequence = sequences_[ticket.slot];
    if (++sequence == 0) sequence = 1;
    ticket.sequence = sequence;
    wire::Submission& entry =
        ring_->submissions[tail_ & (wire::kRingEntries - 1)];
    entry = job;
    entry.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
    entry.slot = ticket.slot;
    entry.sequence = ticket.sequence;
    ring_->header.tail.store(++tail_, std::memory_order_release);
  }
  base::SignalEventFd(doorbell_);
  return ticket;
}

bool RingClient::IsDone(const Ticket& ticket) const {
  return ring_->completions[ticket.slot].sequence.load(
             std::memory_order_acquire) == ticket.sequence;
}

bool RingClient::Wait(const Ticket& ticket, base::Nanoseconds timeout) {
  const std::atomic<uint32_t>& word = ring_->completions[ticket.slot].sequence;
  const uint32_t seen = word.load(std::memory_order_acquire);
  if (seen == ticket.sequence) return true;
  base::FutexWait(&word, seen, timeout);
  return IsDone(ticket);
}

Answer RingClient::Take(const Ticket& ticket) {
  const wire::Completion& completion = ring_->completions[ticket.slot];
  Answer answer;
  const int32_t code = completion.code;
  answer.code =
      code >= 0 && code <= static_cast<int32_t>(base::Code::kUnauthenticated)
          ? static_cast<base::Code>(code)
          : base::Code::kUnknown;
  answer.queue_ns = completion.queue_ns;
  answer.run_ns = completion.run_ns;
  answer.total_ns = completion.total_ns;
  answer.core = completion.core;
  answer.drops = completion.drops;
  if (answer.code != base::Code::kOk) {
    const char* text = ring_->texts[ticket.slot].text;
    answer.text.assign(text,
                       std::min<size_t>(completion.text_size,
                                        sizeof(wire::CompletionText::text)));
  }
  const base::MutexLock lock(mutex_);
  FreeSlot(ticket.slot);
  return answer;
}

void RingClient::Abandon(const Ticket& ticket) {
  const base::MutexLock lock(mutex_);
  abandoned_[abandoned_count_++] = ticket;
}

void RingClient::ShowCopies(uint32_t context, uint64_t to_device_inputs_set,
                            uint64_t from_device_outputs_get) {
  const base::MutexLock lock(mutex_);
  auto* copier = std::find(copiers_.begin(), copiers_.end(), context);
  if (copier == copiers_.end()) {
    copier = std::find(copiers_.begin(), copiers_.end(), 0U);
  }
  if (copier == copiers_.end()) return;
  *copier = context;
  wire::CopyRecord& record = ring_->copies[copier - copiers_.begin()];
  Store(record.to_device_inputs_set, to_device_inputs_set);
  Store(record.from_device_outputs_get, from_device_outputs_get);
  Store(record.context, context);
}

void RingClient::ForgetCopies(uint32_t context) {
  const base::MutexLock lock(mutex_);
  auto* copier = std::find(copiers_.begin(), copiers_.end(), context);
  if (copier == copiers_.end()) return;
  *copier = 0;
  Store(ring_->copies[copier - copiers_.begin()].context, 0U);
}

void RingClient::CollectAbandoned() {
  for (uint32_t i = 0; i < abandoned_count_;) {
    if (!IsDone(abandoned_[i])) {
      ++i;
      continue;
    }
    FreeSlot(abandoned_[i].slot);
    abandoned_[i] = abandoned_[--abandoned_count_];
  }
}

void RingClient::FreeSlot(uint32_t slot) {
  free_[free_count_++] = slot;
  if (waiting_for_slot_ != 0) slot_freed_.notify_one();
}

}  // namespace rknnd::client
