// See memory.h.

#include "driver/rknpu/emulator/memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rknnd::rknpu {
namespace {

constexpr uint64_t kEnd = uint64_t{1} << 32;

bool Before(const Region& region, uint64_t address) {
  return region.address < address;
}

}  // namespace

absl::Status Memory::Attach(const Region& region) {
  const uint64_t size = region.bytes.size();
  if (size == 0 || size > kEnd || region.address > kEnd - size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a range of ", size, " bytes at 0x", absl::Hex(region.address),
        " is not inside the NPU's 4 GiB"));
  }
  const auto at = std::lower_bound(regions_.begin(), regions_.end(),
                                   region.address, Before);
  const bool meets_next =
      at != regions_.end() && at->address < region.address + size;
  const bool meets_last =
      at != regions_.begin() &&
      (at - 1)->address + (at - 1)->bytes.size() > region.address;
  if (meets_next || meets_last) {
    return absl::AlreadyExistsError(
        absl::StrCat("a range of ", size, " bytes at 0x",
                     absl::Hex(region.address), " overlaps another"));
  }
  regions_.insert(at, region);
  return absl::OkStatus();
}

absl::Status Memory::Detach(uint64_t address) {
  const auto at =
      std::lower_bound(regions_.begin(), regions_.end(), address, Before);
  if (at == regions_.end() || at->address != address) {
    return absl::NotFoundError(
        absl::StrCat("no range begins at 0x", absl::Hex(address)));
  }
  regions_.erase(at);
  return absl::OkStatus();
}

const Region* Memory::Find(uint64_t address, uint64_t size) const {
  auto at = std::upper_bound(regions_.begin(), regions_.end(), address,
                             [](uint64_t wanted, const Region& region) {
                               return wanted < region.address;
                             });
  if (at == regions_.begin()) return nullptr;
  --at;
  return at->At(address, size) == nullptr ? nullptr : &*at;
}

const std::byte* Memory::Readable(uint64_t address, uint64_t size) const {
  const Region* const region = Find(address, size);
  return region == nullptr ? nullptr : region->At(address, size);
}

std::byte* Memory::Writable(uint64_t address, uint64_t size) const {
  const Region* const region = Find(address, size);
  return region == nullptr || !region->writable ? nullptr
                                                : region->At(address, size);
}

}  // namespace rknnd::rknpu
