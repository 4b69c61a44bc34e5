// Who holds the NPU's SRAM. A context opened with RKNN_FLAG_ENABLE_SRAM takes
// what its model can use of what is left, in whole pages, and keeps it until it
// is destroyed; first come, first served, as on the board.
//
// Thread: loop.

#ifndef DAEMON_CORE_SRAM_H_
#define DAEMON_CORE_SRAM_H_

#include <cstdint>
#include <memory>

namespace rknnd::core {

// Bytes of SRAM that one context holds; given back when destroyed.
class SramLease {
 public:
  SramLease() = default;
  SramLease(SramLease&& other) noexcept;
  SramLease& operator=(SramLease&& other) noexcept;
  SramLease(const SramLease&) = delete;
  SramLease& operator=(const SramLease&) = delete;
  ~SramLease();

  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  friend class Sram;
  SramLease(std::shared_ptr<uint64_t> free, uint64_t bytes);

  std::shared_ptr<uint64_t> free_;
  uint64_t bytes_ = 0;
};

class Sram {
 public:
  explicit Sram(uint64_t total);

  // As much of `wanted` as is free.
  SramLease Take(uint64_t wanted);
  [[nodiscard]] uint64_t free() const { return *free_; }

 private:
  std::shared_ptr<uint64_t> free_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SRAM_H_
