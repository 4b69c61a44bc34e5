#include "client/image/bmp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "client/image/file.h"
#include "client/image/temporary_folder.h"

namespace rknnd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Bytes = std::vector<std::byte>;

void SetField(Bytes& file, size_t at, uint32_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    file[at + i] = static_cast<std::byte>(value >> (8 * i));
  }
}

// Pixels count up from 1, blue first, in the order of the file.
Bytes Bmp(int width, int height, uint32_t bits) {
  const auto rows = static_cast<size_t>(height < 0 ? -height : height);
  const size_t used = static_cast<size_t>(width) * bits / 8;
  const size_t stride = (used + 3) / 4 * 4;
  Bytes file(54 + stride * rows);
  SetField(file, 0, 0x4d42, 2);
  SetField(file, 2, static_cast<uint32_t>(file.size()), 4);
  SetField(file, 10, 54, 4);
  SetField(file, 14, 40, 4);
  SetField(file, 18, static_cast<uint32_t>(width), 4);
  SetField(file, 22, static_cast<uint32_t>(height), 4);
  SetField(file, 26, 1, 2);
  SetField(file, 28, bits, 2);
  uint32_t next = 1;
  for (size_t y = 0; y < rows; ++y) {
    for (size_t x = 0; x < used; ++x) {
      file[54 + y * stride + x] = static_cast<std::byte>(next++);
    }
  }
  return file;
}

std::vector<int> Rgb(const base::Expected<Image>& image) {
  const ConstPixels pixels = image->pixels();
  return {pixels.data,
          pixels.data + pixels.stride * static_cast<size_t>(pixels.height)};
}

std::string Fault(const Bytes& file) {
  const auto image = DecodeBmp("x.bmp", file);
  return image.ok() ? "" : image.error().message;
}

TEST(BmpTest, RowsComeFromTheBottomAndAreFilledUp) {
  const auto image = DecodeBmp("x.bmp", Bmp(1, 2, 24));

  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(image->width(), 1);
  EXPECT_EQ(image->height(), 2);
  EXPECT_THAT(Rgb(image), ElementsAre(6, 5, 4, 3, 2, 1));
}

TEST(BmpTest, RowsOfANegativeHeightComeFromTheTop) {
  const auto image = DecodeBmp("x.bmp", Bmp(1, -2, 24));

  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_THAT(Rgb(image), ElementsAre(3, 2, 1, 6, 5, 4));
}

TEST(BmpTest, TheFourthByteOfAPixelIsLeftOut) {
  const auto image = DecodeBmp("x.bmp", Bmp(2, 1, 32));

  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_THAT(Rgb(image), ElementsAre(3, 2, 1, 7, 6, 5));
}

TEST(BmpTest, UsualMasksAreAsGoodAsNone) {
  Bytes file = Bmp(1, 1, 32);
  SetField(file, 30, 3, 4);
  EXPECT_THAT(Fault(file), HasSubstr("masks"));
  file.insert(file.begin() + 54, 12, std::byte{});
  SetField(file, 10, 66, 4);
  EXPECT_THAT(Fault(file), HasSubstr("masks"));
  SetField(file, 54, 0xff0000, 4);
  SetField(file, 58, 0xff00, 4);
  SetField(file, 62, 0xff, 4);

  const auto image = DecodeBmp("x.bmp", file);

  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_THAT(Rgb(image), ElementsAre(3, 2, 1));
}

TEST(BmpTest, EveryShorterFileIsRefused) {
  const Bytes file = Bmp(3, 3, 24);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(Fault({file.begin(), file.begin() + static_cast<long>(size)}), "")
        << size << " bytes";
  }
}

TEST(BmpTest, OtherKindsSayWhatTheyAre) {
  Bytes file = Bmp(1, 1, 24);
  SetField(file, 28, 8, 2);
  EXPECT_THAT(Fault(file), HasSubstr("8 bits a pixel"));
  file = Bmp(1, 1, 24);
  SetField(file, 30, 1, 4);
  EXPECT_THAT(Fault(file), HasSubstr("compressed"));
  file = Bmp(1, 1, 24);
  SetField(file, 14, 12, 4);
  EXPECT_THAT(Fault(file), HasSubstr("header of 12 bytes"));
}

TEST(BmpTest, SizesThatOverflowAreRefused) {
  for (const uint32_t size : {0U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
    Bytes file = Bmp(1, 1, 32);
    SetField(file, 18, size, 4);
    EXPECT_NE(Fault(file), "") << "width " << size;
    file = Bmp(1, 1, 32);
    SetField(file, 22, size, 4);
    // A height of -1 is a row.
    EXPECT_EQ(Fault(file) == "", size == 0xffffffffU) << "height " << size;
  }
  Bytes file = Bmp(1, 1, 32);
  for (const uint32_t start : {0U, 53U, 55U, 0xffffffffU}) {
    SetField(file, 10, start, 4);
    EXPECT_NE(Fault(file), "") << "pixels at " << start;
  }
}

TEST(BmpTest, FilesAreToldByTheirFirstBytes) {
  const TemporaryFolder folder;
  const std::string path = folder.File("picture");
  ASSERT_TRUE(WriteFile(path, Bmp(1, 1, 24)).ok());

  const auto image = ReadImage(path);

  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_THAT(Rgb(image), ElementsAre(3, 2, 1));
}

}  // namespace
}  // namespace rknnd::client
