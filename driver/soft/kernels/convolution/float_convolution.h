// Convolutions of floats on loops of our own (driver/soft/tiles), for what
// oneDNN has no kernel made for this CPU: channels too few, kernels too wide,
// CPUs that are no x86; and transposed convolutions everywhere, each of which
// is as many convolutions as its strides have positions.
//
// Several convolutions ("phases") of one input may fill one output, each its
// own pixels of it: every output_steps-th from output_first on, along each
// axis.
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_CONVOLUTION_FLOAT_CONVOLUTION_H_
#define DRIVER_SOFT_KERNELS_CONVOLUTION_FLOAT_CONVOLUTION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::soft {

struct ConvolutionPhase {
  Shape kernel, strides, dilations;
  // Pixels that the first window begins before the input; below zero, behind
  // its first pixel.
  Shape pads;
  Shape outputs;  // pixels of the output that it makes
  Shape output_steps;
  // Several where windows alike make different pixels, which only a layer of
  // one group may have: its weights are then those of so many times the
  // channels.
  std::vector<Shape> output_first;
  // Output channels, inputs of a group, kernel. Empty in a compiled model.
  std::vector<float> weights;
};

struct FloatConvolutionSpec {
  TensorSpec input, output;  // floats, in any placement, of 3 to 5 axes
  int64_t groups = 1;
  std::vector<float> bias;  // of each output channel; empty: none
  std::vector<ConvolutionPhase> phases;
};

// What the node's epilogue adds and applies is done, too. `level` as of
// MakeIntegerConvolution.
absl::StatusOr<std::unique_ptr<Kernel>> MakeFloatConvolution(
    const KernelRequest& request, const FloatConvolutionSpec& spec,
    CpuLevel level = CurrentCpuLevel());

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_CONVOLUTION_FLOAT_CONVOLUTION_H_
