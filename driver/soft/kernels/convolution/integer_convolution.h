// The arithmetic of quantised convolutions and products: 8-bit activations
// and weights known at load time, sums exact in 32 bits (which wrap, as ONNX's
// do), one rounding at the end.
//
//   out = round(activation((sum((x - x_zero) * (w - w_zero)) + bias) * scale))
//         + out_zero
//
// On loops of our own for every CPU (driver/soft/tiles), the same to the bit on
// all of them:
//
//   input ──▶ band: rows in the form that the CPU multiplies, padding written
//             out, as much as stays in a core's cache
//         ──▶ tiles: pixels of the band by blocks of output channels, rounded
//             while in registers ──▶ output
//
// Layers of single channels and windows of 3x3 have loops of their own
// (integer_layer.h).
//
// Cores of a gang share out rows of the output, or its channels where there are
// few rows; the sums are exact, so the bits are the same however they do.
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_CONVOLUTION_INTEGER_CONVOLUTION_H_
#define DRIVER_SOFT_KERNELS_CONVOLUTION_INTEGER_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::soft {

struct IntegerConvolutionSpec {
  // Dense or channels last. The output is 8-bit, int32 or float32.
  TensorSpec input, output;
  int64_t groups = 1;
  Shape weights_shape;           // output channels, inputs of a group, kernel
  std::vector<int16_t> weights;  // minus their zero points
  Shape strides, dilations, pads_begin, pads_end;
  int32_t input_zero = 0;
  // Position of the kernel's input that holds the zero point, where that is
  // known only at run time.
  std::optional<size_t> input_zero_at;
  // From sums to steps of the output: one, or one for each output channel.
  std::vector<float> scale = {1.0F};
  std::vector<float> bias;  // in units of the sums; empty: none
  int32_t output_zero = 0;
  // kNone, kRelu, kLeakyRelu or kClip; alpha and beta of kClip in steps.
  Epilogue epilogue;
};

// `level`: what it is computed with; tests try all that the CPU has.
absl::StatusOr<std::unique_ptr<Kernel>> MakeIntegerConvolution(
    const KernelRequest& request, const IntegerConvolutionSpec& spec,
    CpuLevel level = CurrentCpuLevel());

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_CONVOLUTION_INTEGER_CONVOLUTION_H_
