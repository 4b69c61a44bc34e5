// Activations: as operators of their own, and behind a convolution or a matrix
// product where fusion put them. Vectorised for the CPU at hand.
//
// Thread: any.

#ifndef DRIVER_SOFT_KERNELS_ELEMENTWISE_ACTIVATION_H_
#define DRIVER_SOFT_KERNELS_ELEMENTWISE_ACTIVATION_H_

#include <cstdint>

#include "driver/soft/graph/graph.h"

namespace rknnd::soft {

using FloatLoop = void (*)(const float* in, float* out, int64_t n, float alpha,
                           float beta);

// `in` may be `out`. Never null but for kNone.
FloatLoop LoopOf(Activation activation);

// The same functions where there is no Activation for them.
FloatLoop ExpLoop();
FloatLoop ErfLoop();

// Whether 0 becomes 0, so that the padding of a blocked tensor stays as it is.
bool KeepsZero(Activation activation, float alpha, float beta);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_ELEMENTWISE_ACTIVATION_H_
