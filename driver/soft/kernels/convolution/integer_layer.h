// What the ways of computing a quantised convolution (integer_convolution.h)
// have in common: rows of the input brought into a band in the core's scratch,
// padding written out, and the way from sums to outputs.
//
//   IntegerTiles      sums of products of bytes         integer_tiles.cc
//   IntegerDepthwise  each channel by itself, in floats integer_depthwise.cc
//   IntegerWinograd   3x3 windows with a quarter of     integer_winograd.cc
//                     the products, in 16 bits
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_CONVOLUTION_INTEGER_LAYER_H_
#define DRIVER_SOFT_KERNELS_CONVOLUTION_INTEGER_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "driver/soft/kernels/convolution/integer_convolution.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/tiles/tile_kernels.h"
#include "driver/soft/tiles/window.h"

namespace rknnd::soft {

// Without arrays of channels. `behind`: alpha and beta of kClip in steps.
TileEpilogue EpilogueOf(DataType output, int32_t zero, const Epilogue& behind);

class IntegerLayer : public Kernel {
 public:
  [[nodiscard]] size_t scratch_size() const override { return scratch_; }
  [[nodiscard]] bool reads_constant(size_t i) const override {
    return i == 0 || input_zero_at_ == i;
  }
  [[nodiscard]] std::string implementation() const override;
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override;
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart({0, 1}, inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* scratch) const override;

 protected:
  // What a run works on.
  struct Work {
    const std::byte* input;
    std::byte* output;
    std::byte* scratch;
    int32_t zero;  // of the input
    Range blocks;  // of all groups' channels
  };

  // `form`: of the values in the band; floats are without their zero point.
  IntegerLayer(const IntegerConvolutionSpec& spec, CpuLevel level,
               TileForm form);

  // Before the first band.
  virtual void Prepare(const Work&) const {}
  virtual void RunBand(const BandRows& rows, const Work& work) const = 0;
  // What of the output channels is shared out as one.
  [[nodiscard]] virtual int64_t blocks() const { return 1; }

  // Room in the scratch, one behind the other; where it begins.
  size_t Reserve(size_t bytes);
  // Room for the band, where there is one, at the beginning of the scratch; and
  // for what comes of tensors that are not channels last.
  void ReserveBand(bool direct, size_t largest_block);
  // The weights, and scale and bias of each channel, the whole `repeats` times
  // (with `starts`, if any, behind them).
  absl::Status Keep(const KernelRequest& request,
                    const IntegerConvolutionSpec& spec, size_t weight_bytes,
                    absl::FunctionRef<void(std::byte*)> pack, int64_t repeats,
                    const std::vector<int32_t>& starts);

  // Writes the rows that `rows` need into the scratch, channels
  // [first, first + band_.channels) of the input's as far as there are any.
  void FillBand(const BandRows& rows, int64_t first, const Work& work) const;
  // Dense outputs are computed into `tile` and spread out from there.
  void Spread(const std::byte* tile, size_t count, int64_t number,
              int64_t channel, int64_t channels, std::byte* output) const;

  [[nodiscard]] size_t value_size() const { return SizeOf(form_); }
  // The zero point as the activations have it once they are in form.
  [[nodiscard]] int32_t ZeroInForm(int32_t zero) const;
  [[nodiscard]] int64_t input_plane() const {
    return window_.input[0] * window_.input[1] * window_.input[2];
  }
  // Of the first pixel of an output row, over all images.
  [[nodiscard]] int64_t NumberOf(const BandRows& rows) const {
    return ((rows.image * window_.output[0] + rows.depth) * window_.output[1] +
            rows.begin) *
           window_.output[2];
  }
  [[nodiscard]] TileEpilogue EpilogueAt(int64_t channel,
                                        const int32_t* start) const {
    TileEpilogue epilogue = epilogue_;
    epilogue.start = start == nullptr ? nullptr : start + channel;
    epilogue.bias += channel;
    epilogue.scale += channel;
    return epilogue;
  }

  const ByteKernels& loops_;
  const TileForm form_;
  TileWindow window_;
  const bool input_signed_, input_last_, output_last_;
  const int32_t input_zero_;
  const std::optional<size_t> input_zero_at_;
  Band band_;
  TileEpilogue epilogue_;  // of channel 0
  const std::byte* weights_ = nullptr;
  const int32_t* starts_ = nullptr;
  size_t tile_at_ = 0;  // in the scratch: what is to be spread out

 private:
  // Several rows for each of the cores that any SoC has, or nothing else.
  [[nodiscard]] bool ByRows() const;
  [[nodiscard]] int32_t ZeroAtRun(Inputs inputs) const;
  // `count` pixels of a row of the input to `to`, in form.
  void FillPixels(const std::byte* row, int64_t count, int64_t first,
                  const Work& work, std::byte* to) const;
  void FillPadding(int64_t pixels, const Work& work, std::byte* to) const;

  int64_t products_ = 0;
  size_t gather_at_ = 0, scratch_ = 0;
};

// Each makes its layer, or null where it is not for such a one.
MadeKernel MakeIntegerTiles(const KernelRequest& request,
                            const IntegerConvolutionSpec& spec, CpuLevel level);
MadeKernel MakeIntegerDepthwise(const KernelRequest& request,
                                const IntegerConvolutionSpec& spec,
                                CpuLevel level);
MadeKernel MakeIntegerWinograd(const KernelRequest& request,
                               const IntegerConvolutionSpec& spec,
                               CpuLevel level);

// How much of a picture is brought into form at once: a part of the
// second-level cache of any CPU, beside weights.
inline constexpr size_t kBandBytes = size_t{96} << 10;

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_CONVOLUTION_INTEGER_LAYER_H_
