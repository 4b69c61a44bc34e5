// What a convolution reads, taken from memory once and laid out for loops:
// the map pixel by pixel with its channels together, and the weights kernel by
// kernel in the same order. Part of the plain engine.

#ifndef DRIVER_RKNPU_EMULATOR_PLAIN_CONV_INPUT_H_
#define DRIVER_RKNPU_EMULATOR_PLAIN_CONV_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/rknpu/emulator/access.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu {

// The numbers that a precision computes with.
template <Precision>
struct Numbers;
template <>
struct Numbers<Precision::kInt8> {
  using Value = int8_t;
  using Sum = int32_t;
};
template <>
struct Numbers<Precision::kHalf> {
  using Value = float;
  using Sum = double;
};

template <Precision P>
class ConvInput {
 public:
  using Value = typename Numbers<P>::Value;

  // Reads all of it; `access` has the error if that failed.
  ConvInput(const ConvSpec& spec, Access& access);

  // The window of output pixel (x, y): taps line by line, in each the channels.
  void Window(uint32_t y, uint32_t x, Value* window) const;
  // Those of one kernel, in the order of Window; depthwise: of all channels.
  [[nodiscard]] const Value* Weights(uint32_t kernel) const {
    return weights_.data() + size_t{kernel} * window_size();
  }
  [[nodiscard]] size_t window_size() const {
    return size_t{spec_.taps()} * spec_.feature.channels;
  }

 private:
  void ReadFeature(Access& access);
  void ReadWeights(Access& access);
  void ReadDepthwise(Access& access);
  // The pixel of the map that tap coordinate `at` meets; -1: the border, or
  // between the pixels of a spread map.
  static int64_t Meets(int64_t at, uint32_t spread, uint32_t size);

  const ConvSpec& spec_;
  std::vector<Value> feature_, weights_, pad_;
};

extern template class ConvInput<Precision::kInt8>;
extern template class ConvInput<Precision::kHalf>;

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_PLAIN_CONV_INPUT_H_
