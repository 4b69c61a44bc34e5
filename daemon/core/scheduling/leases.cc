// See the header. Who asks came in by admin.sock; the numbers are still its.

#include "daemon/core/scheduling/leases.h"

#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/scheduling/admission.h"

namespace rknnd::core {

std::string LentCores::Holder() const {
  return absl::StrCat("'", command, "' (pid ", pid, ")");
}

absl::Status Leases::Take(SessionId session, LentCores lent, Callback held) {
  const uint32_t cores = lent.cores;
  if (cores == 0) {
    return absl::InvalidArgumentError("a lease of no core says nothing");
  }
  if (const uint32_t unknown = cores & ~cores_; unknown != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("no lease of ", NameCores(unknown), ": this NPU has ",
                     NameCores(cores_)));
  }
  for (const Lease& lease : leases_) {
    if (lease.session == session) {
      return absl::AlreadyExistsError(absl::StrCat("this connection has ",
                                                   NameCores(lease.lent.cores),
                                                   " already: one lease each"));
    }
    if (const uint32_t both = lease.lent.cores & cores; both != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(NameCores(both), " is lent to ", lease.lent.Holder(),
                       " until that ends: wait for it, or lease others"));
    }
  }
  leases_.push_back({session, std::move(lent), std::move(held)});
  return absl::OkStatus();
}

bool Leases::GiveBack(SessionId session) {
  return std::erase_if(leases_, [session](const Lease& lease) {
           return lease.session == session;
         }) != 0;
}

void Leases::Settle(uint32_t busy) {
  // Apart: what is called may ask for more, or give back.
  std::vector<Callback> held;
  for (Lease& lease : leases_) {
    if (lease.held == nullptr || (lease.lent.cores & busy) != 0) continue;
    held.push_back(std::exchange(lease.held, nullptr));
  }
  for (const Callback& done : held) done(absl::OkStatus());
}

uint32_t Leases::lent() const {
  uint32_t cores = 0;
  for (const Lease& lease : leases_) cores |= lease.lent.cores;
  return cores;
}

uint32_t Leases::awaited() const {
  uint32_t cores = 0;
  for (const Lease& lease : leases_) {
    if (lease.held != nullptr) cores |= lease.lent.cores;
  }
  return cores;
}

std::vector<LentCores> Leases::list() const {
  std::vector<LentCores> list;
  for (const Lease& lease : leases_) list.push_back(lease.lent);
  return list;
}

std::string Leases::HolderOf(uint32_t cores) const {
  std::string holders;
  for (const Lease& lease : leases_) {
    if ((lease.lent.cores & cores) == 0) continue;
    absl::StrAppend(&holders, holders.empty() ? "" : " and ",
                    lease.lent.Holder());
  }
  return holders;
}

uint32_t LeasedCores::Set(std::vector<LentCores> lent) {
  uint32_t cores = 0;
  for (const LentCores& one : lent) cores |= one.cores;
  base::MutexLock lock(mutex_);
  lent_ = std::move(lent);
  return cores;
}

absl::Status LeasedCores::Error(uint32_t context,
                                const CoreChoice& cores) const {
  uint32_t lent = 0;
  std::string holders;
  {
    base::MutexLock lock(mutex_);
    for (const LentCores& one : lent_) {
      if ((one.cores & cores.cores) == 0) continue;
      lent |= one.cores & cores.cores;
      absl::StrAppend(&holders, holders.empty() ? "" : " and ", one.Holder());
    }
  }
  if (lent == 0) {
    // They came back behind the scheduler's look.
    return absl::PermissionDeniedError(
        absl::StrCat("context ", context,
                     " could not run: its cores were lent until now; run it "
                     "again"));
  }
  // Not UNAVAILABLE, which a client takes for a daemon that ends and waits on.
  return absl::PermissionDeniedError(absl::StrCat(
      "context ", context, " cannot run: ", NameCores(lent),
      std::has_single_bit(lent) ? " is" : " are", " lent to ", holders,
      " until that ends (rknnctl lease); choose other cores, or wait"));
}

}  // namespace rknnd::core
