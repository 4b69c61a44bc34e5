// See plain_convolution.h.

#include "driver/soft/kernels/convolution/plain_convolution.h"

#include <algorithm>
#include <array>
#include <string>

#include "driver/soft/kernels/epilogue.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

using Sides = std::array<int64_t, 3>;

// The last axes of three; those before them are `rest`.
Sides SidesOf(std::span<const int64_t> axes, int64_t rest) {
  Sides sides;
  sides.fill(rest);
  std::copy(axes.begin(), axes.end(), sides.end() - axes.size());
  return sides;
}

// Where the number of a channel and pixel lies in an image.
struct Places {
  explicit Places(const TensorSpec& spec)
      : block(spec.placement.block),
        sides(SidesOf(std::span(spec.shape).subspan(2), 1)),
        pixels(ProductOf(spec.shape, 2, spec.shape.size())),
        image((spec.shape[1] + block - 1) / block * block * pixels) {}

  [[nodiscard]] int64_t At(int64_t channel, int64_t pixel) const {
    return (channel / block * pixels + pixel) * block + channel % block;
  }

  int64_t block;
  Sides sides;
  int64_t pixels, image;
};

class PlainConvolution final : public Kernel {
 public:
  PlainConvolution(const KernelRequest& request, const Window& window,
                   int64_t groups)
      : step_(request),
        spec_(request.outputs[0]),
        input_(request.inputs[0]),
        output_(request.outputs[0]),
        kernel_(SidesOf(window.kernel, 1)),
        strides_(SidesOf(window.strides, 1)),
        dilations_(SidesOf(window.dilations, 1)),
        pads_(SidesOf(window.pads_begin, 0)),
        inputs_of_group_(request.inputs[0].shape[1] / groups),
        outputs_of_group_(request.outputs[0].shape[1] / groups),
        has_bias_(request.node.has_input(2)) {}

  [[nodiscard]] std::string implementation() const override { return "plain"; }
  [[nodiscard]] bool is_reference() const override { return true; }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* /*scratch*/) const override {
    auto* const to = As<float>(outputs[0]);
    for (int64_t n = 0; n < spec_.shape[0]; ++n) {
      for (int64_t c = 0; c < spec_.shape[1]; ++c) {
        const float start = has_bias_ ? As<float>(inputs[2])[c] : 0.0F;
        for (int64_t p = 0; p < output_.pixels; ++p) {
          to[n * output_.image + output_.At(c, p)] =
              start + SumOf(inputs, n, c, p);
        }
      }
    }
    ClearPadding(spec_, to);
    if (step_.adds()) {
      EpilogueStep::Add(As<float>(inputs[step_.add_index()]), to,
                        {0, PhysicalElements(spec_)});
    }
    step_.Activate(to);
    return absl::OkStatus();
  }

 private:
  // Of one number of the output.
  [[nodiscard]] float SumOf(Inputs inputs, int64_t image, int64_t channel,
                            int64_t pixel) const {
    const Sides& out = output_.sides;
    const Sides at = {pixel / (out[1] * out[2]), pixel / out[2] % out[1],
                      pixel % out[2]};
    const int64_t taps = kernel_[0] * kernel_[1] * kernel_[2];
    const float* const from = As<float>(inputs[0]) + image * input_.image;
    const float* weights =
        As<float>(inputs[1]) + channel * inputs_of_group_ * taps;
    const int64_t first = channel / outputs_of_group_ * inputs_of_group_;
    float sum = 0.0F;
    for (int64_t i = 0; i < inputs_of_group_; ++i, weights += taps) {
      StopPoint();
      for (int64_t k = 0; k < taps; ++k) {
        const Sides tap = {k / (kernel_[1] * kernel_[2]),
                           k / kernel_[2] % kernel_[1], k % kernel_[2]};
        int64_t place = 0;
        bool inside = true;
        for (size_t d = 0; d < 3; ++d) {
          const int64_t x =
              at[d] * strides_[d] + tap[d] * dilations_[d] - pads_[d];
          inside = inside && x >= 0 && x < input_.sides[d];
          place = place * input_.sides[d] + x;
        }
        if (inside) sum += from[input_.At(first + i, place)] * weights[k];
      }
    }
    return sum;
  }

  EpilogueStep step_;
  const TensorSpec spec_;
  const Places input_, output_;
  const Sides kernel_, strides_, dilations_, pads_;
  const int64_t inputs_of_group_, outputs_of_group_;
  const bool has_bias_;
};

}  // namespace

std::unique_ptr<Kernel> MakePlainConvolution(const KernelRequest& request,
                                             const Window& window,
                                             int64_t groups) {
  return std::make_unique<PlainConvolution>(request, window, groups);
}

}  // namespace rknnd::soft
