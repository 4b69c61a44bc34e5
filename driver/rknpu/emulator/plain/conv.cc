// Convolutions: a window for each output pixel, sums of products with each
// kernel's weights, then the output stages.

#include <algorithm>
#include <array>
#include <vector>

#include "driver/rknpu/emulator/plain/conv_input.h"
#include "driver/rknpu/emulator/plain/plain_engine.h"
#include "driver/rknpu/emulator/plain/stages.h"

namespace rknnd::rknpu {
namespace {

template <class Value, class Sum>
Sum Products(const Value* a, const Value* b, size_t count) {
  Sum sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += static_cast<Sum>(a[i]) * static_cast<Sum>(b[i]);
  }
  return sum;
}

// One convolution of int8 while it runs.
class ByteConv {
 public:
  ByteConv(const ConvSpec& spec, const OutputSpec& output, const Tables& tables,
           Access& access)
      : spec_(spec),
        input_(spec, access),
        stages_(output, spec.channels, tables, access),
        window_(input_.window_size()) {}

  bool Pixel(uint32_t y, uint32_t x) {
    input_.Window(y, x, window_.data());
    if (!spec_.depthwise) total_ = WindowSum();
    for (uint32_t s = 0; s < spec_.channels / kAtom; ++s) {
      std::array<int64_t, kAtom> values = {}, sums = {};
      for (uint32_t i = 0; i < kAtom; ++i) {
        const uint32_t o = s * kAtom + i;
        spec_.depthwise ? Channel(o, values[i], sums[i])
                        : Kernel(o, values[i], sums[i]);
      }
      if (!stages_.Put(s, y, x, values.data(), sums.data())) return false;
    }
    return true;
  }

 private:
  int32_t WindowSum() const {
    int32_t sum = 0;
    for (const int8_t value : window_) sum += value;
    return sum;
  }
  void Kernel(uint32_t o, int64_t& value, int64_t& sum) const {
    sum = total_;
    if (o >= spec_.kernels) return;
    value = Products<int8_t, int32_t>(window_.data(), input_.Weights(o),
                                      window_.size());
  }
  void Channel(uint32_t c, int64_t& value, int64_t& sum) const {
    if (c >= spec_.feature.channels) return;
    for (size_t i = c; i < window_.size(); i += spec_.feature.channels) {
      value += int64_t{window_[i]} * input_.Weights(0)[i];
      sum += window_[i];
    }
  }

  const ConvSpec& spec_;
  const ConvInput<Precision::kInt8> input_;
  PlainStages stages_;
  std::vector<int8_t> window_;
  int32_t total_ = 0;
};

class HalfConv {
 public:
  HalfConv(const ConvSpec& spec, const OutputSpec& output, const Tables& tables,
           Access& access)
      : spec_(spec),
        input_(spec, access),
        stages_(output, spec.channels, tables, access),
        window_(input_.window_size()) {}

  bool Pixel(uint32_t y, uint32_t x) {
    constexpr uint32_t kValues = kAtom / 2;
    input_.Window(y, x, window_.data());
    for (uint32_t s = 0; s < spec_.channels / kValues; ++s) {
      std::array<double, kValues> values = {};
      for (uint32_t i = 0; i < kValues; ++i) {
        const uint32_t o = s * kValues + i;
        if (o >= spec_.kernels) continue;
        values[i] = Products<float, double>(window_.data(), input_.Weights(o),
                                            window_.size());
      }
      if (!stages_.PutHalf(s, y, x, values.data())) return false;
    }
    return true;
  }

 private:
  const ConvSpec& spec_;
  const ConvInput<Precision::kHalf> input_;
  PlainStages stages_;
  std::vector<float> window_;
};

template <class Conv>
void Run(const ConvSpec& spec, const OutputSpec& output, const Tables& tables,
         Access& access) {
  Conv conv(spec, output, tables, access);
  for (uint32_t y = 0; y < spec.height && access.ok(); ++y) {
    for (uint32_t x = 0; x < spec.width; ++x) {
      if (!conv.Pixel(y, x)) return;
    }
  }
}

}  // namespace

void RunPlainConv(const ConvSpec& conv, const OutputSpec& output,
                  const Tables& tables, Access& access) {
  if (conv.precision == Precision::kHalf) {
    Run<HalfConv>(conv, output, tables, access);
  } else {
    Run<ByteConv>(conv, output, tables, access);
  }
}

}  // namespace rknnd::rknpu
