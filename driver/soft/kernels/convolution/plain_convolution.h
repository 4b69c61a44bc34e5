// A convolution by loops that any compiler makes for any CPU, of any groups,
// axes and placement, with weights that come with each run. For those that take
// so long in oneDNN's own loops that their job could not be stopped (stop.h),
// and that cannot be cut: slow either way, and reported as such.
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_CONVOLUTION_PLAIN_CONVOLUTION_H_
#define DRIVER_SOFT_KERNELS_CONVOLUTION_PLAIN_CONVOLUTION_H_

#include <cstdint>
#include <memory>

#include "driver/soft/kernels/convolution/window.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// One to three spatial axes.
std::unique_ptr<Kernel> MakePlainConvolution(const KernelRequest& request,
                                             const Window& window,
                                             int64_t groups);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_CONVOLUTION_PLAIN_CONVOLUTION_H_
