// The weight memory of one model: constants and what kernels keep, written
// while the model is loaded and read-only from then on.

#ifndef DRIVER_SOFT_PLAN_WEIGHTS_H_
#define DRIVER_SOFT_PLAN_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
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

  absl::StatusOr<const std::byte*> Store(
      size_t bytes, absl::FunctionRef<void(std::byte*)> fill) override;

  // The contents of a constant in this placement.
  absl::StatusOr<const std::byte*> Keep(const Constant& constant,
                                        Placement placement);

  // No store from now on, not even by our own mistake; what was mapped and not
  // needed is given back.
  absl::Status Seal();

  // Bytes mapped.
  [[nodiscard]] uint64_t size() const;

 private:
  // Room of `size` bytes, taken only when `used_` moves past it.
  absl::StatusOr<std::byte*> Room(size_t size);
  absl::Status TrimLast();

  uint64_t expected_;
  std::vector<base::Mapping> mappings_;  // one, unless the guess was too small
  size_t used_ = 0;                      // of the last
  // All that is stored. Absl's hash has a seed: a file cannot make them
  // collide.
  std::unordered_set<std::string_view, absl::Hash<std::string_view>> contents_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_WEIGHTS_H_
