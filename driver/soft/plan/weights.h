// The weight memory of one model: constants and what kernels keep, written
// while the model is loaded and read-only from then on.

#ifndef DRIVER_SOFT_PLAN_WEIGHTS_H_
#define DRIVER_SOFT_PLAN_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mapping.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// Thread: the loading thread; after Seal() any, reading.
class ModelWeights final : public WeightStore {
 public:
  // The NPU's window for one address space; more cannot be loaded on a board.
  static constexpr uint64_t kMaxBytes = uint64_t{4} << 30;

  // `expected`: how much there will be, by a guess: saves mappings.
  explicit ModelWeights(uint64_t expected) : expected_(expected) {}

  absl::StatusOr<std::byte*> Reserve(size_t size) override;

  // The contents of a constant in this placement, stored once however many
  // nodes read them.
  absl::StatusOr<const std::byte*> Keep(
      const std::shared_ptr<const Constant>& constant, Placement placement);

  // No store from now on, not even by our own mistake.
  absl::Status Seal();

  // Bytes in use.
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  struct Kept {
    std::shared_ptr<const Constant> constant;  // so that its address stays its
    const std::byte* data = nullptr;
  };

  uint64_t expected_;
  uint64_t size_ = 0;
  std::vector<base::Mapping> mappings_;  // one, unless the guess was too small
  size_t used_ = 0;                      // of the last
  std::map<std::pair<const Constant*, int>, Kept> kept_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_WEIGHTS_H_
