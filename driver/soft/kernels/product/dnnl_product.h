// A product of floats on oneDNN, with constant right-hand sides packed once.
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_PRODUCT_DNNL_PRODUCT_H_
#define DRIVER_SOFT_KERNELS_PRODUCT_DNNL_PRODUCT_H_

#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/kernels/product/product.h"

namespace rknnd::soft {

// UNIMPLEMENTED: `has_own` says that tiles of ours can do it, and oneDNN has no
// kernel made for this CPU.
MadeKernel MakeDnnlProduct(const KernelRequest& request, const Product& product,
                           bool has_own);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_PRODUCT_DNNL_PRODUCT_H_
