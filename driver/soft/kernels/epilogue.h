// What fusion has put behind a heavy operator, as far as oneDNN does not do it:
// the addition of one more tensor, then an activation, over the output while
// it is still in the cache.
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_EPILOGUE_H_
#define DRIVER_SOFT_KERNELS_EPILOGUE_H_

#include <cstddef>
#include <dnnl.hpp>

#include "absl/status/status.h"
#include "driver/soft/kernels/elementwise/activation.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/tiles/tile_kernels.h"

namespace rknnd::soft {

class EpilogueStep {
 public:
  explicit EpilogueStep(const KernelRequest& request);

  // That the added tensor looks like the output.
  static absl::Status Check(const KernelRequest& request);

  [[nodiscard]] bool adds() const { return adds_; }
  // Position of the added tensor among the kernel's inputs.
  [[nodiscard]] size_t add_index() const { return add_index_; }

  // Hands the activation to oneDNN where its own is as quick as ours. Its Relu
  // and Clip make 0, or the lower bound, of what is no number, ours leave it:
  // a pass of ours over the output behind it takes yunet a fifth of its time.
  void MoveActivationTo(dnnl::post_ops& post_ops);

  // Likewise to a tile's rounding, where nothing is added before it.
  void MoveActivationTo(TileEpilogue& epilogue);
  // Whether something is left to do.
  [[nodiscard]] bool has_rest() const {
    return adds_ || activation_ != nullptr;
  }

  // The activation that is left; of a part of the output where one is named.
  void Activate(float* output) const;
  void Activate(float* output, Range elements) const;
  // output += added, of a part of the output.
  static void Add(const float* added, float* output, Range elements);

 private:
  bool adds_ = false;
  size_t add_index_ = 0;
  TensorSpec output_;
  int64_t count_ = 0;
  FloatLoop activation_ = nullptr;
  Activation kind_ = Activation::kNone;
  float alpha_ = 0.0F, beta_ = 0.0F;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_EPILOGUE_H_
