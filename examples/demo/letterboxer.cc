// See letterboxer.h.

#include "examples/demo/letterboxer.h"

#include <algorithm>
#include <cmath>

#include "base/values/half.h"

namespace rknnd::demo {

Letterboxer::Letterboxer(const Tensor& input, int frame_width, int frame_height,
                         const Normalisation& normalisation)
    : pad_(normalisation.pad), type_(input.type()) {
  const std::vector<uint32_t> shape = input.shape();
  if (shape.size() != 4 || shape[0] != 1 || shape[3] != 3 ||
      input.format() != RKNN_TENSOR_NHWC) {
    throw Error(RKNN_ERR_INPUT_INVALID,
                "input '" + input.name() + "' is no single RGB picture");
  }
  height_ = static_cast<int>(shape[1]);
  width_ = static_cast<int>(shape[2]);
  row_ = size_t{std::max(shape[2], input.attr().w_stride)} * 3;
  const float scale =
      std::min(static_cast<float>(width_) / static_cast<float>(frame_width),
               static_cast<float>(height_) / static_cast<float>(frame_height));
  const auto fit = [scale](int side, int room) {
    return std::clamp(
        static_cast<int>(std::lround(static_cast<float>(side) * scale)), 1,
        room);
  };
  inner_width_ = fit(frame_width, width_);
  inner_height_ = fit(frame_height, height_);
  place_ = {scale, (width_ - inner_width_) / 2, (height_ - inner_height_) / 2};
  rgb_.resize(static_cast<size_t>(inner_width_) *
              static_cast<size_t>(inner_height_) * 3);

  for (int byte = 0; byte < 256; ++byte) {
    const auto at = static_cast<size_t>(byte);
    const float real =
        (static_cast<float>(byte) - normalisation.mean) * normalisation.scale;
    switch (type_) {
      case RKNN_TENSOR_FLOAT32:
        floats_[at] = real;
        break;
      case RKNN_TENSOR_FLOAT16:
        halves_[at] = base::FloatToHalf(real);
        break;
      case RKNN_TENSOR_INT8:
        bytes_[at] = static_cast<uint8_t>(static_cast<int8_t>(
            std::clamp(input.Quantize(real), -128.0F, 127.0F)));
        break;
      case RKNN_TENSOR_UINT8:
        bytes_[at] = static_cast<uint8_t>(
            std::clamp(input.Quantize(real), 0.0F, 255.0F));
        break;
      default:
        throw Error(RKNN_ERR_INPUT_INVALID,
                    "input '" + input.name() + "' takes " +
                        get_type_string(type_) + ", which no picture is");
    }
  }
}

template <class Element>
void Letterboxer::Place(const std::array<Element, 256>& elements,
                        Element* to) const {
  const Element pad = elements[pad_];
  const uint8_t* from = rgb_.data();
  for (int y = 0; y < height_; ++y, to += row_) {
    if (y < place_.top || y >= place_.top + inner_height_) {
      std::fill_n(to, row_, pad);
      continue;
    }
    const size_t inner = static_cast<size_t>(inner_width_) * 3;
    Element* at = std::fill_n(to, static_cast<size_t>(place_.left) * 3, pad);
    at = std::transform(from, from + inner, at,
                        [&](uint8_t byte) { return elements[byte]; });
    std::fill(at, to + row_, pad);
    from += inner;
  }
}

void Letterboxer::Write(const detector::Nv12& frame, void* input) {
  shrinker_.ToRgb(frame, inner_width_, inner_height_, rgb_.data());
  switch (type_) {
    case RKNN_TENSOR_FLOAT32:
      return Place(floats_, static_cast<float*>(input));
    case RKNN_TENSOR_FLOAT16:
      return Place(halves_, static_cast<uint16_t*>(input));
    default:
      return Place(bytes_, static_cast<uint8_t*>(input));
  }
}

}  // namespace rknnd::demo
