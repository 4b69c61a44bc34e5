// The weight memory of one model: constants and what kernels keep, written
// while the model is loaded and read-only from then on. What another loaded
// model has already is used there (weight_pool.h).

#ifndef DRIVER_SOFT_PLAN_WEIGHTS_H_
#define DRIVER_SOFT_PLAN_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/plan/weight_chunk.h"
#include "driver/soft/plan/weight_pool.h"

namespace rknnd::soft {

// Thread: the loading thread; after Seal() any, reading.
class ModelWeights final : public WeightStore {
 public:
  // The NPU's window for one address space; more cannot be loaded on a board.
  static constexpr uint64_t kMaxBytes = uint64_t{4} << 30;

  // `expected`: how much there will be, by a guess: saves mappings. Others find
  // in `pool` what this model brings; it takes from there what is alike if it
  // `shares`.
  ModelWeights(uint64_t expected, std::shared_ptr<WeightPool> pool,
               bool shares = true);
  // Of a model that shares with none.
  explicit ModelWeights(uint64_t expected);
  ~ModelWeights();
  ModelWeights(const ModelWeights&) = delete;
  ModelWeights& operator=(const ModelWeights&) = delete;

  absl::StatusOr<const std::byte*> Store(
      size_t bytes, absl::FunctionRef<void(std::byte*)> fill) override;

  // The contents of a constant in this placement.
  absl::StatusOr<const std::byte*> Keep(const Constant& constant,
                                        Placement placement);

  // No store from now on, not even by our own mistake; what was taken and not
  // needed is given back, and others may find what is here.
  absl::Status Seal();

  // Bytes the model needs, in whole pages, wherever they are.
  [[nodiscard]] uint64_t size() const;
  // Bytes of the device that it pays for.
  [[nodiscard]] uint64_t held() const { return pool_->HeldBy(user_); }
  // All that is stored, in the order it came: the same for the same model,
  // whatever it shares. One behind the other, each at the next multiple of
  // kAlignment, they have at most size() bytes.
  [[nodiscard]] std::span<const std::string_view> pieces() const {
    return pieces_;
  }
  static constexpr size_t kAlignment = 64;

 private:
  // Room of `size` bytes, taken only when `used_` moves past it.
  absl::StatusOr<std::byte*> Room(size_t size);
  absl::Status FinishChunk();

  const uint64_t expected_;
  const std::shared_ptr<WeightPool> pool_;
  const WeightPool::User user_;
  const bool shares_;
  // What is being written: one chunk, unless the guess was too small. The
  // places of what it holds follow each other.
  std::unique_ptr<WeightChunk> chunk_;
  std::vector<WeightPool::Place> places_;
  size_t used_ = 0;  // of it
  // Chunks that are full wait for Seal: nobody may find what a model that fails
  // to load has brought.
  struct Full {
    std::unique_ptr<WeightChunk> chunk;
    std::vector<WeightPool::Place> places;
  };
  std::vector<Full> full_;
  std::vector<WeightPool::Piece*> used_pieces_;  // of the pool
  uint64_t needed_ = 0;
  std::vector<std::string_view> pieces_;
  // Likewise. Absl's hash has a seed: a file cannot make them collide.
  std::unordered_set<std::string_view, absl::Hash<std::string_view>> contents_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_WEIGHTS_H_
