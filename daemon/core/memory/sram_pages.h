// Pages of the NPU's SRAM, free or taken, and how the windows that contexts
// share are cut from what is free. Plain values without a lock: Sram's.
//
// The NPU addresses a window as one piece, so a window is always contiguous.

#ifndef DAEMON_CORE_MEMORY_SRAM_PAGES_H_
#define DAEMON_CORE_MEMORY_SRAM_PAGES_H_

#include <cstdint>
#include <vector>

namespace rknnd::core {

// Pages that follow each other; none when `count` is 0.
struct PageRun {
  uint64_t first = 0, count = 0;

  [[nodiscard]] uint64_t end() const { return first + count; }
  friend bool operator==(const PageRun&, const PageRun&) = default;
};

// Thread: one at a time.
class SramPages {
 public:
  explicit SramPages(uint64_t count) : taken_(count), free_(count) {}

  // `count` pages out of the smallest gap that has them; where none has, the
  // whole of the largest gap.
  PageRun Take(uint64_t count);
  // These very pages, which are free.
  void Mark(PageRun run);
  // Pages that were taken.
  void Give(PageRun run);

  [[nodiscard]] std::vector<PageRun> Gaps() const;
  [[nodiscard]] uint64_t free() const { return free_; }

 private:
  void Set(PageRun run, bool taken);

  std::vector<bool> taken_;
  uint64_t free_;
};

// What contexts that run on any one of `cores` could use of a window there.
struct SramNeed {
  uint32_t cores = 0;  // bits
  uint64_t pages = 0;
};

// The window of each core, by core, out of `gaps`: as large as the largest need
// there. Where that is too much for all together, the largest windows give way
// first, down to a size that all of them can have; then one core after the
// other gets what is left and of use to it. Windows lie at the ends of gaps.
std::vector<PageRun> FitWindows(const std::vector<SramNeed>& needs,
                                const std::vector<PageRun>& gaps);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MEMORY_SRAM_PAGES_H_
