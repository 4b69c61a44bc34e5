// Makes and imports the buffers of one session. Nothing a client says about
// them is trusted: sizes are the kernel's, charged before anything is mapped.

#include "daemon/core/buffer_table.h"

#include <unistd.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::core {
namespace {

// rknn_mem_alloc_flags. Cacheable or not, and SRAM, are wishes; this version
// gives what the heap has.
constexpr uint32_t kCacheable = 1;
constexpr uint32_t kNonCacheable = 2;
constexpr uint32_t kTrySram = 4;
constexpr uint32_t kKnownFlags = kCacheable | kNonCacheable | kTrySram;

std::string Name(uint32_t number) { return absl::StrCat("buffer ", number); }

}  // namespace

Buffer::Buffer(Parts parts) : parts_(std::move(parts)) {
  parts_.live->fetch_add(1, std::memory_order_relaxed);
}

Buffer::~Buffer() { parts_.live->fetch_sub(1, std::memory_order_relaxed); }

BufferTable::BufferTable(driver::Device* device, const driver::Heaps* heaps,
                         std::shared_ptr<Account> account,
                         const SessionLimits& limits)
    : device_(device),
      heaps_(heaps),
      account_(std::move(account)),
      limits_(limits),
      live_(std::make_shared<std::atomic<uint32_t>>(0)) {}

absl::StatusOr<BufferInfo> BufferTable::Allocate(uint32_t number, uint64_t size,
                                                 uint32_t flags) {
  RKNND_RETURN_IF_ERROR(CheckNew(number));
  if ((flags & ~kKnownFlags) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(number), ": unknown allocation flags 0x",
                     absl::Hex(flags & ~kKnownFlags)));
  }
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (size == 0 || size > std::numeric_limits<uint64_t>::max() - page) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(number), " cannot have ", size, " bytes"));
  }
  RKNND_RETURN_IF_ERROR(CheckSize(number, size));
  RKNND_ASSIGN_OR_RETURN(
      Charge charge,
      account_->TryCharge(MemoryKind::kIo, (size + page - 1) / page * page));

  Buffer::Parts parts;
  auto allocation = heaps_->Allocate(size, &parts.heap);
  if (!allocation.ok()) {
    return base::Annotate(allocation.status(), Name(number));
  }
  RKNND_RETURN_IF_ERROR(charge.Resize(allocation->size));
  auto memory = device_->Attach({allocation->fd.get(), 0, allocation->size},
                                driver::MemoryAccess::kReadWrite);
  if (!memory.ok()) return base::Annotate(memory.status(), Name(number));
  RKNND_ASSIGN_OR_RETURN(
      base::UniqueFd for_client,
      base::ToStatusOr(base::Duplicate(allocation->fd.get())));
  // Only so that bindings of the same memory can be told; a heap whose fds
  // import would refuse is still good memory.
  if (auto check = driver::CheckImport(allocation->fd.get()); check.ok()) {
    parts.identity = check->identity;
  }

  BufferInfo info{std::move(for_client), allocation->size, parts.heap};
  parts.live = live_;
  parts.charge = std::move(charge);
  parts.fd = std::move(allocation->fd);
  parts.memory = *std::move(memory);
  parts.size = info.size;
  buffers_[number] = std::make_shared<Buffer>(std::move(parts));
  return info;
}

absl::StatusOr<BufferInfo> BufferTable::Import(uint32_t number,
                                               base::UniqueFd fd,
                                               uint64_t expected_size) {
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
  RKNND_ASSIGN_OR_RETURN(Charge charge,
                         account_->TryCharge(MemoryKind::kIo, check->size));

  Buffer::Parts parts;
  const driver::MemoryRef ref{fd.get(), 0, check->size};
  auto memory = device_->Attach(ref, driver::MemoryAccess::kReadWrite);
  if (memory.status().code() == absl::StatusCode::kPermissionDenied) {
    // A producer may hand out its frames for reading only.
    memory = device_->Attach(ref, driver::MemoryAccess::kRead);
    parts.read_only = true;
  }
  if (!memory.ok()) return base::Annotate(memory.status(), Name(number));

  parts.live = live_;
  parts.charge = std::move(charge);
  parts.fd = std::move(fd);
  parts.memory = *std::move(memory);
  parts.size = check->size;
  parts.heap = check->heap;
  parts.imported = true;
  parts.identity = check->identity;
  BufferInfo info{base::UniqueFd(), parts.size, parts.heap};
  buffers_[number] = std::make_shared<Buffer>(std::move(parts));
  return info;
}

absl::Status BufferTable::Release(uint32_t number) {
  if (buffers_.erase(number) == 0) return Find(number).status();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Buffer>> BufferTable::Find(
    uint32_t number) const {
  auto found = buffers_.find(number);
  if (found == buffers_.end()) {
    return absl::NotFoundError(
        absl::StrCat(Name(number), " does not exist in this session"));
  }
  return found->second;
}

absl::Status BufferTable::CheckNew(uint32_t number) const {
  if (number == 0) {
    return absl::InvalidArgumentError("a buffer's number cannot be 0");
  }
  if (buffers_.contains(number)) {
    return absl::AlreadyExistsError(
        absl::StrCat(Name(number), " exists already: release it first"));
  }
  if (const uint32_t live = live_->load(std::memory_order_relaxed);
      live >= limits_.buffers) {
    return absl::ResourceExhaustedError(absl::StrCat(
        account_->holder(), " holds ", live,
        " buffers, its limit 'buffers' is ", limits_.buffers,
        ": it creates memory per frame without releasing it? Reuse "
        "buffers, or raise the limit"));
  }
  return absl::OkStatus();
}

absl::Status BufferTable::CheckSize(uint32_t number, uint64_t size) const {
  if (size <= limits_.buffer_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(Name(number), " of ", account_->holder(), " has ", size,
                   " bytes, the limit 'buffer_bytes' is ", limits_.buffer_bytes,
                   ": use several buffers, or raise the limit"));
}

}  // namespace rknnd::core
