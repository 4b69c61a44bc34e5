// Arenas grow when a model comes and shrink when one leaves; both on the loop.
// Sizes come from models the device has compiled.

#include "daemon/core/arenas.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::core {

absl::StatusOr<std::shared_ptr<Arena>> Arena::Create(driver::Device* device,
                                                     const driver::Heaps* heaps,
                                                     Account& account,
                                                     uint64_t size) {
  const std::string name = absl::StrCat("internal memory of ", size, " bytes");
  std::string heap;
  auto allocation = heaps->Allocate(size, &heap);
  if (!allocation.ok()) return base::Annotate(allocation.status(), name);
  RKNND_ASSIGN_OR_RETURN(Charge charge, account.TryCharge(MemoryKind::kInternal,
                                                          allocation->size));
  auto memory = device->Attach({allocation->fd.get(), 0, allocation->size},
                               driver::MemoryAccess::kReadWrite);
  if (!memory.ok()) return base::Annotate(memory.status(), name);

  std::shared_ptr<Arena> arena(new Arena);
  arena->charge_ = std::move(charge);
  arena->fd_ = std::move(allocation->fd);
  arena->memory_ = *std::move(memory);
  arena->size_ = size;
  return arena;
}

Arenas::Arenas(driver::Device* device, const driver::Heaps* heaps,
               std::shared_ptr<Account> account)
    : device_(device),
      heaps_(heaps),
      account_(std::move(account)),
      arenas_(device->info().cores) {}

absl::Status Arenas::Fit(const std::vector<uint64_t>& needs) {
  for (uint32_t core = 0; core < needs.size(); ++core) {
    const std::shared_ptr<Arena> current = Get(core);
    const uint64_t has = current == nullptr ? 0 : current->size();
    if (needs[core] == has) continue;
    std::shared_ptr<Arena> fitting;
    if (needs[core] != 0) {
      auto created = Arena::Create(device_, heaps_, *account_, needs[core]);
      if (!created.ok() && needs[core] > has) {
        return base::Annotate(created.status(), absl::StrCat("core ", core));
      }
      if (!created.ok()) continue;
      fitting = *std::move(created);
    }
    base::MutexLock lock(mutex_);
    // The old one goes with `current`, outside the lock.
    arenas_[core] = std::move(fitting);
  }
  return absl::OkStatus();
}

std::shared_ptr<Arena> Arenas::Get(uint32_t core) const {
  base::MutexLock lock(mutex_);
  return arenas_[core];
}

}  // namespace rknnd::core
