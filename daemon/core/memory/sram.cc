#include "daemon/core/memory/sram.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/mutex.h"
#include "daemon/core/memory/sram_pages.h"
#include "driver/device.h"

namespace rknnd::core {

// All of it, kept by the leases too: a buffer's may end on a worker, after the
// service. Thread: any.
class SramBook {
 public:
  SramBook(uint64_t pages, uint64_t core_pages)
      : core_pages_(core_pages), pages_(pages) {}

  // 0: there is no page for it.
  uint64_t Take(uint64_t pages, bool whole, std::string holder);
  uint64_t Share(uint64_t pages, uint32_t cores);
  void Move(uint64_t id, uint32_t cores);
  void Return(uint64_t id);
  void BackCore(uint32_t core, uint64_t pages);

  [[nodiscard]] SramWindow WindowOf(uint64_t id) const;
  [[nodiscard]] uint32_t CoresOf(uint64_t id) const;
  [[nodiscard]] uint64_t free() const;
  [[nodiscard]] std::vector<SramReport::Window> windows() const;

 private:
  struct Owner {
    PageRun run;
    std::string holder;
  };
  struct Sharer {
    uint32_t cores = 0;
    uint64_t pages = 0;  // of use to it
  };

  void Enter(const Sharer& sharer) RKNND_REQUIRES(mutex_);
  void Leave(const Sharer& sharer) RKNND_REQUIRES(mutex_);
  // Cuts the shared windows anew.
  void Fit() RKNND_REQUIRES(mutex_);

  // What each core's internal memory is made with; 0: SRAM is only planned.
  const uint64_t core_pages_;
  mutable base::Mutex mutex_;
  uint64_t next_ RKNND_GUARDED_BY(mutex_) = 1;
  SramPages pages_ RKNND_GUARDED_BY(mutex_);
  std::map<uint64_t, Owner> owners_ RKNND_GUARDED_BY(mutex_);
  std::map<uint64_t, Sharer> sharers_ RKNND_GUARDED_BY(mutex_);
  // The sharers' pages by their cores: fitting costs the same however many
  // there are.
  std::map<uint32_t, std::multiset<uint64_t>> needs_ RKNND_GUARDED_BY(mutex_);
  std::vector<PageRun> shared_ RKNND_GUARDED_BY(mutex_);  // by core
};

namespace {

uint64_t PagesFor(uint64_t bytes) {
  return bytes / driver::kSramPage + (bytes % driver::kSramPage == 0 ? 0 : 1);
}

SramWindow InBytes(PageRun run) {
  return {run.first * driver::kSramPage, run.count * driver::kSramPage};
}

}  // namespace

uint64_t SramBook::Take(uint64_t pages, bool whole, std::string holder) {
  if (core_pages_ != 0) return 0;
  base::MutexLock lock(mutex_);
  PageRun run = pages_.Take(pages);
  if (run.count < pages && whole) {
    pages_.Give(run);
    run = {};
  }
  if (run.count == 0) return 0;
  owners_[next_] = {run, std::move(holder)};
  return next_++;
}

uint64_t SramBook::Share(uint64_t pages, uint32_t cores) {
  if (pages == 0 || cores == 0) return 0;
  base::MutexLock lock(mutex_);
  const Sharer sharer{cores, pages};
  sharers_[next_] = sharer;
  Enter(sharer);
  Fit();
  return next_++;
}

void SramBook::Move(uint64_t id, uint32_t cores) {
  base::MutexLock lock(mutex_);
  const auto found = sharers_.find(id);
  if (found == sharers_.end() || cores == 0) return;
  Leave(found->second);
  found->second.cores = cores;
  Enter(found->second);
  Fit();
}

void SramBook::Return(uint64_t id) {
  base::MutexLock lock(mutex_);
  if (const auto owner = owners_.find(id); owner != owners_.end()) {
    pages_.Give(owner->second.run);
    owners_.erase(owner);
  } else if (const auto sharer = sharers_.find(id); sharer != sharers_.end()) {
    Leave(sharer->second);
    sharers_.erase(sharer);
  }
  Fit();
}

void SramBook::Enter(const Sharer& sharer) {
  needs_[sharer.cores].insert(sharer.pages);
}

void SramBook::Leave(const Sharer& sharer) {
  const auto need = needs_.find(sharer.cores);
  need->second.erase(need->second.find(sharer.pages));
  if (need->second.empty()) needs_.erase(need);
}

void SramBook::BackCore(uint32_t core, uint64_t pages) {
  if (core_pages_ == 0) return;
  base::MutexLock lock(mutex_);
  if (shared_.size() <= core) shared_.resize(core + 1);
  pages_.Give(shared_[core]);
  shared_[core] = {core * core_pages_, std::min(pages, core_pages_)};
  pages_.Mark(shared_[core]);
}

void SramBook::Fit() {
  if (core_pages_ != 0) return;
  for (const PageRun& run : shared_) pages_.Give(run);
  std::vector<SramNeed> needs;
  for (const auto& [cores, pages] : needs_) {
    needs.push_back({cores, *pages.rbegin()});
  }
  shared_ = FitWindows(needs, pages_.Gaps());
  for (const PageRun& run : shared_) pages_.Mark(run);
}

SramWindow SramBook::WindowOf(uint64_t id) const {
  base::MutexLock lock(mutex_);
  if (const auto owner = owners_.find(id); owner != owners_.end()) {
    return InBytes(owner->second.run);
  }
  const auto sharer = sharers_.find(id);
  if (sharer == sharers_.end()) return {};
  const uint32_t cores = sharer->second.cores;
  // Where each of them has room for it, the lowest core stands for all.
  PageRun smallest{0, sharer->second.pages};
  bool first = true;
  for (uint32_t core = 0; core < shared_.size(); ++core) {
    if ((cores >> core & 1) == 0) continue;
    const PageRun run = shared_[core];
    if (first || run.count < smallest.count) {
      smallest = {run.first, std::min(run.count, smallest.count)};
    }
    first = false;
  }
  return InBytes(smallest);
}

uint32_t SramBook::CoresOf(uint64_t id) const {
  base::MutexLock lock(mutex_);
  const auto sharer = sharers_.find(id);
  return sharer == sharers_.end() ? 0 : sharer->second.cores;
}

uint64_t SramBook::free() const {
  base::MutexLock lock(mutex_);
  return pages_.free() * driver::kSramPage;
}

std::vector<SramReport::Window> SramBook::windows() const {
  base::MutexLock lock(mutex_);
  std::vector<SramReport::Window> windows;
  const auto add = [&windows](PageRun run, std::string holder) {
    SramReport::Window& window = windows.emplace_back();
    const SramWindow bytes = InBytes(run);
    window.offset = bytes.offset;
    window.size = bytes.bytes;
    window.holder = std::move(holder);
    return &window;
  };
  for (const auto& [id, owner] : owners_) add(owner.run, owner.holder);
  for (uint32_t core = 0; core < shared_.size(); ++core) {
    if (shared_[core].count == 0) continue;
    SramReport::Window* window = add(
        shared_[core], absl::StrCat(core_pages_ == 0 ? "shared, core "
                                                     : "internal memory, core ",
                                    core));
    window->core_mask = uint32_t{1} << core;
    for (const auto& [cores, pages] : needs_) {
      if ((cores >> core & 1) == 0) continue;
      window->contexts += static_cast<uint32_t>(pages.size());
    }
  }
  std::sort(windows.begin(), windows.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return windows;
}

SramLease::SramLease(std::shared_ptr<SramBook> book, uint64_t id)
    : book_(id == 0 ? nullptr : std::move(book)), id_(id) {}

SramLease::SramLease(SramLease&& other) noexcept
    : book_(std::move(other.book_)), id_(std::exchange(other.id_, 0)) {}

SramLease& SramLease::operator=(SramLease&& other) noexcept {
  std::swap(book_, other.book_);
  std::swap(id_, other.id_);
  return *this;
}

SramLease::~SramLease() {
  if (book_ != nullptr) book_->Return(id_);
}

SramWindow SramLease::window() const {
  return book_ == nullptr ? SramWindow() : book_->WindowOf(id_);
}

uint32_t SramLease::cores() const {
  return book_ == nullptr ? 0 : book_->CoresOf(id_);
}

void SramLease::Move(uint32_t cores) {
  if (book_ != nullptr) book_->Move(id_, cores);
}

Sram::Sram(uint64_t total, uint64_t core_part)
    : book_(std::make_shared<SramBook>(total / driver::kSramPage,
                                       core_part / driver::kSramPage)) {}

void Sram::BackCore(uint32_t core, uint64_t bytes) {
  book_->BackCore(core, bytes / driver::kSramPage);
}

SramLease Sram::Take(uint64_t wanted, std::string holder) {
  return {book_, book_->Take(PagesFor(wanted), false, std::move(holder))};
}

SramLease Sram::TakeWhole(uint64_t wanted, std::string holder) {
  return {book_, book_->Take(PagesFor(wanted), true, std::move(holder))};
}

SramLease Sram::Share(uint64_t wanted, uint32_t cores) {
  return {book_, book_->Share(PagesFor(wanted), cores)};
}

uint64_t Sram::free() const { return book_->free(); }

std::vector<SramReport::Window> Sram::windows() const {
  return book_->windows();
}

}  // namespace rknnd::core
