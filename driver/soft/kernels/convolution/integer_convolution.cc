// See integer_convolution.h.

#include "driver/soft/kernels/convolution/integer_convolution.h"

#include "base/status/status.h"
#include "driver/soft/kernels/convolution/integer_layer.h"

namespace rknnd::soft {

MadeKernel MakeIntegerConvolution(const KernelRequest& request,
                                  const IntegerConvolutionSpec& spec,
                                  CpuLevel level) {
  for (const auto make : {MakeIntegerDepthwise, MakeIntegerWinograd}) {
    RKNND_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> layer,
                           make(request, spec, level));
    if (layer != nullptr) return layer;
  }
  return MakeIntegerTiles(request, spec, level);
}

}  // namespace rknnd::soft
