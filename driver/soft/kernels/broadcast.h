// The loop behind all operators of two inputs that broadcast as numpy does.
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_BROADCAST_H_
#define DRIVER_SOFT_KERNELS_BROADCAST_H_

#include <cstdint>
#include <type_traits>

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

// out = function(a, b) over a loop of LoopOver, or some of its elements. The
// common forms of the innermost run are spelt out for floats, so that they are
// vectorised.
template <class T, class R, class F>
void RunBinary(const StridedLoop<3>& loop, Range elements, const T* a,
               const T* b, R* out, F function) {
  const auto& step = loop.inner_strides();
  loop.Run(elements, [&](const auto& at, int64_t n) {
    const T* x = a + at[0];
    const T* y = b + at[1];
    R* to = out + at[2];
    if constexpr (std::is_same_v<T, float> && std::is_same_v<R, float>) {
      if (step[0] == 1 && step[1] == 1 && step[2] == 1) {
        for (int64_t i = 0; i < n; ++i) to[i] = function(x[i], y[i]);
        return;
      }
      if (step[0] == 1 && step[1] == 0 && step[2] == 1) {
        const T one = *y;  // which the output might overwrite, to a compiler
        for (int64_t i = 0; i < n; ++i) to[i] = function(x[i], one);
        return;
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      to[i * step[2]] = function(x[i * step[0]], y[i * step[1]]);
    }
  });
}

template <class T, class R, class F>
void RunBinary(const StridedLoop<3>& loop, const T* a, const T* b, R* out,
               F function) {
  RunBinary(loop, Range{0, loop.elements()}, a, b, out, function);
}

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_BROADCAST_H_
