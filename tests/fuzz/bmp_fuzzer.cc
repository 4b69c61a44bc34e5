// Bitmaps as a file on disk may hold them: a picture whose every pixel is
// there, or a reason.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "client/image/bmp.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto image =
      rknnd::client::DecodeBmp("fuzz", std::as_bytes(std::span(data, size)));
  if (!image.ok()) {
    if (image.error().message.empty()) std::abort();
    return 0;
  }
  const rknnd::client::ConstPixels pixels = image->pixels();
  // No pixel comes from nowhere.
  const size_t count =
      static_cast<size_t>(pixels.width) * static_cast<size_t>(pixels.height);
  if (count == 0 || count * 3 > size) std::abort();
  return 0;
}
