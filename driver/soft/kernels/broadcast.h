// The loop behind all operators of two inputs that broadcast as numpy does.
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_BROADCAST_H_
#define DRIVER_SOFT_KERNELS_BROADCAST_H_

#include <cstdint>

#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// The shapes of two inputs as they broadcast: before opset 7 the second one's
// axes lay where `axis` said, from then on at the end.
struct OperandShapes {
  Shape a, b, output;
};
absl::StatusOr<OperandShapes> BroadcastOperands(const NodeView& node);

// Blocked when each input is blocked alike or is a single number.
bool MayBlockBroadcast(const NodeView& node, size_t i, int block);

// The loop over the request's two inputs and its output, blocked or dense.
absl::StatusOr<StridedLoop<3>> LoopOver(const KernelRequest& request);

// out = function(a, b) over a loop of LoopOver. The common forms of the
// innermost run are spelt out so that they are vectorised.
template <class T, class R, class F>
void RunBinary(const StridedLoop<3>& loop, const T* a, const T* b, R* out,
               F function) {
  const auto& step = loop.inner_strides();
  const int64_t step_a = step[0], step_b = step[1], step_out = step[2];
  if (step_a == 1 && step_b == 1 && step_out == 1) {
    loop.Run([&](const auto& at, int64_t n) {
      const T* x = a + at[0];
      const T* y = b + at[1];
      R* to = out + at[2];
      for (int64_t i = 0; i < n; ++i) to[i] = function(x[i], y[i]);
    });
  } else if (step_a == 1 && step_b == 0 && step_out == 1) {
    loop.Run([&](const auto& at, int64_t n) {
      const T* x = a + at[0];
      const T y = b[at[1]];
      R* to = out + at[2];
      for (int64_t i = 0; i < n; ++i) to[i] = function(x[i], y);
    });
  } else {
    loop.Run([&](const auto& at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        out[at[2] + i * step_out] =
            function(a[at[0] + i * step_a], b[at[1] + i * step_b]);
      }
    });
  }
}

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_BROADCAST_H_
