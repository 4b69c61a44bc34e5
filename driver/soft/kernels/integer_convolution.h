// The arithmetic of quantised convolutions and products: 8-bit activations
// and weights known at load time, one rounding at the end.
//
//   out = round(activation((sum((x - x_zero) * (w - w_zero)) + bias) * scale))
//         + out_zero
//
// On oneDNN's integer kernels where the CPU has dot products of bytes (VNNI)
// and the weights are int8; elsewhere the same sums in floats: bytes on older
// CPUs' integer kernels saturate on the way. Floats hold integers exactly up
// to 2^24; a larger sum is off by less than 2^-23 of what is summed up, which
// is nothing in 8 bits. Where the sums themselves are the answer (int32) and
// may be that large, a plain loop on integers computes them
// (exact_convolution.h).
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_INTEGER_CONVOLUTION_H_
#define DRIVER_SOFT_KERNELS_INTEGER_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/soft/kernels/convolution_cut.h"
#include "driver/soft/kernels/onednn.h"
#include "driver/soft/kernels/operator.h"

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

class IntegerConvolution final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(
      const KernelRequest& request, IntegerConvolutionSpec spec);
  // The same in pieces for the cores of a gang.
  static absl::StatusOr<std::unique_ptr<Kernel>> MakeShared(
      const KernelRequest& request, IntegerConvolutionSpec spec);

  [[nodiscard]] size_t scratch_size() const override { return scratch_; }
  [[nodiscard]] bool reads_constant(size_t i) const override;
  absl::Status Run(std::span<const std::byte* const> inputs,
                   std::span<std::byte* const> outputs,
                   std::byte* scratch) const override;

 private:
  explicit IntegerConvolution(IntegerConvolutionSpec spec);

  static absl::StatusOr<std::unique_ptr<IntegerConvolution>> MakeWhole(
      const KernelRequest& request, IntegerConvolutionSpec spec);
  // A part of the pictures or of their rows, on the packed weights of `whole`.
  // UNIMPLEMENTED where oneDNN would compute it otherwise.
  static absl::StatusOr<std::unique_ptr<Kernel>> MakePiece(
      const KernelRequest& request, const IntegerConvolution& whole,
      const ConvolutionPiece& piece);

  // Throw dnnl::error and std::bad_alloc. False: no quick kernel. `whole`:
  // this is a piece of it.
  absl::StatusOr<bool> MakeInteger(const KernelRequest& request,
                                   const IntegerConvolution* whole = nullptr);
  absl::Status MakeFloat(const KernelRequest& request,
                         const IntegerConvolution* whole = nullptr);
  // Weights, bias and scales; or those of `whole`.
  absl::Status Pack(const KernelRequest& request,
                    const IntegerConvolution* whole, bool as_integers);
  absl::Status PackWeights(const KernelRequest& request,
                           const dnnl::memory::desc& wanted, bool as_integers);
  [[nodiscard]] bool FitsInt8() const;
  void SetPostOps(dnnl::primitive_attr& attributes) const;
  void Widen(const std::byte* input, int32_t zero, float* out) const;
  template <class T>
  void Finish(const float* sums, T* out) const;
  template <class T>
  void FinishRun(const float* sums, const float* scale, size_t step,
                 int64_t count, T* out) const;

  IntegerConvolutionSpec spec_;
  dnnl::memory::desc packed_desc_;  // of the weights
  std::string implementation_;      // oneDNN's name for it
  const std::byte* weights_ = nullptr;
  const std::byte* bias_ = nullptr;
  const float* scale_ = nullptr;  // of the float form
  std::optional<DnnlCall> call_;
  bool in_floats_ = false;
  bool rounds_ = false;  // the steps, which oneDNN leaves as floats
  bool flips_ = false;   // the signedness of what oneDNN gives
  size_t scratch_ = 0, input_at_ = 0, output_at_ = 0;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_INTEGER_CONVOLUTION_H_
