// Where a picture comes to lie in a model's input. The device scales by it and
// the client library maps boxes back by it: one rule, so that they agree to the
// pixel.

#ifndef BASE_VALUES_PICTURE_FIT_H_
#define BASE_VALUES_PICTURE_FIT_H_

#include <algorithm>
#include <cstdint>

namespace rknnd::base {

// A rectangle of the input, in its pixels.
struct PictureFit {
  uint32_t x = 0, y = 0, width = 0, height = 0;

  friend bool operator==(const PictureFit&, const PictureFit&) = default;
};

// All of it; or, with `keep_proportions`, the largest that has the picture's,
// rounded to whole pixels (halves up, at least 1) and centred (the odd pixel is
// on the right or below). No side is 0 or above 2^31.
[[nodiscard]] constexpr PictureFit FitPicture(uint32_t width, uint32_t height,
                                              uint32_t input_width,
                                              uint32_t input_height,
                                              bool keep_proportions) {
  if (!keep_proportions) return {0, 0, input_width, input_height};
  const uint64_t w = width;
  const uint64_t h = height;
  const auto scaled = [](uint64_t side, uint64_t to, uint64_t from,
                         uint32_t room) {
    const uint64_t rounded = (side * to + from / 2) / from;
    return static_cast<uint32_t>(std::clamp<uint64_t>(rounded, 1, room));
  };
  PictureFit fit{0, 0, input_width, input_height};
  if (input_width * h <= input_height * w) {
    fit.height = scaled(h, input_width, w, input_height);
  } else {
    fit.width = scaled(w, input_height, h, input_width);
  }
  fit.x = (input_width - fit.width) / 2;
  fit.y = (input_height - fit.height) / 2;
  return fit;
}

}  // namespace rknnd::base

#endif  // BASE_VALUES_PICTURE_FIT_H_
