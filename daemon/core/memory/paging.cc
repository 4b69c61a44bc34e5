// Memory comes and goes here. Sizes come from clients, and were charged before.

#include "daemon/core/memory/paging.h"

#include <algorithm>
#include <utility>

#include "base/status/status.h"

namespace rknnd::core {

absl::StatusOr<PagedMemory> MakeMemory(const Paging& paging, uint64_t size,
                                       uint32_t flags, uint64_t sram) {
  driver::HeapRequest request;
  request.size = size;
  request.cached =
      (flags & (kBufferCacheable | kBufferNonCacheable)) != kBufferNonCacheable;
  request.dma32 = (flags & kBufferDma32) != 0;
  request.contiguous = (flags & kBufferContiguous) != 0;
  request.sram = sram;
  RKNND_ASSIGN_OR_RETURN(driver::Allocation allocation,
                         paging.heaps->Allocate(request));
  PagedMemory made;
  made.fd = std::move(allocation.fd);
  made.size = allocation.size;
  made.sram = allocation.sram;
  made.heap = std::move(allocation.heap);
  made.instead = std::move(allocation.instead);
  made.instead_kind = allocation.instead_kind;
  const auto origin = allocation.traits.cached
                          ? driver::MemoryOrigin::kCachedHeap
                          : driver::MemoryOrigin::kUncachedHeap;
  RKNND_ASSIGN_OR_RETURN(
      made.memory, paging.device->Attach({made.fd.get(), 0, made.size, origin},
                                         driver::MemoryAccess::kReadWrite));
  return made;
}

void FreeMemory(const Paging& paging, PagedMemory memory) {
  if (memory.size <= kInlineBytes) return;
  if (!memory.fd.valid() && memory.memory == nullptr) return;
  // Copyable, as tasks are; a task that is never run frees it all the same.
  auto large = std::make_shared<PagedMemory>(std::move(memory));
  paging.pager->Post([large = std::move(large)]() mutable { large.reset(); });
}

PagerTurns::PagerTurns(const Paging& paging)
    : paging_(paging), self_(std::make_shared<PagerTurns*>(this)) {}

uint64_t PagerTurns::Add(Task work, Task done) {
  const uint64_t number = next_++;
  waiting_.push_back({number, std::move(work), std::move(done)});
  Begin();
  return number;
}

bool PagerTurns::Withdraw(uint64_t turn) {
  const auto found =
      std::find_if(waiting_.begin(), waiting_.end(),
                   [turn](const Turn& each) { return each.number == turn; });
  if (found == waiting_.end()) return false;
  waiting_.erase(found);
  return true;
}

void PagerTurns::Begin() {
  if (busy_ || waiting_.empty()) return;
  busy_ = true;
  auto turn = std::make_shared<Turn>(std::move(waiting_.front()));
  waiting_.pop_front();
  paging_.pager->Post([turn = std::move(turn), loop = paging_.loop,
                       weak = std::weak_ptr<PagerTurns*>(self_)]() mutable {
    turn->work();
    turn->work = nullptr;
    // All of it: what was the loop's is let go of there.
    loop->Post([turn = std::move(turn), weak = std::move(weak)] {
      if (const auto turns = weak.lock()) {
        (*turns)->busy_ = false;
        (*turns)->Begin();
      }
      turn->done();
    });
  });
}

}  // namespace rknnd::core
