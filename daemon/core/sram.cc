#include "daemon/core/sram.h"

#include <algorithm>
#include <utility>

#include "driver/device.h"

namespace rknnd::core {

SramLease::SramLease(std::shared_ptr<uint64_t> free, uint64_t bytes)
    : free_(std::move(free)), bytes_(bytes) {}

SramLease::SramLease(SramLease&& other) noexcept
    : free_(std::move(other.free_)), bytes_(std::exchange(other.bytes_, 0)) {}

SramLease& SramLease::operator=(SramLease&& other) noexcept {
  std::swap(free_, other.free_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SramLease::~SramLease() {
  if (free_ != nullptr) *free_ += bytes_;
}

Sram::Sram(uint64_t total) : free_(std::make_shared<uint64_t>(total)) {}

SramLease Sram::Take(uint64_t wanted) {
  const uint64_t pages =
      wanted / driver::kSramPage + (wanted % driver::kSramPage == 0 ? 0 : 1);
  const uint64_t there = *free_ / driver::kSramPage;
  const uint64_t bytes = std::min(pages, there) * driver::kSramPage;
  *free_ -= bytes;
  return SramLease(free_, bytes);
}

}  // namespace rknnd::core
