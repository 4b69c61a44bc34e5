// A stretch of weight memory: a memfd of our own, mapped once, written while
// one model is loaded and read-only from then on. Pages that nothing uses any
// more go back to the system one by one.

#ifndef DRIVER_SOFT_PLAN_WEIGHT_CHUNK_H_
#define DRIVER_SOFT_PLAN_WEIGHT_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"

namespace rknnd::soft {

// Thread: the loading thread until Seal; then whoever holds the pool's lock.
class WeightChunk {
 public:
  // Its name in /proc/PID/smaps, "/memfd:rknnd-weights".
  static constexpr char kName[] = "rknnd-weights";

  // Address space for `bytes`; memory is taken by TakeTo.
  static absl::StatusOr<std::unique_ptr<WeightChunk>> Make(uint64_t bytes);

  // Takes memory for the first `end` bytes, so that writing them cannot fail.
  absl::Status TakeTo(size_t end);
  // No store from now on; what lies past `end` is given back.
  absl::Status Seal(size_t end);

  // So much is used, once more and once less. Of the latter's pages those that
  // nobody uses are given back.
  void Use(size_t offset, size_t size);
  void Drop(size_t offset, size_t size);

  [[nodiscard]] std::byte* data() const { return mapping_.data(); }
  [[nodiscard]] size_t size() const { return mapping_.size(); }
  // Memory it holds, once sealed.
  [[nodiscard]] uint64_t held() const { return held_; }
  [[nodiscard]] bool used() const { return uses_ > 0; }

 private:
  WeightChunk(base::UniqueFd fd, base::Mapping mapping);

  const base::UniqueFd fd_;
  base::Mapping mapping_;
  size_t taken_ = 0;
  uint64_t held_ = 0;
  uint64_t uses_ = 0;
  std::vector<uint32_t> page_uses_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_WEIGHT_CHUNK_H_
