#include "examples/demo/letterboxer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rknnd::demo {
namespace {

constexpr int kFrameWidth = 64, kFrameHeight = 32;
constexpr uint8_t kGrey = 126;  // of luma: 128 of 255 in each channel

struct Frame {
  std::vector<uint8_t> memory =
      std::vector<uint8_t>(detector::Nv12Bytes(kFrameWidth, kFrameHeight), 128);
  detector::Nv12 nv12 =
      detector::Nv12In(memory.data(), kFrameWidth, kFrameHeight);

  explicit Frame(uint8_t luma) {
    std::fill_n(memory.begin(), kFrameWidth * kFrameHeight, luma);
  }
};

Tensor Input(rknn_tensor_type type, uint32_t height, uint32_t width,
             uint32_t channels = 3) {
  rknn_tensor_attr attr = {};
  attr.n_dims = 4;
  attr.dims[0] = 1;
  attr.dims[1] = height;
  attr.dims[2] = width;
  attr.dims[3] = channels;
  attr.n_elems = height * width * channels;
  attr.fmt = RKNN_TENSOR_NHWC;
  attr.type = type;
  attr.scale = 1 / 128.0F;
  attr.zp = 0;
  return Tensor(attr);
}

TEST(LetterboxerTest, AWideFrameHasPaddingAboveAndBelow) {
  Frame frame(kGrey);
  constexpr int kSide = 16;
  Letterboxer letterboxer(Input(RKNN_TENSOR_FLOAT32, kSide, kSide), kFrameWidth,
                          kFrameHeight, {0, 1, 7});
  std::vector<float> input(kSide * kSide * 3, -1);
  letterboxer.Write(frame.nv12, input.data());
  EXPECT_EQ(letterboxer.place().left, 0);
  EXPECT_EQ(letterboxer.place().top, 4);
  EXPECT_FLOAT_EQ(letterboxer.place().scale, 0.25F);
  for (int y = 0; y < kSide; ++y) {
    const bool inner = y >= 4 && y < 12;
    for (int i = 0; i < kSide * 3; ++i) {
      ASSERT_NEAR(input[static_cast<size_t>(y * kSide * 3 + i)],
                  inner ? 128 : 7, 1)
          << "row " << y;
    }
  }
}

TEST(LetterboxerTest, AnInputOfTheFramesRatioHasNoPadding) {
  Frame frame(kGrey);
  Letterboxer letterboxer(Input(RKNN_TENSOR_FLOAT32, 16, 32), kFrameWidth,
                          kFrameHeight, {0, 1, 7});
  std::vector<float> input(32 * 16 * 3);
  letterboxer.Write(frame.nv12, input.data());
  EXPECT_NEAR(*std::min_element(input.begin(), input.end()), 128, 1);
}

TEST(LetterboxerTest, BytesAreNormalisedAndQuantised) {
  Frame black(16);
  Letterboxer letterboxer(Input(RKNN_TENSOR_INT8, 16, 32), kFrameWidth,
                          kFrameHeight, {128, 1 / 128.0F, 128});
  std::vector<int8_t> input(32 * 16 * 3);
  letterboxer.Write(black.nv12, input.data());
  EXPECT_EQ(input, std::vector<int8_t>(32 * 16 * 3, -128));
  Frame white(235);
  letterboxer.Write(white.nv12, input.data());
  EXPECT_EQ(input, std::vector<int8_t>(32 * 16 * 3, 127));
}

TEST(LetterboxerTest, HalvesAreWritten) {
  Frame black(16);
  Letterboxer letterboxer(Input(RKNN_TENSOR_FLOAT16, 16, 32), kFrameWidth,
                          kFrameHeight, {1, 1, 0});
  std::vector<uint16_t> input(32 * 16 * 3);
  letterboxer.Write(black.nv12, input.data());
  constexpr uint16_t kMinusOne = 0xbc00;
  EXPECT_EQ(input, std::vector<uint16_t>(32 * 16 * 3, kMinusOne));
}

TEST(LetterboxerTest, WhatIsNoPictureIsRefused) {
  EXPECT_THROW(Letterboxer(Input(RKNN_TENSOR_INT8, 16, 32, 4), kFrameWidth,
                           kFrameHeight, {}),
               Error);
  EXPECT_THROW(Letterboxer(Input(RKNN_TENSOR_INT64, 16, 32), kFrameWidth,
                           kFrameHeight, {}),
               Error);
}

}  // namespace
}  // namespace rknnd::demo
