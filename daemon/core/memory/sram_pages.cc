// 239 pages and three cores on an RK3588: everything here is a short loop over
// them, and exact answers matter more than speed.

#include "daemon/core/memory/sram_pages.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

namespace rknnd::core {
namespace {

using Sizes = std::vector<uint64_t>;  // of the cores' windows, in pages

bool On(uint32_t cores, size_t core) { return (cores >> core & 1) != 0; }

// Windows of these sizes in the gaps, the largest first, each at the end of the
// smallest gap that takes it: single windows come from the starts.
std::optional<std::vector<PageRun>> Pack(const Sizes& sizes,
                                         std::vector<PageRun> gaps) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&sizes](size_t a, size_t b) {
    return sizes[a] > sizes[b];
  });
  std::vector<PageRun> windows(sizes.size());
  for (const size_t core : order) {
    const uint64_t size = sizes[core];
    if (size == 0) break;
    PageRun* best = nullptr;
    for (PageRun& gap : gaps) {
      if (gap.count < size) continue;
      if (best == nullptr || gap.count < best->count) best = &gap;
    }
    if (best == nullptr) return std::nullopt;
    best->count -= size;
    windows[core] = {best->end(), size};
  }
  return windows;
}

// The largest window at `core` that someone there could use: a context plans
// with the smallest of its cores' windows.
uint64_t UsefulAt(size_t core, const std::vector<SramNeed>& needs,
                  const Sizes& sizes) {
  uint64_t useful = 0;
  for (const SramNeed& need : needs) {
    if (!On(need.cores, core)) continue;
    uint64_t pages = need.pages;
    for (size_t other = 0; other < sizes.size(); ++other) {
      if (other != core && On(need.cores, other)) {
        pages = std::min(pages, sizes[other]);
      }
    }
    useful = std::max(useful, pages);
  }
  return useful;
}

}  // namespace

PageRun SramPages::Take(uint64_t count) {
  if (count == 0) return {};
  PageRun best;
  for (const PageRun& gap : Gaps()) {
    const bool fits = gap.count >= count;
    const bool best_fits = best.count >= count;
    if (fits != best_fits
            ? fits
            : (fits ? gap.count < best.count : gap.count > best.count)) {
      best = gap;
    }
  }
  best.count = std::min(best.count, count);
  Set(best, true);
  return best;
}

void SramPages::Mark(PageRun run) { Set(run, true); }

void SramPages::Give(PageRun run) { Set(run, false); }

void SramPages::Set(PageRun run, bool taken) {
  for (uint64_t page = run.first; page < run.end(); ++page) {
    taken_[page] = taken;
  }
  free_ = taken ? free_ - run.count : free_ + run.count;
}

std::vector<PageRun> SramPages::Gaps() const {
  std::vector<PageRun> gaps;
  for (uint64_t page = 0; page < taken_.size(); ++page) {
    if (taken_[page]) continue;
    if (gaps.empty() || gaps.back().end() != page) gaps.push_back({page, 0});
    ++gaps.back().count;
  }
  return gaps;
}

std::vector<PageRun> FitWindows(const std::vector<SramNeed>& needs,
                                const std::vector<PageRun>& gaps) {
  Sizes most;  // that each core could use
  for (const SramNeed& need : needs) {
    most.resize(std::max<size_t>(most.size(), std::bit_width(need.cores)));
    for (size_t core = 0; core < most.size(); ++core) {
      if (On(need.cores, core)) most[core] = std::max(most[core], need.pages);
    }
  }
  uint64_t level = 0;
  for (const uint64_t pages : most) level = std::max(level, pages);
  uint64_t largest = 0;
  for (const PageRun& gap : gaps) largest = std::max(largest, gap.count);
  level = std::min(level, largest);

  Sizes sizes;
  std::optional<std::vector<PageRun>> windows;
  for (;; --level) {  // windows of nothing fit always
    sizes = most;
    for (uint64_t& size : sizes) size = std::min(size, level);
    windows = Pack(sizes, gaps);
    if (windows.has_value()) break;
  }
  for (size_t core = 0; core < sizes.size(); ++core) {
    const uint64_t had = sizes[core];
    for (sizes[core] = UsefulAt(core, needs, sizes); sizes[core] > had;
         --sizes[core]) {
      auto grown = Pack(sizes, gaps);
      if (!grown.has_value()) continue;
      windows = std::move(grown);
      break;
    }
    sizes[core] = std::max(sizes[core], had);
  }
  return *std::move(windows);
}

}  // namespace rknnd::core
