// Where jobs may wait, by the cores that they ask for. A share has a line in
// each lane for each class; the scheduler compares the lines of a lane.

#ifndef DAEMON_CORE_ACCOUNTS_LANES_H_
#define DAEMON_CORE_ACCOUNTS_LANES_H_

#include <bit>
#include <cstdint>

#include "daemon/core/terms/types.h"

namespace rknnd::core {

// The core masks there are: each core, any core, gangs of the first two cores
// and more.
class Lanes {
 public:
  explicit Lanes(uint32_t cores) : cores_(cores) {}
  [[nodiscard]] uint32_t count() const { return cores_ + 1 + (cores_ - 1); }
  [[nodiscard]] uint32_t Of(const CoreChoice& choice) const {
    if (choice.gang) {
      return cores_ - 1 + static_cast<uint32_t>(std::popcount(choice.cores));
    }
    return std::has_single_bit(choice.cores)
               ? static_cast<uint32_t>(std::countr_zero(choice.cores))
               : any();
  }
  [[nodiscard]] uint32_t any() const { return cores_; }
  [[nodiscard]] uint32_t first_gang() const { return cores_ + 1; }
  [[nodiscard]] bool IsGang(uint32_t lane) const { return lane > cores_; }
  // The cores that a job of `lane` may run on, or takes.
  [[nodiscard]] uint32_t MaskOf(uint32_t lane) const {
    if (lane < cores_) return uint32_t{1} << lane;
    const uint32_t cores = lane == cores_ ? cores_ : lane - cores_ + 1;
    return AllCores(cores);
  }

 private:
  uint32_t cores_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ACCOUNTS_LANES_H_
