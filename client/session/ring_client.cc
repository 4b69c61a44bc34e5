// Called on the program's threads. The daemon at the other end is trusted; a
// size it writes is bounded all the same.

#include "client/session/ring_client.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "base/posix/futex.h"
#include "base/posix/hot_path.h"
#include "base/posix/socket.h"

namespace rknnd::client {

namespace {

// Nobody waits awake for a job that takes longer; in nanoseconds.
constexpr uint64_t kSlowest = 1'000'000'000;

// A 32-bit client's compiler must see the daemon's layout.
static_assert(offsetof(wire::Submission, frame) == 16 &&
              offsetof(wire::Submission, deadline_ns) == 40 &&
              offsetof(wire::Submission, notify) == 52);
static_assert(offsetof(wire::Completion, frame) == 8 &&
              offsetof(wire::Completion, drops) == 44 &&
              offsetof(wire::Completion, count) == 52 &&
              offsetof(wire::Completion, begun) == 56);
static_assert(offsetof(wire::RingHeader, tail) == 64 &&
              offsetof(wire::RingHeader, asleep) == 68 &&
              offsetof(wire::RingHeader, head) == 128 &&
              offsetof(wire::RingHeader, polled) == 132);

// The daemon may be reading it.
template <class T>
void Store(T& shared, T value) {
  __atomic_store_n(&shared, value, __ATOMIC_RELAXED);
}

}  // namespace

RingClient::RingClient(wire::Ring* ring, int doorbell, const RingPolicy& policy)
    : ring_(ring), doorbell_(doorbell), policy_(policy) {
  const base::MutexLock lock(mutex_);
  tail_ = ring->header.tail.load(std::memory_order_relaxed);
  sequences_.fill(policy.last_sequence);
  for (uint32_t i = 0; i < wire::kRingEntries; ++i) {
    // Slot 0 on top: few threads then use few cache lines.
    free_[i] = wire::kRingEntries - 1 - i;
  }
}

RKNND_HOT_PATH std::optional<Ticket> RingClient::Write(
    const wire::Submission& job) {
  const bool cancel =
      job.operation == static_cast<uint32_t>(wire::RingOperation::kCancel);
  const uint32_t kept = cancel ? 0 : wire::kRingEntries - kMostRuns;
  if (free_count_ <= kept) CollectAbandoned();
  if (free_count_ <= kept) return std::nullopt;
  Ticket ticket;
  ticket.slot = free_[--free_count_];
  uint32_t& sequence = sequences_[ticket.slot];
  if (++sequence == 0) sequence = 1;
  ticket.sequence = sequence;
  ticket.pace = job.context % kPaces;
  wire::Submission& entry =
      ring_->submissions[tail_ & (wire::kRingEntries - 1)];
  entry = job;
  if (entry.operation == 0) {
    entry.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
  }
  entry.slot = ticket.slot;
  entry.sequence = ticket.sequence;
  // In one order with Announce's look.
  base::StoreBeforeLook(ring_->header.tail, ++tail_);
  return ticket;
}

RKNND_HOT_PATH void RingClient::Announce() {
  if (policy_.marks_waits &&
      ring_->header.polled.load(std::memory_order_seq_cst) != 0) {
    return;
  }
  base::SignalEventFd(doorbell_);
}

RKNND_HOT_PATH std::optional<Ticket> RingClient::Submit(
    const wire::Submission& job) {
  FetchIfCold(job.context % kPaces);
  std::optional<Ticket> ticket;
  {
    const base::MutexLock lock(mutex_);
    ticket = Write(job);
    if (!ticket) {
      WaitForSlot();
      ticket = Write(job);
    }
  }
  if (ticket) Announce();
  return ticket;
}

void RingClient::WaitForSlot() {
  ++waiting_for_slot_;
  slot_freed_.wait_for(mutex_, std::chrono::nanoseconds(kSlice));
  --waiting_for_slot_;
}

void RingClient::AwaitSlot() {
  const base::MutexLock lock(mutex_);
  if (free_count_ <= wire::kRingEntries - kMostRuns) WaitForSlot();
}

std::optional<Ticket> RingClient::TrySubmit(const wire::Submission& job) {
  std::optional<Ticket> ticket;
  {
    const base::MutexLock lock(mutex_);
    ticket = Write(job);
  }
  if (ticket) Announce();
  return ticket;
}

uint32_t RingClient::written() {
  const base::MutexLock lock(mutex_);
  return tail_;
}

bool RingClient::HasTaken(uint32_t written) const {
  // Differences survive the counters' wrap.
  const uint32_t head = ring_->header.head.load(std::memory_order_acquire);
  return static_cast<int32_t>(head - written) >= 0;
}

RKNND_HOT_PATH bool RingClient::IsDone(const Ticket& ticket) const {
  return ring_->completions[ticket.slot].sequence.load(
             std::memory_order_acquire) == ticket.sequence;
}

bool RingClient::HadBegun(const Ticket& ticket) const {
  return ring_->completions[ticket.slot].begun.load(
             std::memory_order_acquire) == ticket.sequence;
}

void RingClient::FetchIfCold(uint32_t pace) const {
  if (paces_[pace].total_ns.load(std::memory_order_relaxed) >=
      base::kColdAfter) {
    base::FetchHotPath();
  }
}

RKNND_HOT_PATH bool RingClient::WaitAwake(const Ticket& ticket,
                                          base::Nanoseconds timeout,
                                          base::Nanoseconds now) {
  const base::Nanoseconds longest =
      policy_.one_cpu ? base::kLongYield : policy_.spin;
  Pace& pace = paces_[ticket.pace];
  if (pace.total_ns.load(std::memory_order_relaxed) >= longest ||
      !pace.habit.Try()) {
    return false;
  }
  if (!policy_.one_cpu) {
    const bool done = base::SpinFor(clock_, std::min(longest, timeout),
                                    [this, &ticket] { return IsDone(ticket); });
    pace.habit.Note(done);
    return done;
  }
  const base::Nanoseconds begun = now != 0 ? now : clock_.Now();
  const bool done = base::YieldFor([this, &ticket] { return IsDone(ticket); });
  const base::Nanoseconds took = clock_.Now() - begun;
  if (took < base::kLongYield) {
    pace.habit.Note(done);
  } else {
    pace.habit.NoteLoss(took);
  }
  return done;
}

RKNND_HOT_PATH bool RingClient::Wait(const Ticket& ticket,
                                     base::Nanoseconds timeout,
                                     base::Nanoseconds now) {
  if (IsDone(ticket)) return true;
  if (timeout <= 0) return false;
  if (WaitAwake(ticket, timeout, now)) return true;
  Sleep(ticket, timeout);
  return IsDone(ticket);
}

RKNND_HOT_PATH void RingClient::Sleep(const Ticket& ticket,
                                      base::Nanoseconds timeout) {
  const std::atomic<uint32_t>& word = ring_->completions[ticket.slot].sequence;
  std::atomic<uint32_t>& asleep = ring_->header.asleep[ticket.slot / 32];
  std::atomic<uint32_t>& sleepers = sleepers_[ticket.slot];
  const uint32_t bit = uint32_t{1} << (ticket.slot % 32);
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  // In one order with the daemon's, which stores `sequence` and then looks who
  // sleeps.
  if (policy_.marks_waits) asleep.fetch_or(bit, std::memory_order_seq_cst);
  const uint32_t seen = word.load(std::memory_order_seq_cst);
  if (seen != ticket.sequence) base::FutexWait(&word, seen, timeout);
  FetchIfCold(ticket.pace);
  if (sleepers.fetch_sub(1, std::memory_order_seq_cst) != 1) {
    // Others sleep on: the bit is theirs, and so is the answer's one wake-up.
    if (word.load(std::memory_order_relaxed) != seen) {
      base::FutexWakeOne(&word);
    }
  } else if (policy_.marks_waits) {
    asleep.fetch_and(~bit, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) == 0) return;
    // Somebody came meanwhile, whose bit that was: it looks again.
    asleep.fetch_or(bit, std::memory_order_seq_cst);
    base::FutexWakeOne(&word);
  }
}

RKNND_HOT_PATH Answer RingClient::Take(const Ticket& ticket) {
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
  answer.count = completion.count;
  if (answer.code != base::Code::kOk) {
    const char* text = ring_->texts[ticket.slot].text;
    answer.text.assign(text,
                       std::min<size_t>(completion.text_size,
                                        sizeof(wire::CompletionText::text)));
  }
  // A quarter of the last one: a single slow frame changes no habit.
  std::atomic<uint32_t>& pace = paces_[ticket.pace].total_ns;
  const uint32_t before = pace.load(std::memory_order_relaxed);
  pace.store(before - before / 4 +
                 static_cast<uint32_t>(
                     std::min<uint64_t>(answer.total_ns, kSlowest) / 4),
             std::memory_order_relaxed);
  const base::MutexLock lock(mutex_);
  FreeSlot(ticket.slot);
  return answer;
}

void RingClient::Abandon(const Ticket& ticket) {
  const base::MutexLock lock(mutex_);
  abandoned_[abandoned_count_++] = ticket;
}

void RingClient::ReportCopies(uint32_t context, uint64_t to_device_inputs_set,
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

RKNND_HOT_PATH void RingClient::FreeSlot(uint32_t slot) {
  free_[free_count_++] = slot;
  if (waiting_for_slot_ != 0) slot_freed_.notify_one();
}

}  // namespace rknnd::client
