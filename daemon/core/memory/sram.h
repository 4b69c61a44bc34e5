// Who holds the NPU's SRAM, page by page:
//
//   own      a context opened with RKNN_FLAG_ENABLE_SRAM, and a buffer made
//            with RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM: until it is destroyed; first
//            come, first served, as on the board
//   shared   contexts opened with RKNN_FLAG_SHARE_SRAM as well take turns in
//            one window of the core they run on, as large as the most that any
//            of them could use. One that runs on any of several cores has a
//            window on each, and plans with the smallest. Windows are fitted
//            again whenever somebody comes, moves or goes.
//
// Planned, not touched: no byte of a job lies here (driver/soft/plan/sram_plan
// says so), hence windows may move while jobs run.
//
// Where a kernel's driver has SRAM to give (DeviceInfo::core_sram), it holds
// the start of each core's internal memory, for whatever runs there. Then a
// core's window is what its arena got, every context has a turn in it, and
// there is nothing for buffers.

#ifndef DAEMON_CORE_MEMORY_SRAM_H_
#define DAEMON_CORE_MEMORY_SRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/core/terms/types.h"

namespace rknnd::core {

class SramBook;

// Bytes that follow each other in SRAM, whole pages.
struct SramWindow {
  uint64_t offset = 0, bytes = 0;
};

// What one holder has; given back when destroyed. Empty: nothing.
// Thread: any, one at a time.
class SramLease {
 public:
  SramLease() = default;
  SramLease(SramLease&& other) noexcept;
  SramLease& operator=(SramLease&& other) noexcept;
  SramLease(const SramLease&) = delete;
  SramLease& operator=(const SramLease&) = delete;
  ~SramLease();

  // What its holder plans with, as things are now. Shared: the smallest window
  // of its cores.
  [[nodiscard]] SramWindow window() const;
  [[nodiscard]] uint64_t bytes() const { return window().bytes; }
  // Whose windows it has; 0: it has one of its own.
  [[nodiscard]] uint32_t cores() const;

  // Its holder's jobs run on these from now on. Nothing to one of its own.
  void Move(uint32_t cores);

 private:
  friend class Sram;
  SramLease(std::shared_ptr<SramBook> book, uint64_t id);

  std::shared_ptr<SramBook> book_;
  uint64_t id_ = 0;
};

// Thread: any. Its lock is a leaf.
class Sram {
 public:
  // `total` bytes, of which only whole pages count. `core_part`:
  // DeviceInfo::core_sram.
  explicit Sram(uint64_t total, uint64_t core_part = 0);

  // So many bytes hold the start of the core's internal memory now. Nothing
  // where SRAM is only planned.
  void BackCore(uint32_t core, uint64_t bytes);

  // A window for `wanted` bytes, or the largest there is. Empty when there is
  // none. `holder` is what reports call it.
  SramLease Take(uint64_t wanted, std::string holder);
  // The same, whole or not at all.
  SramLease TakeWhole(uint64_t wanted, std::string holder);
  // A turn in the windows of `cores`, of which `wanted` bytes are of use.
  SramLease Share(uint64_t wanted, uint32_t cores);

  // The sum over all gaps.
  [[nodiscard]] uint64_t free() const;
  // Everybody's, by offset. What they save is for the sessions to say.
  [[nodiscard]] std::vector<SramReport::Window> windows() const;

 private:
  const std::shared_ptr<SramBook> book_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MEMORY_SRAM_H_
