// Makes and imports the buffers of one session. Nothing a client says about
// them is trusted: sizes are the kernel's, charged before anything is mapped.

#include "daemon/core/memory/buffer_table.h"

#include <unistd.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::core {
namespace {

// Beside driver::Allocation's kinds.
constexpr uint32_t kInsteadOfSram = 31;

std::string Name(uint32_t number) { return absl::StrCat("buffer ", number); }

}  // namespace

Buffer::Buffer(Parts parts) : parts_(std::move(parts)) {
  if (parts_.identity == driver::MemoryIdentity{}) {
    // Not known: it is like no other.
    parts_.identity = {UINT64_MAX, reinterpret_cast<uintptr_t>(this)};
  }
  parts_.live->fetch_add(1, std::memory_order_relaxed);
}

Buffer::~Buffer() {
  parts_.live->fetch_sub(1, std::memory_order_relaxed);
  parts_.charge = Charge();
  FreeMemory(parts_.paging, std::move(parts_.memory));
}

BufferTable::BufferTable(const Paging& paging, PagerTurns* turns,
                         std::shared_ptr<Account> account,
                         const SessionLimits* limits,
                         std::function<absl::Status()> may_add)
    : paging_(paging),
      turns_(turns),
      account_(std::move(account)),
      limits_(*limits),
      may_add_(std::move(may_add)),
      live_(std::make_shared<std::atomic<uint32_t>>(0)),
      self_(std::make_shared<BufferTable*>(this)) {}

void BufferTable::Clear() {
  for (auto& [number, making] : std::exchange(pending_, {})) {
    Cancel(*making);
    making->done = nullptr;
  }
  for (auto& [number, adopted] : std::exchange(adopted_, {})) {
    keys_->Unwatch(adopted.watch);
  }
  for (auto& [number, buffer] : std::exchange(buffers_, {})) {
    if (keys_ != nullptr) keys_->Forget(buffer.get());
  }
}

void BufferTable::Cancel(Making& making) {
  making.cancelled = true;
  // One that waits leaves nothing. The pager may be at it otherwise; nothing
  // else is made before that ends.
  turns_->Withdraw(making.turn);
  making.charge = Charge();
}

// ---- making -----------------------------------------------------------------

void BufferTable::Allocate(uint32_t number, uint64_t size, uint32_t flags,
                           Callback done) {
  Charge charge;
  auto work = PrepareAllocation(number, size, flags, &charge);
  if (!work.ok()) return done(work.status());
  Start(number, *std::move(work), std::move(charge), std::move(done));
}

absl::StatusOr<BufferTable::Work> BufferTable::PrepareAllocation(
    uint32_t number, uint64_t size, uint32_t flags, Charge* charge) const {
  RKNND_RETURN_IF_ERROR(CheckNew(number));
  if ((flags & ~kBufferFlags) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(number), ": unknown allocation flags 0x",
                     absl::Hex(flags & ~kBufferFlags)));
  }
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (size == 0 || size > std::numeric_limits<uint64_t>::max() - page) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(number), " cannot have ", size, " bytes"));
  }
  RKNND_RETURN_IF_ERROR(CheckSize(number, size));
  RKNND_ASSIGN_OR_RETURN(
      *charge,
      account_->TryCharge(MemoryKind::kIo, (size + page - 1) / page * page));
  return Work([paging = paging_, size, flags]() -> absl::StatusOr<Made> {
    Made made;
    made.try_sram = (flags & kBufferTrySram) != 0;
    RKNND_ASSIGN_OR_RETURN(made.memory, MakeMemory(paging, size, flags));
    const int fd = made.memory.fd.get();
    RKNND_ASSIGN_OR_RETURN(made.for_client,
                           base::ToStatusOr(base::Duplicate(fd)));
    // Only so that bindings of the same memory can be told; a heap whose fds
    // import would refuse is still good memory.
    if (auto check = driver::CheckImport(fd); check.ok()) {
      made.identity = check->identity;
    }
    return made;
  });
}

void BufferTable::Import(uint32_t number, base::UniqueFd fd,
                         uint64_t expected_size, Callback done) {
  Charge charge;
  auto work = PrepareImport(number, std::move(fd), expected_size, &charge);
  if (!work.ok()) return done(work.status());
  Start(number, *std::move(work), std::move(charge), std::move(done));
}

absl::StatusOr<BufferTable::Work> BufferTable::PrepareImport(
    uint32_t number, base::UniqueFd fd, uint64_t expected_size,
    Charge* charge) const {
  RKNND_RETURN_IF_ERROR(CheckNew(number));
  auto check = driver::CheckImport(fd.get());
  if (!check.ok()) return base::Annotate(check.status(), Name(number));
  if (check->size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(number), ": the memory has no bytes"));
  }
  if (expected_size > check->size) {
    return absl::InvalidArgumentError(absl::StrCat(
        Name(number), " is said to have ", expected_size,
        " bytes, but the kernel says ", check->size, ": pass its true size"));
  }
  RKNND_RETURN_IF_ERROR(CheckSize(number, check->size));
  RKNND_ASSIGN_OR_RETURN(*charge,
                         account_->TryCharge(MemoryKind::kIo, check->size));
  auto made = std::make_shared<Made>();
  made->memory.fd = std::move(fd);
  made->memory.size = check->size;
  made->memory.heap = std::move(check->heap);
  made->imported = true;
  made->identity = check->identity;
  return AttachWork(std::move(made));
}

void BufferTable::ImportPhysical(uint32_t number, base::UniqueFd fd,
                                 const PhysicalRange& range,
                                 const driver::MemoryIdentity& identity,
                                 Callback done) {
  absl::Status wrong = CheckNew(number);
  wrong.Update(CheckSize(number, range.size));
  if (!wrong.ok()) return done(wrong);
  auto charge = account_->TryCharge(MemoryKind::kIo, range.size);
  if (!charge.ok()) return done(charge.status());
  auto made = std::make_shared<Made>();
  made->memory.fd = std::move(fd);
  made->memory.size = range.size;
  made->memory.heap = "physical";
  made->imported = true;
  made->identity = identity;
  made->origin = range.address;
  Start(number, AttachWork(std::move(made)), *std::move(charge),
        std::move(done));
}

BufferTable::Work BufferTable::AttachWork(std::shared_ptr<Made> made) const {
  return Work([device = paging_.device,
               made = std::move(made)]() -> absl::StatusOr<Made> {
    const driver::MemoryRef ref{made->memory.fd.get(), made->origin,
                                made->memory.size};
    auto memory = device->Attach(ref, driver::MemoryAccess::kReadWrite);
    if (memory.status().code() == absl::StatusCode::kPermissionDenied) {
      // A producer may hand out its frames for reading only.
      memory = device->Attach(ref, driver::MemoryAccess::kRead);
      made->read_only = true;
    }
    if (!memory.ok()) return memory.status();
    made->memory.memory = *std::move(memory);
    return std::move(*made);
  });
}

void BufferTable::Start(uint32_t number, Work work, Charge charge,
                        Callback done) {
  if (charge.bytes() <= kInlineBytes) {
    auto made = work();
    if (!made.ok()) return done(base::Annotate(made.status(), Name(number)));
    return done(Add(number, std::move(charge), *std::move(made)));
  }
  auto making = std::make_shared<Making>();
  making->charge = std::move(charge);
  making->done = std::move(done);
  making->work = std::move(work);
  pending_[number] = making;
  making->turn = turns_->Add(
      [making] {
        if (!making->cancelled) making->made = making->work();
        making->work = nullptr;
        if (making->cancelled && making->made.ok()) {
          // Freed here, not where others wait.
          making->made = absl::CancelledError();
        }
      },
      [making, number, paging = paging_,
       weak = std::weak_ptr<BufferTable*>(self_)] {
        const auto table = weak.lock();
        if (table != nullptr) (*table)->Finish(number, making);
        // Nobody wants it any more.
        if (making->made.ok()) {
          FreeMemory(paging, std::move(making->made->memory));
        }
      });
}

void BufferTable::Finish(uint32_t number,
                         const std::shared_ptr<Making>& making) {
  const auto pending = pending_.find(number);
  if (pending == pending_.end() || pending->second != making) return;
  pending_.erase(pending);
  // The callback may use the table.
  const Callback done = std::move(making->done);
  auto made = std::exchange(making->made, absl::CancelledError());
  if (!made.ok()) {
    making->charge = Charge();
    done(base::Annotate(made.status(), Name(number)));
    return;
  }
  done(Add(number, std::move(making->charge), *std::move(made)));
}

absl::StatusOr<BufferInfo> BufferTable::Add(uint32_t number, Charge charge,
                                            Made made) {
  // A heap may give more than whole pages.
  if (absl::Status paid = charge.Resize(made.memory.size); !paid.ok()) {
    FreeMemory(paging_, std::move(made.memory));
    return base::Annotate(paid, Name(number));
  }
  if (!made.memory.instead.empty()) {
    TellOnce(number, made.memory.instead_kind, made.memory.instead);
  }
  Buffer::Parts parts;
  if (made.try_sram) parts.sram = TakeSram(number, &made.memory);
  BufferInfo info{std::move(made.for_client), made.memory.size,
                  made.memory.heap};
  parts.paging = paging_;
  parts.live = live_;
  parts.charge = std::move(charge);
  parts.memory = std::move(made.memory);
  parts.imported = made.imported;
  parts.read_only = made.read_only;
  parts.identity = made.identity;
  parts.origin = made.origin;
  buffers_[number] = std::make_shared<Buffer>(std::move(parts));
  return info;
}

SramLease BufferTable::TakeSram(uint32_t number, PagedMemory* memory) {
  SramLease lease;
  if (sram_ != nullptr) {
    lease = sram_->TakeWhole(
        memory->size, absl::StrCat(Name(number), " of ", account_->holder()));
  }
  if (lease.bytes() > 0) {
    absl::StrAppend(&memory->heap, ", sram");
  } else {
    TellOnce(
        number, kInsteadOfSram,
        paging_.device->info().core_sram > 0
            ? "RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM: the NPU's SRAM is for "
              "internal memory, this is DRAM"
            : absl::StrCat("RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM: ", memory->size,
                           " bytes of SRAM are not free in one piece, it "
                           "is DRAM"));
  }
  return lease;
}

void BufferTable::TellOnce(uint32_t number, uint32_t kind,
                           const std::string& instead) {
  const uint32_t bit = uint32_t{1} << kind;
  if (tell_ == nullptr || (told_ & bit) != 0) return;
  told_ |= bit;
  tell_(absl::StrCat(Name(number), ": ", instead));
}

// ---- keys -------------------------------------------------------------------

absl::StatusOr<KeyedBuffer> BufferTable::KeyOf(uint32_t number) {
  RKNND_ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> buffer, Find(number));
  RKNND_ASSIGN_OR_RETURN(const BufferKey key, keys_->KeyOf(buffer));
  return KeyedBuffer{key, buffer->size(), buffer->read_only()};
}

absl::StatusOr<BufferInfo> BufferTable::Adopt(uint32_t number,
                                              const BufferKey& key, Gone gone) {
  RKNND_RETURN_IF_ERROR(CheckNew(number));
  RKNND_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer, keys_->Find(key));
  BufferInfo info{base::UniqueFd(), buffer->size(), buffer->heap()};
  Adopted& adopted = adopted_[number];
  adopted.buffer = std::move(buffer);
  adopted.gone = std::move(gone);
  adopted.watch =
      keys_->Watch(key, [number, weak = std::weak_ptr<BufferTable*>(self_)] {
        if (const auto table = weak.lock()) (*table)->TakeAdopted(number);
      });
  return info;
}

bool BufferTable::TakeAdopted(uint32_t number) {
  const auto found = adopted_.find(number);
  if (found == adopted_.end()) return false;
  const Adopted adopted = std::move(found->second);
  adopted_.erase(found);
  keys_->Unwatch(adopted.watch);
  const auto same = [&](const std::shared_ptr<Buffer>& other) {
    return other == adopted.buffer;
  };
  for (const auto& [other, buffer] : buffers_) {
    if (same(buffer)) return true;
  }
  for (const auto& [other, also] : adopted_) {
    if (same(also.buffer)) return true;
  }
  adopted.gone(*adopted.buffer);
  return true;
}

// ---- numbers ----------------------------------------------------------------

absl::Status BufferTable::Release(uint32_t number) {
  if (const auto pending = pending_.find(number); pending != pending_.end()) {
    const std::shared_ptr<Making> making = std::move(pending->second);
    pending_.erase(pending);
    Cancel(*making);
    const Callback done = std::move(making->done);
    done(absl::CancelledError(
        absl::StrCat(Name(number), " was released while it was made")));
    return absl::OkStatus();
  }
  if (TakeAdopted(number)) return absl::OkStatus();
  const auto found = buffers_.find(number);
  if (found == buffers_.end()) return Find(number).status();
  const std::shared_ptr<Buffer> buffer = std::move(found->second);
  buffers_.erase(found);
  if (keys_ != nullptr) keys_->Forget(buffer.get());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Buffer>> BufferTable::Find(
    uint32_t number) const {
  if (const auto adopted = adopted_.find(number); adopted != adopted_.end()) {
    return adopted->second.buffer;
  }
  auto found = buffers_.find(number);
  if (found == buffers_.end()) {
    if (pending_.contains(number)) {
      return absl::NotFoundError(absl::StrCat(
          Name(number),
          " is not ready yet: wait for the answer that says it is there"));
    }
    return absl::NotFoundError(
        absl::StrCat(Name(number), " does not exist in this session"));
  }
  return found->second;
}

absl::Status BufferTable::CheckNew(uint32_t number) const {
  if (number == 0) {
    return absl::InvalidArgumentError("a buffer's number cannot be 0");
  }
  if (buffers_.contains(number) || pending_.contains(number) ||
      adopted_.contains(number)) {
    return absl::AlreadyExistsError(
        absl::StrCat(Name(number), " exists already: release it first"));
  }
  if (const uint32_t held = live(); held >= limits_.buffers) {
    return absl::ResourceExhaustedError(absl::StrCat(
        account_->holder(), " holds ", held,
        " buffers, its limit 'buffers' is ", limits_.buffers,
        ": it creates memory per frame without releasing it? Reuse "
        "buffers, or raise the limit"));
  }
  return may_add_ == nullptr ? absl::OkStatus() : may_add_();
}

absl::Status BufferTable::CheckSize(uint32_t number, uint64_t size) const {
  if (size <= limits_.buffer_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(Name(number), " of ", account_->holder(), " has ", size,
                   " bytes, the limit 'buffer_bytes' is ", limits_.buffer_bytes,
                   ": use several buffers, or raise the limit"));
}

}  // namespace rknnd::core
