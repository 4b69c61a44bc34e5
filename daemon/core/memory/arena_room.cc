// Adds up what arenas would grow by, in pages.

#include "daemon/core/memory/arena_room.h"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::core {

absl::Status CheckArenaRoom(const ArenaNeed& need, const Arenas& arenas,
                            uint32_t cores, Ledger& ledger, Account& account,
                            const std::string& payer) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto whole = [page](uint64_t size) {
    return (size + page - 1) / page * page;
  };
  const uint64_t pages = whole(need.size);
  uint64_t growth = 0;
  uint64_t replaced = 0;  // while the last one is made
  uint64_t leaving = 0;   // charged, and given back before
  for (uint32_t core = 0; core < cores; ++core) {
    const std::shared_ptr<Arena> arena = arenas.Get(core);
    uint64_t has = arena == nullptr ? 0 : whole(arena->size());
    // Of one that is being made and the one before it the larger will stay.
    if (arenas.making().has_value() && arenas.making()->core == core) {
      const uint64_t coming = whole(arenas.making()->size);
      leaving = std::min(has, coming);
      has = std::max(has, coming);
    }
    if ((need.cores >> core & 1) == 0 || has >= pages) continue;
    replaced = has;
    growth += pages - replaced;
  }
  if (growth == 0) return absl::OkStatus();
  // Given back at once: each arena is charged when it is made.
  const uint64_t most = growth + replaced;
  RKNND_RETURN_IF_ERROR(
      base::Annotate(ledger.CheckKept(payer, 0, growth),
                     absl::StrCat("internal memory of ", need.size, " bytes")));
  const auto charge =
      account.TryCharge(MemoryKind::kInternal, most - std::min(most, leaving));
  if (charge.ok()) return absl::OkStatus();
  std::string what = absl::StrCat("internal memory of ", need.size, " bytes");
  if (replaced > 0) {
    absl::StrAppend(&what, " (beside the ", replaced,
                    " bytes that a core has until then)");
  }
  return base::Annotate(charge.status(), what);
}

}  // namespace rknnd::core
