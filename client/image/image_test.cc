#include "client/image/image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "client/image/file.h"
#include "client/image/temporary_folder.h"

namespace rknnd::client {
namespace {

Color At(ConstPixels image, int x, int y) {
  const uint8_t* pixel = image.data + static_cast<size_t>(y) * image.stride +
                         static_cast<size_t>(x) * 3;
  return {pixel[0], pixel[1], pixel[2]};
}

bool operator==(const Color& a, const Color& b) {
  return a.r == b.r && a.g == b.g && a.b == b.b;
}

void Set(Pixels image, int x, int y, Color color) {
  uint8_t* pixel = image.data + static_cast<size_t>(y) * image.stride +
                   static_cast<size_t>(x) * 3;
  pixel[0] = color.r;
  pixel[1] = color.g;
  pixel[2] = color.b;
}

std::vector<uint8_t> PixelBytes(const Image& image) {
  const ConstPixels pixels = image.pixels();
  return {pixels.data,
          pixels.data + pixels.stride * static_cast<size_t>(pixels.height)};
}

// Each pixel differs from its neighbours, on both axes and in each channel.
Image Gradient(int width, int height) {
  Image image(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      Set(image.pixels(), x, y,
          {static_cast<uint8_t>(x * 3), static_cast<uint8_t>(y * 5),
           static_cast<uint8_t>(x + y)});
    }
  }
  return image;
}

class ImageFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string Path(const char* name) const {
    return folder_.File(name);
  }

 private:
  TemporaryFolder folder_;
};

// A JPEG of 8 x 8 pixels of one grey (128), made by hand: every coefficient is
// zero.
std::vector<std::byte> GreyJpeg() {
  std::vector<uint8_t> bytes = {0xff, 0xd8, 0xff, 0xdb, 0x00, 0x43, 0x00};
  bytes.insert(bytes.end(), 64, 1);  // quantisation table
  const uint8_t rest[] = {
      0xff, 0xc0, 0x00, 0x0b, 8, 0, 8, 0, 8, 1, 1, 0x11, 0,  // frame
      // One code of one bit for "no difference", and for "end of block".
      0xff, 0xc4, 0x00, 0x14, 0x00, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0x00,  //
      0xff, 0xc4, 0x00, 0x14, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0x00,                                       //
      0xff, 0xda, 0x00, 0x08, 1, 1, 0x00, 0, 63, 0,  // scan
      0x3f,                                          // 0, 0, padding
      0xff, 0xd9};
  bytes.insert(bytes.end(), std::begin(rest), std::end(rest));
  std::vector<std::byte> result(bytes.size());
  std::transform(bytes.begin(), bytes.end(), result.begin(),
                 [](uint8_t b) { return std::byte{b}; });
  return result;
}

TEST_F(ImageFileTest, PngThatWasWrittenIsReadAgain) {
  const Image image = Gradient(23, 17);
  ASSERT_TRUE(WritePng(Path("a.png"), image.pixels()).ok());

  const auto read = ReadImage(Path("a.png"));

  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->width(), 23);
  ASSERT_EQ(read->height(), 17);
  EXPECT_TRUE(PixelBytes(image) == PixelBytes(*read));
}

TEST_F(ImageFileTest, PartOfAPictureIsWrittenByItsStride) {
  const Image image = Gradient(20, 20);
  const ConstPixels all = image.pixels();
  ASSERT_TRUE(
      WritePng(Path("a.png"), {all.data + 15, 10, 20, all.stride}).ok());

  const auto read = ReadImage(Path("a.png"));

  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->width(), 10);
  EXPECT_TRUE(At(read->pixels(), 3, 7) == At(all, 8, 7));
}

TEST_F(ImageFileTest, GreyJpegIsReadAsRgb) {
  ASSERT_TRUE(WriteFile(Path("a.jpg"), GreyJpeg()).ok());

  const auto read = ReadImage(Path("a.jpg"));

  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->width(), 8);
  ASSERT_EQ(read->height(), 8);
  EXPECT_TRUE(At(read->pixels(), 7, 7) == (Color{128, 128, 128}));
}

TEST_F(ImageFileTest, TruncatedPicturesAreErrors) {
  const Image image = Gradient(64, 64);
  ASSERT_TRUE(WritePng(Path("a.png"), image.pixels()).ok());
  const auto png = ReadFile(Path("a.png"));
  ASSERT_TRUE(png.ok());
  ASSERT_TRUE(
      WriteFile(Path("cut.png"), std::span(*png).first(png->size() / 2)).ok());
  const auto jpeg = GreyJpeg();
  ASSERT_TRUE(
      WriteFile(Path("cut.jpg"), std::span(jpeg).first(jpeg.size() - 20)).ok());

  EXPECT_FALSE(ReadImage(Path("cut.png")).ok());
  EXPECT_FALSE(ReadImage(Path("cut.jpg")).ok());
}

TEST_F(ImageFileTest, SizeThatOnlyTheHeaderClaimsIsRefused) {
  auto jpeg = GreyJpeg();
  // Height and width in the frame header.
  const std::byte frame[] = {std::byte{0xff}, std::byte{0xc0}};
  auto at =
      std::search(jpeg.begin(), jpeg.end(), std::begin(frame), std::end(frame));
  // Not more than libjpeg itself allows.
  std::fill(at + 5, at + 9, std::byte{0xee});
  ASSERT_TRUE(WriteFile(Path("a.jpg"), jpeg).ok());

  const auto read = ReadImage(Path("a.jpg"));

  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("61166 x 61166"), std::string::npos)
      << read.error().message;
}

TEST_F(ImageFileTest, OtherFilesAreNamedAsSuch) {
  const std::byte text[] = {std::byte{'h'}, std::byte{'i'}};
  ASSERT_TRUE(WriteFile(Path("a.jpg"), text).ok());

  const auto read = ReadImage(Path("a.jpg"));

  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("neither a JPEG nor a PNG nor a BMP"),
            std::string::npos);
  EXPECT_FALSE(ReadImage(Path("absent.png")).ok());
  EXPECT_FALSE(ReadImage(Path("")).ok());  // a folder
}

TEST(ResizeTest, SameSizeIsTheSamePicture) {
  const Image image = Gradient(19, 11);
  Image copy(19, 11);

  Resize(image.pixels(), copy.pixels());

  EXPECT_TRUE(PixelBytes(image) == PixelBytes(copy));
}

TEST(ResizeTest, HalfTheSizeIsTheMeanOfFourPixels) {
  Image image(2, 2);
  Set(image.pixels(), 0, 0, {0, 10, 255});
  Set(image.pixels(), 1, 0, {100, 20, 255});
  Set(image.pixels(), 0, 1, {100, 30, 255});
  Set(image.pixels(), 1, 1, {200, 40, 255});
  Image small(1, 1);

  Resize(image.pixels(), small.pixels());

  EXPECT_TRUE(At(small.pixels(), 0, 0) == (Color{100, 25, 255}));
}

TEST(ResizeTest, DoubleTheSizeKeepsTheCornersAndBlendsBetween) {
  Image image(2, 1);
  Set(image.pixels(), 0, 0, {0, 0, 0});
  Set(image.pixels(), 1, 0, {100, 100, 100});
  Image wide(4, 1);

  Resize(image.pixels(), wide.pixels());

  EXPECT_EQ(At(wide.pixels(), 0, 0).r, 0);
  EXPECT_EQ(At(wide.pixels(), 1, 0).r, 25);
  EXPECT_EQ(At(wide.pixels(), 2, 0).r, 75);
  EXPECT_EQ(At(wide.pixels(), 3, 0).r, 100);
}

TEST(LetterboxTest, WidePictureIsCentredWithPaddingAboveAndBelow) {
  Image image(200, 100);
  std::fill_n(image.pixels().data, 60000, uint8_t{250});
  Image input(100, 100);

  const Letterbox box =
      ResizeLetterboxed(image.pixels(), input.pixels(), {1, 2, 3});

  EXPECT_FLOAT_EQ(box.scale, 0.5F);
  EXPECT_EQ(box.left, 0);
  EXPECT_EQ(box.top, 25);
  EXPECT_TRUE(At(input.pixels(), 50, 24) == (Color{1, 2, 3}));
  EXPECT_TRUE(At(input.pixels(), 0, 25) == (Color{250, 250, 250}));
  EXPECT_TRUE(At(input.pixels(), 99, 74) == (Color{250, 250, 250}));
  EXPECT_TRUE(At(input.pixels(), 99, 75) == (Color{1, 2, 3}));
}

TEST(LetterboxTest, BoxGoesBackToWhereItWasInTheOriginal) {
  const Letterbox box{0.5F, 10, 25};

  const Box original = box.ToOriginal({10, 25, 60, 75});

  EXPECT_FLOAT_EQ(original.left, 0);
  EXPECT_FLOAT_EQ(original.top, 0);
  EXPECT_FLOAT_EQ(original.right, 100);
  EXPECT_FLOAT_EQ(original.bottom, 100);
}

TEST(LetterboxTest, RowsOfTheTargetMayHaveGaps) {
  const Image image = Gradient(8, 16);
  Image input(20, 16);
  std::fill_n(input.pixels().data, 960, uint8_t{77});
  Pixels part = input.pixels();
  part.width = 16;

  ResizeLetterboxed(image.pixels(), part, {0, 0, 0});

  EXPECT_EQ(At(input.pixels(), 3, 5).r, 0);
  EXPECT_TRUE(At(input.pixels(), 4, 5) == At(image.pixels(), 0, 5));
  EXPECT_EQ(At(input.pixels(), 16, 5).r, 77);
}

TEST(DrawBoxTest, OutlineIsDrawnAndTheInsideIsLeft) {
  Image image(10, 10);

  DrawBox(image.pixels(), {2, 3, 8, 9}, {255, 0, 0}, 1);

  EXPECT_EQ(At(image.pixels(), 2, 3).r, 255);
  EXPECT_EQ(At(image.pixels(), 7, 8).r, 255);
  EXPECT_EQ(At(image.pixels(), 2, 6).r, 255);
  EXPECT_EQ(At(image.pixels(), 3, 4).r, 0);
  EXPECT_EQ(At(image.pixels(), 8, 6).r, 0);
}

TEST(DrawBoxTest, PartsOutsideOfThePictureAreLeftOut) {
  Image image(4, 4);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();

  DrawBox(image.pixels(), {-100, -100, 1e30F, 1e30F}, {9, 9, 9}, 1);
  DrawBox(image.pixels(), {kNan, kNan, kNan, kNan}, {255, 0, 0}, 3);
  DrawBox(image.pixels(), {3, 3, 1, 1}, {255, 0, 0}, 3);
  DrawBox(image.pixels(), {-kInfinity, 4, kInfinity, kInfinity}, {255, 0, 0},
          3);

  EXPECT_EQ(At(image.pixels(), 0, 0).r, 9);
  EXPECT_EQ(At(image.pixels(), 3, 3).r, 9);
  EXPECT_EQ(At(image.pixels(), 1, 1).r, 0);
}

}  // namespace
}  // namespace rknnd::client
