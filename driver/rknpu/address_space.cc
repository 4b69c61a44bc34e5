#include "driver/rknpu/address_space.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rknnd::rknpu {
namespace {

constexpr uint64_t kPage = 4096;
// Address 0 means that nobody has set one.
constexpr uint64_t kFirst = uint64_t{1} << 20;
constexpr uint64_t kEnd = uint64_t{1} << 32;

}  // namespace

absl::StatusOr<uint64_t> AddressSpace::Take(uint64_t bytes) {
  // Nothing has a place of its own, too.
  bytes = std::clamp<uint64_t>(bytes, 1, kEnd);
  const uint64_t size = (bytes + kPage - 1) / kPage * kPage;
  base::MutexLock lock(mutex_);
  uint64_t first = kFirst;
  for (const auto& [begin, end] : taken_) {
    if (begin - first >= size) break;
    first = end;
  }
  if (size > kEnd - first) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the NPU's 4 GiB of addresses have no room for ", bytes, " bytes"));
  }
  taken_[first] = first + size;
  return first;
}

void AddressSpace::GiveBack(uint64_t address) {
  base::MutexLock lock(mutex_);
  taken_.erase(address);
}

}  // namespace rknnd::rknpu
