#include "client/image/bmp.h"

#include <cstdint>

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// The file's header, and the smallest of the picture's that has a compression
// (BITMAPINFOHEADER); later ones begin as it does.
constexpr size_t kFileHeader = 14;
constexpr size_t kInfoHeader = 40;

constexpr uint32_t kUncompressed = 0;
constexpr uint32_t kBitFields = 3;

Error Broken(const std::string& path, const std::string& why) {
  return {Code::kInvalidArgument, "BMP '" + path + "' cannot be read: " + why};
}

uint32_t Word(std::span<const std::byte> file, size_t at, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = bytes; i > 0; --i) {
    value = value << 8 | std::to_integer<uint32_t>(file[at + i - 1]);
  }
  return value;
}

// The masks of 32 bits say what uncompressed means anyway: blue, green, red.
bool HasUsualMasks(std::span<const std::byte> file) {
  constexpr size_t kMasks = kFileHeader + kInfoHeader;
  return file.size() >= kMasks + 12 && Word(file, kMasks, 4) == 0xff0000 &&
         Word(file, kMasks + 4, 4) == 0xff00 &&
         Word(file, kMasks + 8, 4) == 0xff;
}

}  // namespace

bool IsBmp(std::span<const std::byte> file) {
  return file.size() >= 2 && Word(file, 0, 2) == 0x4d42;  // "BM"
}

Expected<Image> DecodeBmp(const std::string& path,
                          std::span<const std::byte> file) {
  if (!IsBmp(file) || file.size() < kFileHeader + kInfoHeader) {
    return Broken(path, "its header is truncated");
  }
  const uint32_t info = Word(file, 14, 4);
  if (info < kInfoHeader || info > file.size() - kFileHeader) {
    return Broken(path, "its header of " + std::to_string(info) +
                            " bytes is of a kind that is not read");
  }
  // Signed: rows of a negative height start at the top.
  const auto width = static_cast<int32_t>(Word(file, 18, 4));
  const auto height = static_cast<int32_t>(Word(file, 22, 4));
  const uint32_t bits = Word(file, 28, 2);
  const uint32_t compression = Word(file, 30, 4);
  if (bits != 24 && bits != 32) {
    return Broken(path, "it has " + std::to_string(bits) +
                            " bits a pixel; 24 and 32 are read");
  }
  const bool masks =
      compression == kBitFields && bits == 32 && HasUsualMasks(file);
  if (compression != kUncompressed && !masks) {
    return Broken(path,
                  "it is compressed or has masks of its own; save it "
                  "uncompressed");
  }
  const auto rows =
      static_cast<uint64_t>(height < 0 ? -int64_t{height} : int64_t{height});
  if (width <= 0 || rows == 0 ||
      static_cast<uint64_t>(width) * rows > kMaxPixels) {
    return Broken(path, "it has " + std::to_string(width) + " x " +
                            std::to_string(height) +
                            " pixels; up to 64 megapixels are read");
  }
  const uint64_t bytes = bits / 8;
  const uint64_t stride = (static_cast<uint64_t>(width) * bytes + 3) / 4 * 4;
  const uint64_t start = Word(file, 10, 4);
  if (start < kFileHeader + info || start > file.size() ||
      stride * rows > file.size() - start) {
    return Broken(path, "it ends before its last row");
  }
  Image image(width, static_cast<int>(rows));
  const Pixels pixels = image.pixels();
  for (uint64_t y = 0; y < rows; ++y) {
    const uint64_t row = height < 0 ? y : rows - 1 - y;
    const std::byte* from = file.data() + start + row * stride;
    uint8_t* to = pixels.data + y * pixels.stride;
    for (int x = 0; x < width; ++x, from += bytes, to += 3) {
      to[0] = std::to_integer<uint8_t>(from[2]);
      to[1] = std::to_integer<uint8_t>(from[1]);
      to[2] = std::to_integer<uint8_t>(from[0]);
    }
  }
  return image;
}

}  // namespace rknnd::client
