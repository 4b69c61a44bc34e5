// See ring_table.h. Workers come with numbers out of events that may be older
// than the slot's session: the number in the slot tells.

#include "daemon/transport/session/ring/ring_table.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/hot_path.h"
#include "base/status/status.h"
#include "daemon/transport/session/ring/worker_events.h"

namespace rknnd::transport {
namespace {

// What an entry that may have been rung for earns, and a wake-up that finds
// none costs. A quiet entry earns less: a client may see too late that somebody
// looks, but not each time.
constexpr uint32_t kRing = 4, kQuietEntry = 1;
// Free wake-ups that find nothing. A client with many threads submits bursts
// that one drain takes.
constexpr uint32_t kBudget = 64 * kRing;
// After a penalty a session is on probation.
constexpr uint32_t kProbationBudget = 8 * kRing;
constexpr base::Nanoseconds kFirstPenalty = 100 * base::kMillisecond;
// A session that floods for ever wakes workers eight times a second.
constexpr base::Nanoseconds kLongestPenalty = base::kSecond;

}  // namespace

absl::Status RingTable::Add(core::SessionId session,
                            std::shared_ptr<RingEndpoint> ring,
                            const std::string& user) {
  RKNND_ASSIGN_OR_RETURN(const uint32_t index, TakeIndex());
  static_assert(kIndexBits + kUseBits <= kEventNumberBits);
  // From 1 on, so that no number is 0.
  uses_ = std::max<uint64_t>((uses_ + 1) & ((uint64_t{1} << kUseBits) - 1), 1);
  const Number number = uses_ << kIndexBits | index;
  Slot& slot = *At(number);
  base::MutexLock lock(slot.mutex);
  slot.number = number;
  slot.session = session;
  slot.ring = std::move(ring);
  slot.ring->set_number(number);
  slot.submits = limits_.Of(user, clock_->Now());
  slot.state = State::kDoorbell;
  slot.budget = kBudget;
  slot.penalty = 0;
  slot.found = false;
  if (!Watch(slot, slot.state)) {
    const absl::Status status =
        base::ToStatus(base::ErrnoError(errno, "watch a session's doorbell"));
    slot.number = 0;
    slot.ring.reset();
    slot.submits.reset();
    free_.push_back(index);
    return status;
  }
  sessions_[session] = number;
  session_count_.store(sessions_.size(), std::memory_order_relaxed);
  return absl::OkStatus();
}

void RingTable::Remove(core::SessionId session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  const Number number = found->second;
  sessions_.erase(found);
  session_count_.store(sessions_.size(), std::memory_order_relaxed);
  std::erase(flooders_, number);
  std::shared_ptr<RingEndpoint> ring;
  {
    Slot& slot = *At(number);
    base::MutexLock lock(slot.mutex);
    if (slot.state != State::kTimer) Unwatch(slot);
    slot.number = 0;
    slot.ring->Close();
    ring = std::move(slot.ring);
    slot.submits.reset();
  }
  free_.push_back(number & ((1U << kIndexBits) - 1));
  // What the ring held goes here, outside the lock.
}

RKNND_HOT_PATH RingTable::Served RingTable::Serve(
    Number number, std::optional<uint32_t> seen) {
  Served served;
  Slot* const slot = At(number);
  if (slot == nullptr) return served;
  base::MutexLock lock(slot->mutex);
  if (slot->number != number) return served;
  RingEndpoint::Drained drained = slot->ring->Drain();
  served.session = slot->session;
  served.entries = drained.entries;
  served.violation = std::move(drained.violation);
  // Nobody was woken for what a worker saw by itself; and where another had it
  // first, that is nobody's doing but ours.
  const bool woke_nobody =
      seen && (drained.entries > drained.refused ||
               (drained.entries == 0 && *seen != slot->ring->taken()));
  const uint32_t rung =
      drained.entries -
      std::min(drained.entries, drained.quiet + drained.refused);
  Earn(*slot, rung, drained.quiet);
  served.floods = rung == 0 && !woke_nobody && Charge(*slot);
  ChooseWorkers(*slot, served.entries);
  return served;
}

RKNND_HOT_PATH void RingTable::ChooseWorkers(Slot& slot, uint32_t entries) {
  switch (slot.state) {
    case State::kDoorbell: {
      // Nobody is disturbed by who is alone.
      if (entries == 0 || session_count_.load(std::memory_order_relaxed) <= 1) {
        return;
      }
      const base::Nanoseconds now = clock_->Now();
      if (slot.submits->Take(now, entries) == 0) return;
      if (MoveTo(State::kBusy, slot)) slot.busy_until = now + kBusyFor;
      return;
    }
    case State::kBusy:
      if (clock_->Now() >= slot.busy_until) MoveTo(State::kDoorbell, slot);
      return;
    case State::kTimer:
      return;
  }
}

bool RingTable::MoveTo(State state, Slot& slot) const {
  // In this order its doorbell is in a set all the time.
  if (!Watch(slot, state)) return false;
  Unwatch(slot);
  slot.state = state;
  // It wakes a worker once for this.
  slot.budget += kRing;
  return true;
}

std::shared_ptr<RingEndpoint> RingTable::Hold(Number number) {
  Slot* const slot = At(number);
  if (slot == nullptr) return nullptr;
  base::MutexLock lock(slot->mutex);
  if (slot->number != number || slot->state != State::kDoorbell) return nullptr;
  return slot->ring;
}

void RingTable::Punish(Number number) {
  Slot& slot = *At(number);
  base::MutexLock lock(slot.mutex);
  if (slot.number == number) flooders_.push_back(number);
}

bool RingTable::PollFlooders(bool* found) {
  std::erase_if(flooders_, [this, found](Number number) {
    Slot& slot = *At(number);
    base::MutexLock lock(slot.mutex);
    if (slot.number != number) return true;
    if (slot.ticks_left > 0) {
      --slot.ticks_left;
      if (!slot.found && slot.ring->HasEntries()) {
        slot.found = true;
        *found = true;
        base::MutexLock found_lock(found_mutex_);
        found_.push_back(number);
      }
      return false;
    }
    // Adding a doorbell that has rung wakes a worker at once, so that no entry
    // of the last period is missed. Without room for it: the next time.
    if (!Watch(slot, State::kDoorbell)) return false;
    slot.state = State::kDoorbell;
    slot.budget = kProbationBudget;
    return true;
  });
  return !flooders_.empty();
}

std::vector<RingTable::Number> RingTable::TakeFound() {
  std::vector<Number> found;
  {
    base::MutexLock lock(found_mutex_);
    found.swap(found_);
  }
  for (const Number number : found) {
    Slot& slot = *At(number);
    base::MutexLock lock(slot.mutex);
    if (slot.number == number) slot.found = false;
  }
  return found;
}

RKNND_HOT_PATH RingTable::Slot* RingTable::At(Number number) const {
  const uint32_t index = number & ((1U << kIndexBits) - 1);
  Chunk* const chunk =
      chunks_[index / kChunkSlots].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &(*chunk)[index % kChunkSlots];
}

absl::StatusOr<uint32_t> RingTable::TakeIndex() {
  if (free_.empty()) {
    const size_t chunk = owned_.size();
    if (chunk == kChunks) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "there are ", kChunks * kChunkSlots, " sessions already"));
    }
    owned_.push_back(std::make_unique<Chunk>());
    chunks_[chunk].store(owned_.back().get(), std::memory_order_release);
    for (size_t i = kChunkSlots; i-- > 0;) {
      free_.push_back(static_cast<uint32_t>(chunk * kChunkSlots + i));
    }
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

RKNND_HOT_PATH void RingTable::Earn(Slot& slot, uint32_t rung, uint32_t quiet) {
  if (slot.state == State::kTimer) return;
  slot.budget =
      std::min(kBudget, slot.budget + rung * kRing + quiet * kQuietEntry);
  // Paid back in full: the next flood is a first one again.
  if (slot.budget == kBudget) slot.penalty = 0;
}

RKNND_HOT_PATH bool RingTable::Charge(Slot& slot) {
  if (slot.state == State::kTimer) return false;
  if (slot.budget >= kRing) {
    slot.budget -= kRing;
    return false;
  }
  Unwatch(slot);
  slot.state = State::kTimer;
  slot.penalty = slot.penalty == 0
                     ? kFirstPenalty
                     : std::min(kLongestPenalty, slot.penalty * 2);
  slot.ticks_left = static_cast<uint32_t>(slot.penalty / kFloodPoll);
  return true;
}

bool RingTable::Watch(const Slot& slot, State state) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = EventTag(WorkerEvent::kDoorbell, slot.number);
  return epoll_ctl(SetOf(state), EPOLL_CTL_ADD, slot.ring->doorbell_fd(),
                   &event) == 0;
}

void RingTable::Unwatch(const Slot& slot) const {
  epoll_ctl(SetOf(slot.state), EPOLL_CTL_DEL, slot.ring->doorbell_fd(),
            nullptr);
}

}  // namespace rknnd::transport
