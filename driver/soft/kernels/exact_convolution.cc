// See exact_convolution.h. A plain loop: such sums are rare, and bytes add up
// quickly where the channels lie together.

#include "driver/soft/kernels/exact_convolution.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status/status.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

constexpr int64_t kOutside = -1;

// `x` moves by `step` with the weights.
template <class T>
uint32_t Dot(const T* x, int64_t step, const int16_t* w, int64_t count,
             int32_t zero) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += static_cast<uint32_t>((x[i * step] - zero) * w[i]);
  }
  return sum;
}

class ExactConvolution final : public Kernel {
 public:
  // `weights`: output channels, kernel, inputs of a group.
  ExactConvolution(IntegerConvolutionSpec spec, const int16_t* weights)
      : spec_(std::move(spec)), weights_(weights) {
    const Shape& shape = spec_.weights_shape;
    taps_ = ProductOf(shape, 2, shape.size());
    each_ = shape[1];
  }

  [[nodiscard]] size_t scratch_size() const override {
    return static_cast<size_t>(taps_) * sizeof(int64_t);
  }
  [[nodiscard]] bool reads_constant(size_t i) const override {
    return i == 0 || spec_.input_zero_at == i;
  }

  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    spec_.input.type == DataType::kInt8
        ? Sum<int8_t>(inputs, As<int32_t>(outputs[0]), As<int64_t>(scratch))
        : Sum<uint8_t>(inputs, As<int32_t>(outputs[0]), As<int64_t>(scratch));
    return absl::OkStatus();
  }

 private:
  // The input pixel under each tap of the kernel at output pixel `at`.
  void PixelsUnder(int64_t at, int64_t* pixels) const {
    for (int64_t tap = 0; tap < taps_; ++tap) {
      int64_t tap_rest = tap;
      int64_t at_rest = at;
      int64_t row = 1;
      int64_t pixel = 0;
      for (size_t d = spec_.strides.size(); d > 0; --d) {
        const int64_t kernel = spec_.weights_shape[d + 1];
        const int64_t size = spec_.input.shape[d + 1];
        const int64_t out = spec_.output.shape[d + 1];
        const int64_t place = at_rest % out * spec_.strides[d - 1] +
                              tap_rest % kernel * spec_.dilations[d - 1] -
                              spec_.pads_begin[d - 1];
        tap_rest /= kernel;
        at_rest /= out;
        if (place < 0 || place >= size) {
          pixel = kOutside;
          break;
        }
        pixel += place * row;
        row *= size;
      }
      pixels[tap] = pixel;
    }
  }

  template <class T>
  void Sum(Inputs inputs, int32_t* out, int64_t* pixels) const {
    const Shape& from = spec_.input.shape;
    const Shape& to = spec_.output.shape;
    const int64_t in_pixels = ProductOf(from, 2, from.size());
    const int64_t out_pixels = ProductOf(to, 2, to.size());
    const int64_t outputs_each = to[1] / spec_.groups;
    const bool in_last = spec_.input.channels_last();
    const bool out_last = spec_.output.channels_last();
    const int64_t pixel_step = in_last ? from[1] : 1;
    const int64_t channel_step = in_last ? 1 : in_pixels;
    const int32_t zero = spec_.input_zero_at.has_value()
                             ? int32_t{*As<T>(inputs[*spec_.input_zero_at])}
                             : spec_.input_zero;
    for (int64_t p = 0; p < out_pixels; ++p) {
      PixelsUnder(p, pixels);
      for (int64_t n = 0; n < to[0]; ++n) {
        const T* x = As<T>(inputs[0]) + n * from[1] * in_pixels;
        for (int64_t o = 0; o < to[1]; ++o) {
          const T* group = x + o / outputs_each * each_ * channel_step;
          const int16_t* w = weights_ + o * taps_ * each_;
          uint32_t sum = 0;
          for (int64_t tap = 0; tap < taps_; ++tap, w += each_) {
            if (pixels[tap] == kOutside) continue;
            sum += Dot(group + pixels[tap] * pixel_step, channel_step, w, each_,
                       zero);
          }
          out[out_last ? (n * out_pixels + p) * to[1] + o
                       : (n * to[1] + o) * out_pixels + p] =
              static_cast<int32_t>(sum);
        }
      }
    }
  }

  IntegerConvolutionSpec spec_;
  const int16_t* weights_;
  int64_t taps_ = 1, each_ = 1;
};

}  // namespace

MadeKernel MakeExactConvolution(const KernelRequest& request,
                                IntegerConvolutionSpec spec) {
  const Shape& shape = spec.weights_shape;
  const int64_t taps = ProductOf(shape, 2, shape.size());
  std::vector<int16_t> weights(spec.weights.size());
  for (int64_t o = 0; o < shape[0]; ++o) {
    for (int64_t i = 0; i < shape[1]; ++i) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        weights[static_cast<size_t>((o * taps + tap) * shape[1] + i)] =
            spec.weights[static_cast<size_t>((o * shape[1] + i) * taps + tap)];
      }
    }
  }
  RKNND_ASSIGN_OR_RETURN(
      const std::byte* const kept,
      request.weights.StoreCopy(std::as_bytes(std::span(weights))));
  spec.weights = {};
  return std::make_unique<ExactConvolution>(std::move(spec), As<int16_t>(kept));
}

}  // namespace rknnd::soft
