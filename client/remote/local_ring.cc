// See the header; the rules of the other end are proto/wire/ring.h's.

#include "client/remote/local_ring.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/posix/futex.h"
#include "base/posix/memfd.h"
#include "base/posix/socket.h"

namespace rknnd::client {

using base::Expected;

Expected<std::unique_ptr<LocalRing>> LocalRing::Create() {
  Expected<base::UniqueFd> memory =
      base::MakeMemfd("rknnd-ring", wire::kRingBytes);
  if (!memory.ok()) return std::move(memory).error();
  Expected<base::UniqueFd> doorbell = base::MakeEventFd();
  if (!doorbell.ok()) return std::move(doorbell).error();
  Expected<base::Mapping> mapping = base::Mapping::OfFd(
      memory->get(), 0, wire::kRingBytes, base::Mapping::Access::kReadWrite);
  if (!mapping.ok()) return std::move(mapping).error();
  return std::unique_ptr<LocalRing>(new LocalRing(
      *std::move(memory), *std::move(doorbell), *std::move(mapping)));
}

LocalRing::LocalRing(base::UniqueFd memory, base::UniqueFd doorbell,
                     base::Mapping mapping)
    : memory_(std::move(memory)),
      doorbell_(std::move(doorbell)),
      mapping_(std::move(mapping)),
      ring_(reinterpret_cast<wire::Ring*>(mapping_.data())) {
  ring_->header.magic = wire::kRingMagic;
  ring_->header.entries = wire::kRingEntries;
}

void LocalRing::ClearDoorbell() const {
  uint64_t rings = 0;
  [[maybe_unused]] const ssize_t got =
      read(doorbell_.get(), &rings, sizeof rings);
}

std::optional<wire::Submission> LocalRing::Take() {
  const uint32_t tail = ring_->header.tail.load(std::memory_order_acquire);
  if (tail == head_ || tail - head_ > wire::kRingEntries) return std::nullopt;
  const wire::Submission entry = ring_->submissions[head_ % wire::kRingEntries];
  ring_->header.head.store(++head_, std::memory_order_release);
  return entry;
}

void LocalRing::Complete(const wire::Submission& job, const RunAnswer& answer) {
  if (job.slot >= wire::kRingEntries) return;
  wire::Completion& out = ring_->completions[job.slot];
  const std::string& text = answer.text;
  wire::CompletionText& room = ring_->texts[job.slot];
  out.text_size =
      static_cast<uint32_t>(std::min(text.size(), sizeof room.text - 1));
  if (out.text_size != 0) {
    std::memcpy(room.text, text.data(), out.text_size);
    room.text[out.text_size] = '\0';
  }
  out.code = static_cast<int32_t>(answer.code);
  out.frame = job.frame;
  out.queue_ns = answer.queue_ns;
  out.run_ns = answer.run_ns;
  out.total_ns = answer.total_ns;
  out.core = answer.core;
  out.drops = answer.drops;
  out.count = answer.count;
  out.sequence.store(job.sequence, std::memory_order_release);
  base::FutexWakeOne(&out.sequence);
}

}  // namespace rknnd::client
