// A matrix product as the software NPU holds it: a model without weights, with
// a program for each listed shape. Its inputs are A, B and, where the result
// depends on them, the scales (matmul_spec.h); its output is C.
//
// Thread: Load on any; immutable afterwards.

#ifndef DRIVER_SOFT_MATMUL_MATMUL_MODEL_H_
#define DRIVER_SOFT_MATMUL_MATMUL_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/device.h"
#include "driver/matmul/matmul_spec.h"
#include "driver/soft/gang.h"
#include "driver/soft/kernels/stop.h"
#include "driver/soft/matmul/matmul_kernel.h"
#include "driver/soft/soc.h"
#include "driver/soft/timing/layer_cost.h"

namespace rknnd::soft {

class MatmulModel final : public driver::Model {
 public:
  // Of bytes that matmul::IsSpec() knows; not trusted.
  static absl::StatusOr<std::unique_ptr<MatmulModel>> Load(
      const driver::LoadRequest& request, const SocProfile& soc);

  [[nodiscard]] const driver::ModelInfo& info() const override { return info_; }
  // Each matrix as it is described, and in no other way.
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t program, driver::Direction direction, uint32_t index,
      const driver::TensorFormat& format) const override;

  // Of each core that computes.
  [[nodiscard]] size_t scratch_size() const;
  [[nodiscard]] const std::vector<LayerTime>& times(uint32_t program) const {
    return programs_[program].times;
  }
  absl::Status Run(const driver::JobRequest& job, Gang& gang,
                   const StopSignal& stop, const base::Clock& clock) const;

 private:
  struct Program {
    MatmulKernel kernel;
    std::vector<LayerTime> times;  // one
  };

  MatmulModel() = default;
  void AddProgram(const matmul::Spec& spec, const matmul::Shape& shape,
                  const SocProfile& soc);

  driver::ModelInfo info_;
  std::vector<Program> programs_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_MATMUL_MATMUL_MODEL_H_
