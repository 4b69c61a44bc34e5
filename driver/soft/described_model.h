// A model that answers queries and runs no job: a compiled file, given to the
// software NPU. Its info says why (ModelInfo::runnable).

#ifndef DRIVER_SOFT_DESCRIBED_MODEL_H_
#define DRIVER_SOFT_DESCRIBED_MODEL_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "driver/device.h"

namespace rknnd::soft {

// Thread: any; immutable.
class DescribedModel final : public driver::Model {
 public:
  explicit DescribedModel(driver::ModelInfo info) : info_(std::move(info)) {}

  [[nodiscard]] const driver::ModelInfo& info() const override { return info_; }
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t /*program*/, driver::Direction /*direction*/, uint32_t /*index*/,
      const driver::TensorFormat& /*format*/) const override {
    return info_.runnable;
  }

 private:
  const driver::ModelInfo info_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_DESCRIBED_MODEL_H_
