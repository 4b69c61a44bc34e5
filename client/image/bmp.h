// Windows bitmaps, as pictures for models come in: uncompressed, 24 or 32 bits
// a pixel. Called by ReadImage, on any thread; no state. The bytes are not
// trusted: what is not whole, or not of these kinds, is an error that says so.

#ifndef CLIENT_IMAGE_BMP_H_
#define CLIENT_IMAGE_BMP_H_

#include <cstddef>
#include <span>
#include <string>

#include "base/values/expected.h"
#include "client/image/image.h"

namespace rknnd::client {

// Whether a file starts as a bitmap does.
[[nodiscard]] bool IsBmp(std::span<const std::byte> file);

// `path` is for messages. The fourth byte of 32 bits is not looked at: most
// writers leave it 0 and mean no transparency.
base::Expected<Image> DecodeBmp(const std::string& path,
                                std::span<const std::byte> file);

}  // namespace rknnd::client

#endif  // CLIENT_IMAGE_BMP_H_
