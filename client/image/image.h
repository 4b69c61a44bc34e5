// Pictures for the tools and the demo: reading (.jpg, .png, .bmp), writing
// (.png), fitting to a model's input, drawing boxes. Called by rknnctl and
// examples on any thread; no state. Files are not trusted: a broken one is an
// error.

#ifndef CLIENT_IMAGE_IMAGE_H_
#define CLIENT_IMAGE_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/values/expected.h"

namespace rknnd::client {

// Largest picture that is read: 64 megapixels, what today's cameras give. A few
// bytes of PNG can claim far more.
inline constexpr size_t kMaxPixels = size_t{64} << 20;

// RGB pixels in somebody's memory, three bytes each, rows `stride` bytes apart.
struct ConstPixels {
  const uint8_t* data = nullptr;
  int width = 0;
  int height = 0;
  size_t stride = 0;
};

struct Pixels {
  uint8_t* data = nullptr;
  int width = 0;
  int height = 0;
  size_t stride = 0;

  // NOLINTNEXTLINE(google-explicit-constructor): what may be written, be read
  operator ConstPixels() const { return {data, width, height, stride}; }
};

// A picture of our own: rows without gaps. Thread: any, one at a time.
class Image {
 public:
  Image() = default;
  // Black. Both sides are positive, and at most kMaxPixels together.
  Image(int width, int height);

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] Pixels pixels();
  [[nodiscard]] ConstPixels pixels() const;

 private:
  int width_ = 0;
  int height_ = 0;
  std::vector<uint8_t> bytes_;
};

struct Color {
  uint8_t r, g, b;
};

// Corners in pixels; right and bottom are outside of the box.
struct Box {
  float left, top, right, bottom;
};

// Reads a JPEG, PNG or BMP, told by its first bytes. Grey becomes RGB,
// transparency is blended onto black.
base::Expected<Image> ReadImage(const std::string& path);

base::Expected<void> WritePng(const std::string& path, ConstPixels image);

// Fills `to` with all of `from`, bilinear between pixel centres; the ratio of
// the sides is not kept.
void Resize(ConstPixels from, Pixels to);

// Where a letterboxed picture lies: x' = x * scale + left, y' = y * scale +
// top.
struct Letterbox {
  float scale;
  int left, top;

  // A box in the letterboxed picture, in pixels of the original.
  [[nodiscard]] Box ToOriginal(const Box& box) const;
};

// Fills `to` with all of `from`, as large as fits with the ratio of its sides
// kept, centred, and `pad` around it.
Letterbox ResizeLetterboxed(ConstPixels from, Pixels to, Color pad);

// The outline of a box, `thickness` pixels wide and inside of it; what is
// outside of the picture is left out.
void DrawBox(Pixels image, const Box& box, Color color, int thickness);

}  // namespace rknnd::client

#endif  // CLIENT_IMAGE_IMAGE_H_
