#include "client/ctl/models/tensor_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "client/image/file.h"
#include "client/image/image.h"
#include "client/image/npy.h"
#include "client/image/temporary_folder.h"

namespace rknnd::client {
namespace {

using testing::HasSubstr;

rknn_tensor_attr Attr(std::initializer_list<uint32_t> dims,
                      rknn_tensor_format format, rknn_tensor_type type) {
  rknn_tensor_attr attr{};
  std::strcpy(attr.name, "data");
  attr.n_elems = 1;
  for (const uint32_t extent : dims) {
    attr.dims[attr.n_dims++] = extent;
    attr.n_elems *= extent;
  }
  attr.fmt = format;
  attr.type = type;
  attr.qnt_type = RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC;
  return attr;
}

class TensorInputTest : public testing::Test {
 protected:
  [[nodiscard]] std::string Path(const char* name) const {
    return folder_.File(name);
  }

  std::string Bin(size_t size) {
    const std::vector<std::byte> bytes(size, std::byte{1});
    EXPECT_TRUE(WriteFile(Path("x.bin"), bytes).ok());
    return Path("x.bin");
  }

  std::string Npy(ElementType type, std::vector<size_t> shape) {
    size_t size = ElementSize(type);
    for (const size_t extent : shape) size *= extent;
    const std::vector<std::byte> bytes(size, std::byte{1});
    EXPECT_TRUE(WriteNpy(Path("x.npy"), type, shape, bytes).ok());
    return Path("x.npy");
  }

  std::string Picture(int width, int height, uint8_t r, uint8_t g, uint8_t b) {
    Image image(width, height);
    uint8_t* pixel = image.pixels().data;
    for (int i = 0; i < width * height; ++i) {
      *pixel++ = r;
      *pixel++ = g;
      *pixel++ = b;
    }
    EXPECT_TRUE(WritePng(Path("x.png"), image.pixels()).ok());
    return Path("x.png");
  }

 private:
  TemporaryFolder folder_;
};

const rknn_tensor_attr kImageInput =
    Attr({1, 4, 6, 3}, RKNN_TENSOR_NHWC, RKNN_TENSOR_FLOAT16);

std::string Refusal(const base::Expected<TensorInput>& input) {
  return input.ok() ? "" : input.error().message;
}

TEST_F(TensorInputTest, BitmapsArePicturesToo) {
  // One pixel of 24 bits: blue, green, red.
  std::vector<std::byte> file(58);
  const auto set = [&file](size_t at, int value) {
    file[at] = static_cast<std::byte>(value);
  };
  for (const auto& [at, value] : {std::pair<size_t, int>{0, 'B'},
                                  {1, 'M'},
                                  {10, 54},
                                  {14, 40},
                                  {18, 1},
                                  {22, 1},
                                  {26, 1},
                                  {28, 24},
                                  {54, 30},
                                  {55, 20},
                                  {56, 10}}) {
    set(at, value);
  }
  ASSERT_TRUE(WriteFile(Path("x.bmp"), file).ok());

  const auto input = ReadTensorInput(Path("x.bmp"), kImageInput);

  ASSERT_TRUE(input.ok()) << input.error().message;
  ASSERT_EQ(input->bytes.size(), size_t{4} * 6 * 3);
  EXPECT_EQ(std::to_integer<int>(input->bytes[0]), 10);
  EXPECT_EQ(std::to_integer<int>(input->bytes[2]), 30);
}

TEST_F(TensorInputTest, PictureIsFittedAndItsPixelsAreLeftAsTheyAre) {
  const auto input = ReadTensorInput(Picture(50, 20, 10, 20, 30), kImageInput);

  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->type, RKNN_TENSOR_UINT8);
  EXPECT_EQ(input->format, RKNN_TENSOR_NHWC);
  ASSERT_EQ(input->bytes.size(), 4U * 6 * 3);
  EXPECT_EQ(input->bytes[3], std::byte{10});
  EXPECT_EQ(input->bytes[4], std::byte{20});
  EXPECT_EQ(input->bytes[71], std::byte{30});
}

TEST_F(TensorInputTest, PictureForOneChannelIsGrey) {
  const auto input = ReadTensorInput(
      Picture(5, 5, 255, 0, 0),
      Attr({1, 2, 2, 1}, RKNN_TENSOR_NHWC, RKNN_TENSOR_FLOAT16));

  ASSERT_TRUE(input.ok()) << input.error().message;
  ASSERT_EQ(input->bytes.size(), 4U);
  EXPECT_EQ(input->bytes[0], std::byte{77});
}

TEST_F(TensorInputTest, PictureFillsEveryItemOfABatch) {
  const auto input = ReadTensorInput(
      Picture(5, 5, 1, 2, 3),
      Attr({3, 2, 2, 3}, RKNN_TENSOR_NHWC, RKNN_TENSOR_FLOAT16));

  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ(input->bytes.size(), 36U);
}

TEST_F(TensorInputTest, PictureForAnythingElseIsRefused) {
  const std::string path = Picture(5, 5, 1, 2, 3);

  EXPECT_THAT(Refusal(ReadTensorInput(path, Attr({1, 4, 6, 8}, RKNN_TENSOR_NHWC,
                                                 RKNN_TENSOR_FLOAT16))),
              HasSubstr("1 or 3 channels, this one is 1x8x4x6 (NCHW)"));
  EXPECT_THAT(Refusal(ReadTensorInput(path, Attr({1, 10}, RKNN_TENSOR_UNDEFINED,
                                                 RKNN_TENSOR_FLOAT16))),
              HasSubstr("this one is 1x10"));
}

TEST_F(TensorInputTest, BinIsToldByItsSize) {
  const auto floats = ReadTensorInput(Bin(288), kImageInput);
  ASSERT_TRUE(floats.ok());
  EXPECT_EQ(floats->type, RKNN_TENSOR_FLOAT32);
  EXPECT_EQ(floats->format, RKNN_TENSOR_NCHW);

  const auto halves = ReadTensorInput(Bin(144), kImageInput);
  ASSERT_TRUE(halves.ok());
  EXPECT_EQ(halves->type, RKNN_TENSOR_FLOAT16);
  EXPECT_EQ(halves->format, RKNN_TENSOR_NCHW);

  const auto pixels = ReadTensorInput(Bin(72), kImageInput);
  ASSERT_TRUE(pixels.ok());
  EXPECT_EQ(pixels->type, RKNN_TENSOR_UINT8);
  EXPECT_EQ(pixels->format, RKNN_TENSOR_NHWC);

  EXPECT_THAT(Refusal(ReadTensorInput(Bin(73), kImageInput)),
              HasSubstr("it has 73 bytes; 72 elements"));
}

TEST_F(TensorInputTest, BinForWholeNumbersIsOfTheirType) {
  const rknn_tensor_attr tokens =
      Attr({1, 8}, RKNN_TENSOR_UNDEFINED, RKNN_TENSOR_INT32);

  const auto input = ReadTensorInput(Bin(32), tokens);

  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->type, RKNN_TENSOR_INT32);
  EXPECT_EQ(input->format, RKNN_TENSOR_UNDEFINED);
}

TEST_F(TensorInputTest, NpyHasTheOrderThatItsShapeFits) {
  const auto nchw =
      ReadTensorInput(Npy(ElementType::kFloat32, {1, 3, 4, 6}), kImageInput);
  ASSERT_TRUE(nchw.ok()) << nchw.error().message;
  EXPECT_EQ(nchw->format, RKNN_TENSOR_NCHW);

  const auto nhwc =
      ReadTensorInput(Npy(ElementType::kUint8, {4, 6, 3}), kImageInput);
  ASSERT_TRUE(nhwc.ok()) << nhwc.error().message;
  EXPECT_EQ(nhwc->format, RKNN_TENSOR_NHWC);
  EXPECT_EQ(nhwc->type, RKNN_TENSOR_UINT8);

  EXPECT_THAT(Refusal(ReadTensorInput(Npy(ElementType::kFloat32, {1, 4, 3, 6}),
                                      kImageInput)),
              HasSubstr("its shape is 1x4x3x6, wanted is 1x3x4x6 (NCHW) or "
                        "1x4x6x3 (NHWC)"));
}

TEST_F(TensorInputTest, NpyOfDoublesBecomesFloats) {
  const double values[] = {1.5, -2};
  const size_t shape[] = {2};
  ASSERT_TRUE(WriteNpy(Path("d.npy"), ElementType::kFloat64, shape,
                       std::as_bytes(std::span(values)))
                  .ok());

  const auto input = ReadTensorInput(
      Path("d.npy"), Attr({2}, RKNN_TENSOR_UNDEFINED, RKNN_TENSOR_FLOAT16));

  ASSERT_TRUE(input.ok()) << input.error().message;
  ASSERT_EQ(input->bytes.size(), 8U);
  float second = 0;
  std::memcpy(&second, input->bytes.data() + 4, 4);
  EXPECT_EQ(second, -2);
}

TEST_F(TensorInputTest, OtherFilesAreRefusedByName) {
  EXPECT_THAT(Refusal(ReadTensorInput("photo.tiff", kImageInput)),
              HasSubstr(".jpg, .png, .bmp, .npy or .bin"));
  EXPECT_THAT(Refusal(ReadTensorInput("/a.b/photo", kImageInput)),
              HasSubstr("'/a.b/photo'"));
  EXPECT_NE(Refusal(ReadTensorInput(Path("absent.bin"), kImageInput)), "");
}

TEST(NoiseInputTest, NoiseIsTheSameEachTimeAndFitsTheInput) {
  const TensorInput a = NoiseInput(kImageInput, 0);
  const TensorInput b = NoiseInput(kImageInput, 0);
  const TensorInput c = NoiseInput(kImageInput, 1);

  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_NE(a.bytes, c.bytes);
  EXPECT_EQ(a.type, RKNN_TENSOR_UINT8);
  EXPECT_EQ(a.bytes.size(), 72U);
}

TEST(NoiseInputTest, WholeNumbersAreSmall) {
  rknn_tensor_attr tokens =
      Attr({1, 100}, RKNN_TENSOR_UNDEFINED, RKNN_TENSOR_INT64);
  tokens.qnt_type = RKNN_TENSOR_QNT_NONE;

  const TensorInput input = NoiseInput(tokens, 0);

  ASSERT_EQ(input.bytes.size(), 800U);
  for (size_t i = 0; i < 100; ++i) {
    int64_t value = 0;
    std::memcpy(&value, input.bytes.data() + i * 8, 8);
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 10);
  }
}

}  // namespace
}  // namespace rknnd::client
