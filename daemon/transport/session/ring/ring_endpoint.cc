// Reads memory that a hostile client writes at the same time. Every shared
// word is loaded once, into a copy, and only the copy is checked and used.

#include "daemon/transport/session/ring/ring_endpoint.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/futex.h"
#include "base/posix/hot_path.h"
#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/status/status.h"
#include "daemon/transport/session/ring/late_wakes.h"
#include "daemon/transport/session/translate_submission.h"

namespace rknnd::transport {
namespace {

// Copies an entry word by word with loads that are done exactly once, so that
// what is checked is what is used.
wire::Submission CopyOut(const wire::Submission& shared) {
  constexpr size_t kWords = sizeof(wire::Submission) / sizeof(uint64_t);
  const auto* from = reinterpret_cast<const char*>(&shared);
  uint64_t words[kWords];
  for (size_t i = 0; i < kWords; ++i) {
    words[i] = __atomic_load_n(
        reinterpret_cast<const uint64_t*>(from + i * sizeof(uint64_t)),
        __ATOMIC_RELAXED);
  }
  wire::Submission copy;
  std::memcpy(&copy, words, sizeof copy);
  return copy;
}

template <class T>
T Load(const T& shared) {
  return __atomic_load_n(&shared, __ATOMIC_RELAXED);
}

template <class T>
void Store(T& shared, T value) {
  __atomic_store_n(&shared, value, __ATOMIC_RELAXED);
}

}  // namespace

absl::StatusOr<std::shared_ptr<RingEndpoint>> RingEndpoint::Create(
    uint32_t first) {
  RKNND_ASSIGN_OR_RETURN(
      base::UniqueFd memory,
      base::ToStatusOr(base::MakeMemfd("rknnd-ring", wire::kRingBytes)));
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd doorbell,
                         base::ToStatusOr(base::MakeEventFd()));
  RKNND_ASSIGN_OR_RETURN(
      base::Mapping mapping,
      base::ToStatusOr(base::Mapping::OfFd(memory.get(), 0, wire::kRingBytes,
                                           base::Mapping::Access::kReadWrite)));
  auto ring = std::shared_ptr<RingEndpoint>(new RingEndpoint(
      std::move(memory), std::move(doorbell), std::move(mapping)));
  ring->ring_->header.magic = wire::kRingMagic;
  ring->ring_->header.entries = wire::kRingEntries;
  ring->ring_->header.tail.store(first, std::memory_order_relaxed);
  ring->ring_->header.head.store(first, std::memory_order_relaxed);
  ring->head_.store(first, std::memory_order_relaxed);
  return ring;
}

RingEndpoint::RingEndpoint(base::UniqueFd memory, base::UniqueFd doorbell,
                           base::Mapping mapping)
    : memory_(std::move(memory)),
      doorbell_(std::move(doorbell)),
      mapping_(std::move(mapping)),
      ring_(reinterpret_cast<wire::Ring*>(mapping_.data())) {}

void RingEndpoint::Open(std::shared_ptr<core::JobGate> gate,
                        bool marks_sleepers) {
  marks_sleepers_ = marks_sleepers;
  gate_ = std::move(gate);
}

void RingEndpoint::Close() { gate_.reset(); }

bool RingEndpoint::HasEntries() const {
  return ring_->header.tail.load(std::memory_order_acquire) !=
         head_.load(std::memory_order_relaxed);
}

RKNND_HOT_PATH bool RingEndpoint::BeginPolling() {
  if (!marks_sleepers_ ||
      is_polled_.exchange(true, std::memory_order_acquire)) {
    return false;
  }
  // In one order with the client's, which stores the tail and then looks at
  // `polled`: an entry that is not there yet by this look needs no doorbell.
  base::StoreBeforeLook(ring_->header.polled, 1U);
  const uint32_t tail = ring_->header.tail.load(std::memory_order_seq_cst);
  MarkQuiet(tail, tail + wire::kRingEntries);
  return true;
}

RKNND_HOT_PATH bool RingEndpoint::EndPolling() {
  const auto first =
      static_cast<uint32_t>(quiet_.load(std::memory_order_relaxed) >> 32);
  MarkQuiet(first, ring_->header.tail.load(std::memory_order_relaxed));
  // In the same order: either the client sees that it must ring, or its entry
  // is seen here.
  base::StoreBeforeLook(ring_->header.polled, 0U);
  const uint32_t tail = ring_->header.tail.load(std::memory_order_seq_cst);
  is_polled_.store(false, std::memory_order_release);
  return tail != head_.load(std::memory_order_relaxed);
}

RKNND_HOT_PATH void RingEndpoint::MarkQuiet(uint32_t from, uint32_t to) {
  quiet_.store(uint64_t{from} << 32 | to, std::memory_order_relaxed);
}

RKNND_HOT_PATH uint32_t RingEndpoint::CountQuiet(uint32_t head,
                                                 uint32_t count) const {
  const uint64_t quiet = quiet_.load(std::memory_order_relaxed);
  // As differences, which survive the counters' wrap.
  const auto place = [head, count](uint32_t index) {
    return std::clamp(static_cast<int32_t>(index - head), 0,
                      static_cast<int32_t>(count));
  };
  return static_cast<uint32_t>(
      std::max(place(static_cast<uint32_t>(quiet)) -
                   place(static_cast<uint32_t>(quiet >> 32)),
               0));
}

RKNND_HOT_PATH RingEndpoint::Drained RingEndpoint::Drain() {
  Drained result;
  if (gate_ == nullptr) return result;
  const uint32_t head = head_.load(std::memory_order_relaxed);
  const uint32_t tail = ring_->header.tail.load(std::memory_order_acquire);
  const uint32_t count = tail - head;
  if (count > wire::kRingEntries) {
    result.violation = absl::FailedPreconditionError(absl::StrCat(
        "ring: ", count, " entries announced, it has ", wire::kRingEntries));
    gate_.reset();
    return result;
  }
  result.quiet = CountQuiet(head, count);
  for (; result.entries < count; ++result.entries) {
    const wire::Submission entry = CopyOut(
        ring_->submissions[(head + result.entries) % wire::kRingEntries]);
    result.violation = Take(entry, *gate_, &result.refused);
    if (!result.violation.ok()) {
      gate_.reset();
      break;
    }
  }
  head_.store(head + result.entries, std::memory_order_relaxed);
  ring_->header.head.store(head + result.entries, std::memory_order_release);
  return result;
}

RKNND_HOT_PATH absl::Status RingEndpoint::Take(const wire::Submission& entry,
                                               core::JobGate& gate,
                                               uint32_t* refused) {
  RKNND_RETURN_IF_ERROR(CheckSlot(entry));
  const auto job = ToJob(entry);
  if (job.ok()) return gate.Submit(*job);
  ++*refused;
  Refuse(entry, job.status());
  return absl::OkStatus();
}

void RingEndpoint::Refuse(const wire::Submission& entry, absl::Status why) {
  core::JobCompletion refused;
  refused.slot = entry.slot;
  refused.sequence = entry.sequence;
  refused.frame = entry.frame;
  refused.status = std::move(why);
  Complete(refused);
}

core::CopiedBytes RingEndpoint::ClientCopies(uint32_t context) const {
  core::CopiedBytes copies;
  for (const wire::CopyRecord& record : ring_->copies) {
    if (Load(record.context) != context) continue;
    copies.to_device_inputs_set = Load(record.to_device_inputs_set);
    copies.from_device_outputs_get = Load(record.from_device_outputs_get);
    break;
  }
  return copies;
}

RKNND_HOT_PATH void RingEndpoint::Complete(
    const core::JobCompletion& completion) {
  // Our own number, checked when it was taken; checked again because a slip
  // here would write outside the ring.
  if (completion.slot >= wire::kRingEntries) return;
  wire::Completion& out = ring_->completions[completion.slot];
  uint32_t text_size = 0;
  if (!completion.status.ok()) {
    wire::CompletionText& text = ring_->texts[completion.slot];
    const absl::string_view message = completion.status.message();
    text_size =
        static_cast<uint32_t>(std::min(message.size(), sizeof text.text - 1));
    std::memcpy(text.text, message.data(), text_size);
    text.text[text_size] = '\0';
  }
  Store(out.code, static_cast<int32_t>(completion.status.raw_code()));
  Store(out.frame, completion.frame);
  Store(out.queue_ns, static_cast<uint64_t>(completion.queue));
  Store(out.run_ns, static_cast<uint64_t>(completion.run));
  Store(out.total_ns, static_cast<uint64_t>(completion.total));
  Store(out.core, completion.core);
  Store(out.drops, completion.drops);
  Store(out.text_size, text_size);
  Store(out.count, completion.count);
  if (!marks_sleepers_) {
    out.sequence.store(completion.sequence, std::memory_order_release);
  } else {
    // In one order with the client's, which sets its bit and then looks at
    // `sequence`: either it sees the answer, or its bit is seen here. A bit
    // that lies keeps its own writer asleep, until that looks by itself.
    base::StoreBeforeLook(out.sequence, completion.sequence);
    const uint32_t asleep = ring_->header.asleep[completion.slot / 32].load(
        std::memory_order_seq_cst);
    if ((asleep >> (completion.slot % 32) & 1) == 0) return;
  }
  RingWakes* const late = RingWakes::OfThread();
  if (late != nullptr && late->Add(shared_from_this(), completion.slot)) return;
  Wake(completion.slot);
}

RKNND_HOT_PATH void RingEndpoint::Begin(uint32_t slot, uint32_t sequence) {
  if (slot >= wire::kRingEntries) return;
  // Nobody reads it while this process lives.
  ring_->completions[slot].begun.store(sequence, std::memory_order_relaxed);
}

RKNND_HOT_PATH void RingEndpoint::Wake(uint32_t slot) {
  base::FutexWakeOne(&ring_->completions[slot].sequence);
}

}  // namespace rknnd::transport
