// See access.h.

#include "driver/rknpu/emulator/access.h"

#include "absl/strings/str_cat.h"
#include "driver/rknpu/registers/registers.h"

namespace rknnd::rknpu {

Access::Access(const Memory& memory, const RunOptions& options)
    : memory_(memory), options_(options) {
  for (const Region& region : memory.regions()) total_ += region.bytes.size();
}

const std::byte* Access::Read(uint64_t address, uint64_t size, uint16_t reg) {
  if (last_read_ != nullptr) {
    if (const std::byte* at = last_read_->At(address, size)) return at;
  }
  const Region* const region = memory_.Find(address, size);
  if (region == nullptr) {
    Fail(Outside("reads", address, size, reg));
    return nullptr;
  }
  last_read_ = region;
  return region->At(address, size);
}

std::byte* Access::Write(uint64_t address, uint64_t size, uint16_t reg) {
  if (last_written_ != nullptr) {
    if (std::byte* at = last_written_->At(address, size)) return at;
  }
  const Region* const region = memory_.Find(address, size);
  if (region == nullptr || !region->writable) {
    Fail(Outside("writes", address, size, reg));
    return nullptr;
  }
  last_written_ = region;
  return region->At(address, size);
}

std::byte* Access::Whole(int64_t address, uint64_t size, bool write) const {
  if (address < 0 || size == 0) return nullptr;
  const auto at = static_cast<uint64_t>(address);
  const Region* const region = memory_.Find(at, size);
  if (region == nullptr || (write && !region->writable)) return nullptr;
  return region->At(at, size);
}

bool Access::GoesOn() {
  const auto raised = [](const std::atomic<bool>* flag) {
    return flag != nullptr && flag->load(std::memory_order_relaxed);
  };
  if (raised(options_.stop) || raised(options_.stop_too)) {
    Fail(absl::CancelledError("the job was stopped"));
  }
  return ok();
}

void Access::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

bool Access::Holds(uint64_t bytes, uint16_t reg) {
  if (bytes <= total_) return true;
  Fail(absl::OutOfRangeError(absl::StrCat(NameOf(reg), " asks for ", bytes,
                                          " bytes; the job's memory has ",
                                          total_)));
  return false;
}

absl::Status Access::Outside(absl::string_view what, uint64_t address,
                             uint64_t size, uint16_t reg) const {
  const Region* const region = memory_.Find(address, size);
  return absl::OutOfRangeError(absl::StrCat(
      what, " ", size, " bytes at 0x", absl::Hex(address), " by ", NameOf(reg),
      region == nullptr ? ": not inside the job's memory"
                        : ": this memory may only be read"));
}

}  // namespace rknnd::rknpu
