// Work on memory that takes long: populating it when it is made, freeing its
// pages when it goes. Large pieces are worked on by the pager, so that the loop
// answers others meanwhile. Used by buffers and arenas.

#ifndef DAEMON_CORE_MEMORY_PAGING_H_
#define DAEMON_CORE_MEMORY_PAGING_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"
#include "driver/device.h"
#include "driver/memory/heap.h"

namespace rknnd::core {

// Populating costs up to a millisecond a mebibyte. Memory up to this much is
// made where it is asked for: going to the pager and back would cost a program
// that makes memory per frame about as much.
inline constexpr uint64_t kInlineBytes = uint64_t{1} << 20;

// What a client may ask of a buffer's memory: rknn_mem_alloc_flags and, beyond
// the vendor's, proto/wire/features.h.
enum BufferFlag : uint32_t {
  kBufferCacheable = 1,
  kBufferNonCacheable = 2,
  kBufferTrySram = 4,
  kBufferDma32 = 0x100,
  kBufferContiguous = 0x200,
};
inline constexpr uint32_t kBufferFlags = kBufferCacheable |
                                         kBufferNonCacheable | kBufferTrySram |
                                         kBufferDma32 | kBufferContiguous;

// What work on memory needs; all of it outlives the memory.
struct Paging {
  driver::Device* device = nullptr;
  const driver::Heaps* heaps = nullptr;
  base::Executor* loop = nullptr;
  base::Executor* pager = nullptr;
};

// Memory of a heap or of a client, attached.
struct PagedMemory {
  // Destroyed from the last to the first: detached, then closed.
  base::UniqueFd fd;
  std::unique_ptr<driver::Memory> memory;
  uint64_t size = 0;  // the kernel's
  uint64_t sram = 0;  // its first bytes that lie in SRAM
  std::string heap;
  // Why another heap served than was asked for; as in driver::Allocation.
  std::string instead = {};
  uint32_t instead_kind = 0;
};

// From the heap that has most of what `flags` ask for, populated. Cacheable and
// not at once means cacheable, as no flag does. Up to `sram` bytes of it lie in
// SRAM. Thread: any.
absl::StatusOr<PagedMemory> MakeMemory(const Paging& paging, uint64_t size,
                                       uint32_t flags, uint64_t sram = 0);

// Frees it, on the pager where it is large. The pager takes one thing after the
// other: what is asked of it later finds these pages free. Thread: any.
void FreeMemory(const Paging& paging, PagedMemory memory);

// What one session asks of the pager: one piece of work is there at a time, in
// the order they came. However much a session asks for, the pager is at another
// one's, or at an arena, after that. Thread: loop.
class PagerTurns {
 public:
  using Task = std::function<void()>;
  explicit PagerTurns(const Paging& paging);
  PagerTurns(const PagerTurns&) = delete;
  PagerTurns& operator=(const PagerTurns&) = delete;

  // `work` on the pager, then `done` here, even if `this` has gone by then. The
  // number is good for Withdraw.
  uint64_t Add(Task work, Task done);
  // Drops both where the pager has not been asked yet; else false.
  bool Withdraw(uint64_t turn);
  // Drops all that Withdraw would.
  void Clear() { waiting_.clear(); }

 private:
  struct Turn {
    uint64_t number = 0;
    Task work, done;
  };
  void Begin();

  const Paging paging_;
  uint64_t next_ = 1;
  bool busy_ = false;  // one is at the pager
  std::deque<Turn> waiting_;
  // For what the pager posts back: whether this is still there.
  const std::shared_ptr<PagerTurns*> self_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MEMORY_PAGING_H_
