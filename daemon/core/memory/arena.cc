// Jobs of any session run here, one after the other; workers clear meanwhile
// what they left. Sizes come from models the device has compiled.

#include "daemon/core/memory/arena.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/hot_path.h"
#include "base/status/status.h"
#include "base/values/overflow.h"

namespace rknnd::core {

Arena::Arena(const Paging& paging, Charge charge, PagedMemory memory,
             uint64_t size)
    : paging_(paging),
      charge_(std::move(charge)),
      memory_(std::move(memory)),
      size_(size) {}

Arena::~Arena() {
  charge_ = Charge();
  FreeMemory(paging_, std::move(memory_));
}

void Arena::Make(const Paging& paging, Account& account, uint64_t size,
                 Callback done) {
  const std::string name = absl::StrCat("internal memory of ", size, " bytes");
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const std::optional<uint64_t> pages = base::CheckedAlignUp(size, page);
  if (!pages.has_value()) {
    return done(absl::ResourceExhaustedError(absl::StrCat(name, " is none")));
  }
  auto charge = account.TryCharge(MemoryKind::kInternal, *pages);
  if (!charge.ok()) return done(base::Annotate(charge.status(), name));

  struct Making {
    Charge charge;
    Callback done;
    absl::StatusOr<PagedMemory> made = absl::CancelledError();
  };
  auto making = std::make_shared<Making>();
  making->charge = *std::move(charge);
  making->done = std::move(done);
  const auto finish = [paging, size, name](Making& of) {
    const Callback tell = std::move(of.done);
    if (!of.made.ok()) {
      of.charge = Charge();
      return tell(base::Annotate(of.made.status(), name));
    }
    // A heap may give more than whole pages.
    if (absl::Status paid = of.charge.Resize(of.made->size); !paid.ok()) {
      FreeMemory(paging, *std::move(of.made));
      return tell(base::Annotate(paid, name));
    }
    tell(std::make_shared<Arena>(paging, std::move(of.charge),
                                 *std::move(of.made), size));
  };
  // Whole pages of it, as no mapping may end within what lies in SRAM.
  const uint64_t sram = std::min(paging.device->info().core_sram,
                                 size / driver::kSramPage * driver::kSramPage);
  if (size <= kInlineBytes) {
    making->made = MakeMemory(paging, size, 0, sram);
    return finish(*making);
  }
  paging.pager->Post(
      [making = std::move(making), paging, size, sram, finish]() mutable {
        making->made = MakeMemory(paging, size, 0, sram);
        // All of it: what was the loop's is let go of there.
        paging.loop->Post(
            [making = std::move(making), finish] { finish(*making); });
      });
}

RKNND_HOT_PATH void Arena::Begin(SessionId session, uint64_t bytes) {
  used_.store(true, std::memory_order_release);
  uint64_t others = 0;
  {
    base::MutexLock lock(mutex_);
    if (session_ != session) others = std::exchange(left_, 0);
    session_ = session;
    left_ = std::max(left_, bytes);
  }
  // Not under the lock: it takes longer than a piece, and nobody else clears.
  if (others != 0) memory()->Clear(0, others);
}

bool Arena::Clear(absl::FunctionRef<bool()> wanted) {
  if (clearing_.exchange(true)) return true;
  for (;;) {
    base::MutexLock lock(mutex_);
    if (left_ == 0 || used_.load(std::memory_order_acquire) || wanted()) {
      // Under the lock: what a job leaves after this is for others to see to.
      clearing_.store(false);
      return left_ == 0;
    }
    // From the end, so that what is left stays one range; pieces are aligned.
    const uint64_t begin = (left_ - 1) / kPiece * kPiece;
    memory()->Clear(begin, left_ - begin);
    left_ = begin;
  }
}

}  // namespace rknnd::core
