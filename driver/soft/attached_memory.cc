#include "driver/soft/attached_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/overflow.h"
#include "driver/memory/cache_sync.h"
#include "driver/memory/fault_guard.h"

namespace rknnd::soft {

absl::StatusOr<std::unique_ptr<driver::Memory>> AttachedMemory::Map(
    const driver::MemoryRef& memory, driver::MemoryAccess access,
    bool is_dma_buf) {
  if (memory.size == 0) {
    return absl::InvalidArgumentError("memory of 0 bytes cannot be attached");
  }
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t lead = memory.offset % page;
  std::optional<uint64_t> length = base::CheckedAdd(memory.size, lead);
  if (!length.has_value() || *length > std::numeric_limits<size_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory of ", memory.size, " bytes at offset ",
                     memory.offset, " does not fit an address space"));
  }
  bool writable = access == driver::MemoryAccess::kReadWrite;
  auto mode = writable ? base::Mapping::Access::kReadWrite
                       : base::Mapping::Access::kRead;
  base::Expected<base::Mapping> mapping = base::Mapping::OfFd(
      memory.fd, memory.offset - lead, static_cast<size_t>(*length), mode);
  if (!mapping.ok()) {
    absl::Status status = base::ToStatus(mapping.error());
    if (!writable || !absl::IsPermissionDenied(status)) return status;
    return base::Annotate(status,
                          "memory that the NPU is to write must be writable");
  }
  // Memory of ours has its pages by now: reading maps many of them at a time.
  RKNND_RETURN_IF_ERROR(base::ToStatus(
      mapping->Populate(memory.origin == driver::MemoryOrigin::kBrought
                            ? mode
                            : base::Mapping::Access::kRead)));
  std::span<std::byte> bytes =
      mapping->bytes().subspan(static_cast<size_t>(lead));
  base::UniqueFd dma_buf;
  if (is_dma_buf) {
    RKNND_ASSIGN_OR_RETURN(dma_buf,
                           base::ToStatusOr(base::Duplicate(memory.fd)));
  }
  return std::unique_ptr<driver::Memory>(new AttachedMemory(
      *std::move(mapping), bytes, std::move(dma_buf), memory, writable));
}

void AttachedMemory::Clear(uint64_t offset, uint64_t bytes) {
  const std::span<std::byte> rest = From(offset);
  const auto range =
      rest.first(static_cast<size_t>(std::min<uint64_t>(bytes, rest.size())));
  cleared_.store(true, std::memory_order_relaxed);
  (void)driver::Guarded(
      range, [range] { std::memset(range.data(), 0, range.size()); });
}

absl::Status AttachedMemory::CopyFrom(const driver::Memory& from,
                                      uint64_t from_offset, uint64_t offset,
                                      uint64_t bytes) {
  const std::span<const std::byte> source =
      static_cast<const AttachedMemory&>(from).From(from_offset);
  const std::span<std::byte> room = From(offset);
  const auto size = static_cast<size_t>(bytes);
  if (source.size() < size || room.size() < size || !writable_) {
    return absl::InvalidArgumentError(absl::StrCat(
        bytes, " bytes of an answer do not fit memory of ", bytes_.size(),
        " bytes from ", offset, writable_ ? "" : ", which is to read"));
  }
  const driver::CacheState::Range range{offset, offset + bytes};
  const bool sync = caches_.MustSync(driver::CpuAccess::kWrite,
                                     /*program_does=*/false, range);
  if (sync) {
    RKNND_RETURN_IF_ERROR(
        driver::BeginCpuAccess(dma_buf(), driver::CpuAccess::kWrite));
  }
  const std::span<std::byte> copy = room.first(size);
  const bool there = driver::Guarded(copy, [copy, source] {
    std::memcpy(copy.data(), source.data(), copy.size());
  });
  if (sync) {
    RKNND_RETURN_IF_ERROR(
        driver::EndCpuAccess(dma_buf(), driver::CpuAccess::kWrite));
  }
  if (!there) {
    caches_.Forget();
    return absl::DataLossError(
        "the memory of an output went away while it was written: its file was "
        "truncated or punched");
  }
  // As a job that wrote here: the software NPU is a CPU.
  caches_.Written(range);
  return absl::OkStatus();
}

}  // namespace rknnd::soft
