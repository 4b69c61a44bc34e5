// Convolutions whose int32 sums are the answer: modulo 2^32, however large.
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_EXACT_CONVOLUTION_H_
#define DRIVER_SOFT_KERNELS_EXACT_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "driver/soft/kernels/integer_convolution.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// Of `spec`, whose output is int32; scale, bias and epilogue are not read.
absl::StatusOr<std::unique_ptr<Kernel>> MakeExactConvolution(
    const KernelRequest& request, IntegerConvolutionSpec spec);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_EXACT_CONVOLUTION_H_
