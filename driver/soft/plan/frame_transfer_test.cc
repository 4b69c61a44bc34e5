// Every kind of frame against a plain walk in double, one pixel at a time.

#include "driver/soft/plan/frame_transfer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "driver/memory/fault_guard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::Direction;
using driver::FrameFit;
using driver::FrameFormat;
using driver::PixelFormat;
using ::testing::HasSubstr;

IoPort ImagePort(int64_t width, int64_t height) {
  return *IoPort::Make(Direction::kInput, "image", DataType::kFloat32,
                       {1, 3, height, width}, 8);
}

bool IsNv(PixelFormat pixels) {
  return pixels == PixelFormat::kNv12 || pixels == PixelFormat::kNv21;
}

// Planes of random bytes of exactly the size that is asked for.
struct Planes {
  std::array<std::vector<std::byte>, driver::kMaxPlanes> bytes;

  explicit Planes(const driver::FrameSizes& sizes) {
    std::minstd_rand random(7);
    for (size_t p = 0; p < sizes.size(); ++p) {
      bytes[p].resize(sizes[p]);
      for (std::byte& byte : bytes[p]) {
        byte = static_cast<std::byte>(random() >> 8);
      }
    }
  }
  [[nodiscard]] FramePlanes spans() const { return {bytes[0], bytes[1]}; }
  [[nodiscard]] double At(size_t plane, uint64_t offset) const {
    return static_cast<double>(bytes[plane][offset]);
  }
};

double Byte(double value) { return std::clamp(std::round(value), 0.0, 255.0); }

// Red, green and blue of a pixel of the whole frame.
std::array<double, 3> PixelOf(const FrameFormat& frame, const Planes& planes,
                              uint32_t x, uint32_t y) {
  const uint64_t packed = frame.width * (IsNv(frame.pixels) ? 1ULL : 3ULL);
  const uint64_t stride = frame.stride[0] == 0 ? packed : frame.stride[0];
  if (IsNv(frame.pixels)) {
    const uint64_t colours = frame.stride[1] == 0 ? packed : frame.stride[1];
    const double luma = 255.0 / 219 * (planes.At(0, y * stride + x) - 16);
    const uint64_t at = y / 2 * colours + x / 2 * 2;
    const bool cb_first = frame.pixels == PixelFormat::kNv12;
    const double cb =
        255.0 / 224 * (planes.At(1, at + (cb_first ? 0 : 1)) - 128);
    const double cr =
        255.0 / 224 * (planes.At(1, at + (cb_first ? 1 : 0)) - 128);
    return {Byte(luma + 1.402 * cr), Byte(luma - 0.344136 * cb - 0.714136 * cr),
            Byte(luma + 1.772 * cb)};
  }
  const uint64_t at = y * stride + 3 * x;
  std::array<double, 3> pixel = {planes.At(0, at), planes.At(0, at + 1),
                                 planes.At(0, at + 2)};
  if (frame.pixels == PixelFormat::kBgr888) std::swap(pixel[0], pixel[2]);
  return pixel;
}

std::vector<double> Reference(const FrameFormat& frame, const Planes& planes,
                              uint32_t width, uint32_t height) {
  const bool whole =
      (frame.crop_x | frame.crop_y | frame.crop_width | frame.crop_height) == 0;
  const double crop_width = whole ? frame.width : frame.crop_width;
  const double crop_height = whole ? frame.height : frame.crop_height;
  double placed_width = width;
  double placed_height = height;
  if (frame.fit == FrameFit::kLetterbox) {
    const double scale = std::min(width / crop_width, height / crop_height);
    placed_width = std::clamp<double>(
        std::floor(crop_width * scale + 0.5 + 1e-9), 1, width);
    placed_height = std::clamp<double>(
        std::floor(crop_height * scale + 0.5 + 1e-9), 1, height);
  }
  const auto left = static_cast<uint32_t>((width - placed_width) / 2);
  const auto top = static_cast<uint32_t>((height - placed_height) / 2);
  std::vector<double> picture;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      const bool inside = x >= left && x < left + placed_width && y >= top &&
                          y < top + placed_height;
      if (!inside) {
        for (const uint8_t pad : frame.pad) picture.push_back(pad);
        continue;
      }
      const double u =
          std::clamp((x - left + 0.5) * crop_width / placed_width - 0.5, 0.0,
                     crop_width - 1);
      const double v =
          std::clamp((y - top + 0.5) * crop_height / placed_height - 0.5, 0.0,
                     crop_height - 1);
      const auto x0 = static_cast<uint32_t>(u);
      const auto y0 = static_cast<uint32_t>(v);
      const auto x1 = std::min(x0 + 1, static_cast<uint32_t>(crop_width) - 1);
      const auto y1 = std::min(y0 + 1, static_cast<uint32_t>(crop_height) - 1);
      const auto at = [&](uint32_t px, uint32_t py) {
        return PixelOf(frame, planes, frame.crop_x + px, frame.crop_y + py);
      };
      const auto a = at(x0, y0);
      const auto b = at(x1, y0);
      const auto c = at(x0, y1);
      const auto d = at(x1, y1);
      const double fx = u - x0;
      const double fy = v - y0;
      for (size_t i = 0; i < 3; ++i) {
        const size_t channel = frame.bgr_input ? 2 - i : i;
        picture.push_back((a[channel] * (1 - fx) + b[channel] * fx) * (1 - fy) +
                          (c[channel] * (1 - fx) + d[channel] * fx) * fy);
      }
    }
  }
  return picture;
}

std::vector<uint8_t> Convert(const IoPort& port, const FrameFormat& frame,
                             const Planes& planes) {
  std::vector<std::byte> scratch(FrameScratch(port.shape()) + 64);
  size_t gone = 0;
  const auto picture =
      ConvertFrame(frame, planes.spans(), port.shape(), scratch.data(), &gone);
  if (!picture.has_value()) return {};
  const auto* bytes = reinterpret_cast<const uint8_t*>(picture->data());
  return {bytes, bytes + picture->size()};
}

constexpr PixelFormat kAllPixels[] = {PixelFormat::kNv12, PixelFormat::kNv21,
                                      PixelFormat::kRgb888,
                                      PixelFormat::kBgr888};

TEST(FrameTransferTest, EveryFrameIsAsThePlainWalkInDoubleSays) {
  struct Size {
    uint32_t width, height;
  };
  const std::vector<Size> frames = {{64, 36}, {10, 30}, {2, 2}, {38, 22}};
  const std::vector<Size> inputs = {
      {32, 32}, {17, 9}, {64, 36}, {1, 1}, {75, 50}};
  int tried = 0;
  for (const PixelFormat pixels : kAllPixels) {
    for (const Size size : frames) {
      for (const Size input : inputs) {
        for (int variant = 0; variant < 16; ++variant) {
          FrameFormat frame;
          frame.pixels = pixels;
          frame.width = size.width;
          frame.height = size.height;
          if ((variant & 1) != 0) frame.fit = FrameFit::kLetterbox;
          if ((variant & 2) != 0) {
            const uint32_t row = size.width * (IsNv(pixels) ? 1 : 3);
            frame.stride = {row + 5, IsNv(pixels) ? row + 3 : 0};
          }
          if ((variant & 4) != 0 && size.width > 2) {
            frame.crop_x = IsNv(pixels) ? 4 : 3;
            frame.crop_y = IsNv(pixels) ? 2 : 1;
            frame.crop_width = size.width - (IsNv(pixels) ? 6 : 5);
            frame.crop_height = size.height - (IsNv(pixels) ? 8 : 6);
          }
          frame.bgr_input = (variant & 8) != 0;
          frame.pad = {1, 114, 250};
          const IoPort port = ImagePort(input.width, input.height);
          const auto sizes = CheckFrame(port, frame);
          ASSERT_TRUE(sizes.ok()) << sizes.status();
          const Planes planes(*sizes);

          const auto got = Convert(port, frame, planes);

          const auto wanted =
              Reference(frame, planes, input.width, input.height);
          ASSERT_EQ(got.size(), wanted.size());
          double worst = 0;
          for (size_t i = 0; i < got.size(); ++i) {
            worst = std::max(worst, std::abs(got[i] - wanted[i]));
          }
          // Half a step of rounding, the colours' rounding, and the weights'.
          ASSERT_LE(worst, IsNv(pixels) ? 1.6 : 0.7)
              << "pixels " << static_cast<int>(pixels) << ", " << size.width
              << "x" << size.height << " into " << input.width << "x"
              << input.height << ", variant " << variant;
          ++tried;
        }
      }
    }
  }
  EXPECT_EQ(tried, 4 * 4 * 5 * 16);
}

TEST(FrameTransferTest, FrameOfTheInputsSizeKeepsItsBytes) {
  const IoPort port = ImagePort(14, 10);
  FrameFormat frame{.pixels = PixelFormat::kRgb888, .width = 14, .height = 10};
  const Planes planes(*CheckFrame(port, frame));
  std::vector<uint8_t> same(14 * 10 * 3);
  std::memcpy(same.data(), planes.bytes[0].data(), same.size());

  EXPECT_EQ(Convert(port, frame, planes), same);
  frame.pixels = PixelFormat::kBgr888;
  frame.bgr_input = true;
  EXPECT_EQ(Convert(port, frame, planes), same);
  for (size_t i = 0; i < same.size(); i += 3) std::swap(same[i], same[i + 2]);
  frame.bgr_input = false;
  EXPECT_EQ(Convert(port, frame, planes), same);
}

// Values of the standard's colour bars.
TEST(FrameTransferTest, ColoursAreThoseOfTheStandard) {
  struct Colour {
    uint8_t y, cb, cr;
    std::vector<uint8_t> rgb;
  };
  const std::vector<Colour> colours = {
      {16, 128, 128, {0, 0, 0}},   {235, 128, 128, {255, 255, 255}},
      {81, 90, 240, {254, 0, 0}},  {145, 54, 34, {0, 255, 1}},
      {41, 240, 110, {0, 0, 255}}, {126, 128, 128, {128, 128, 128}}};
  const IoPort port = ImagePort(2, 2);
  for (const Colour& colour : colours) {
    for (const PixelFormat pixels : {PixelFormat::kNv12, PixelFormat::kNv21}) {
      FrameFormat frame{.pixels = pixels, .width = 2, .height = 2};
      Planes planes(*CheckFrame(port, frame));
      const bool swapped = pixels == PixelFormat::kNv21;
      std::fill(planes.bytes[0].begin(), planes.bytes[0].end(),
                std::byte{colour.y});
      planes.bytes[1] = {std::byte{swapped ? colour.cr : colour.cb},
                         std::byte{swapped ? colour.cb : colour.cr}};
      const auto picture = Convert(port, frame, planes);
      ASSERT_EQ(picture.size(), 12U);
      for (size_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(picture[c], colour.rgb[c], 1) << int{colour.y};
      }
    }
  }
}

std::string FrameError(const FrameFormat& frame, const IoPort& port) {
  const auto sizes = CheckFrame(port, frame);
  EXPECT_EQ(sizes.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(sizes.status().message());
}

std::string FrameError(const FrameFormat& frame) {
  return FrameError(frame, ImagePort(32, 32));
}

FrameFormat Nv12(uint32_t width = 64, uint32_t height = 48) {
  return {.pixels = PixelFormat::kNv12, .width = width, .height = height};
}

TEST(FrameTransferTest, PlanesNeedNoMoreThanTheirLastByte) {
  FrameFormat frame = Nv12();
  frame.stride = {80, 96};
  EXPECT_EQ(*CheckFrame(ImagePort(32, 32), frame),
            (driver::FrameSizes{80 * 47 + 64, 96 * 23 + 64}));
  frame.pixels = PixelFormat::kRgb888;
  frame.stride = {};
  EXPECT_EQ(*CheckFrame(ImagePort(32, 32), frame),
            (driver::FrameSizes{64 * 48 * 3, 0}));
}

TEST(FrameTransferTest, LargestStrideOfTheLargestFrameDoesNotOverflow) {
  FrameFormat frame = Nv12(driver::kMaxFrameSide, driver::kMaxFrameSide);
  frame.stride = {UINT32_MAX, UINT32_MAX};
  const auto sizes = CheckFrame(ImagePort(32, 32), frame);
  ASSERT_TRUE(sizes.ok());
  EXPECT_EQ((*sizes)[0], uint64_t{UINT32_MAX} * 16383 + 16384);
}

TEST(FrameTransferTest, StrideBelowARowIsRefusedWithBothNumbers) {
  FrameFormat frame = Nv12();
  frame.stride = {63, 0};
  EXPECT_THAT(FrameError(frame),
              HasSubstr("stride 63 of plane 0 is less than the "
                        "64 bytes of a row of 64 pixels in "
                        "NV12"));
  frame.stride = {0, 62};
  EXPECT_THAT(FrameError(frame), HasSubstr("stride 62 of plane 1"));
  frame.pixels = PixelFormat::kBgr888;
  frame.stride = {191, 0};
  EXPECT_THAT(FrameError(frame), HasSubstr("stride 191 of plane 0 is less than "
                                           "the 192 bytes"));
}

TEST(FrameTransferTest, OddNumbersOfNv12AreRefusedWithTheRule) {
  EXPECT_THAT(FrameError(Nv12(63, 48)),
              HasSubstr("width 63 is odd: NV12 has one colour sample for each "
                        "square of 2x2 pixels"));
  EXPECT_THAT(FrameError(Nv12(64, 47)), HasSubstr("height 47 is odd"));
  for (int i = 0; i < 4; ++i) {
    FrameFormat frame = Nv12();
    frame.crop_x = 8;
    frame.crop_y = 8;
    frame.crop_width = 16;
    frame.crop_height = 16;
    uint32_t* const numbers[] = {&frame.crop_x, &frame.crop_y,
                                 &frame.crop_width, &frame.crop_height};
    ++*numbers[i];
    EXPECT_THAT(FrameError(frame), HasSubstr("is odd")) << i;
    frame.pixels = PixelFormat::kRgb888;
    EXPECT_TRUE(CheckFrame(ImagePort(32, 32), frame).ok()) << i;
  }
}

TEST(FrameTransferTest, CropOutsideTheFrameIsRefused) {
  FrameFormat frame = Nv12();
  frame.crop_width = 32;
  EXPECT_THAT(FrameError(frame), HasSubstr("a crop of 32x0 has no pixels"));
  frame.crop_height = 32;
  frame.crop_x = 34;
  EXPECT_THAT(FrameError(frame), HasSubstr("the crop of 32x32 at 34,0 is not "
                                           "inside the frame of 64x48"));
  frame.crop_x = UINT32_MAX - 31;
  EXPECT_THAT(FrameError(frame), HasSubstr("is not inside"));
  frame.crop_x = 0;
  frame.crop_y = 18;
  EXPECT_THAT(FrameError(frame), HasSubstr("is not inside"));
}

TEST(FrameTransferTest, SizesAndNumbersThatDoNotExistAreRefused) {
  EXPECT_THAT(FrameError(Nv12(0, 48)), HasSubstr("0x48 pixels"));
  EXPECT_THAT(FrameError(Nv12(16386, 48)),
              HasSubstr("16386x48 pixels: each side is 1 to 16384"));
  FrameFormat frame = Nv12();
  frame.pixels = static_cast<PixelFormat>(9);
  EXPECT_THAT(FrameError(frame), HasSubstr("pixel format 9 does not exist"));
  frame = Nv12();
  frame.fit = static_cast<FrameFit>(2);
  EXPECT_THAT(FrameError(frame), HasSubstr("fit 2 does not exist"));
}

TEST(FrameTransferTest, OnlyImagesOfThreeChannelsTakeFrames) {
  const auto port = [](DataType type, const Shape& shape) {
    return *IoPort::Make(Direction::kInput, "x", type, shape, 8);
  };
  EXPECT_THAT(FrameError(Nv12(), port(DataType::kFloat32, {1, 4, 8, 8})),
              HasSubstr("frame for input 'x': it becomes a picture of 3 "
                        "channels, but the input is FP16 1x8x8x4"));
  EXPECT_THAT(FrameError(Nv12(), port(DataType::kFloat32, {1, 192})),
              HasSubstr("the input is FP16 1x192"));
  EXPECT_THAT(FrameError(Nv12(), port(DataType::kInt64, {1, 3, 8, 8})),
              HasSubstr("the input is INT64"));
  EXPECT_THAT(FrameError(Nv12(), port(DataType::kFloat32, {2, 3, 8, 8})),
              HasSubstr("the input takes 2 at once"));
  IoPort batch = ImagePort(8, 8);
  batch.Repeat(4);
  EXPECT_THAT(FrameError(Nv12(), batch),
              HasSubstr("the input takes 4 at once"));
}

TEST(FrameTransferTest, PlaneThatGoesAwayIsToldByItsNumber) {
  driver::InstallFaultGuard();
  const IoPort port = ImagePort(8, 8);
  const FrameFormat frame = Nv12();
  const auto sizes = *CheckFrame(port, frame);
  std::vector<std::byte> scratch(FrameScratch(port.shape()));
  for (const size_t lost : {0U, 1U}) {
    std::array<base::UniqueFd, 2> fds;
    std::array<base::Mapping, 2> planes;
    for (size_t p = 0; p < 2; ++p) {
      fds[p].reset(memfd_create("plane", MFD_CLOEXEC));
      ASSERT_EQ(ftruncate(fds[p].get(), static_cast<off_t>(sizes[p])), 0);
      planes[p] = *base::Mapping::OfFd(fds[p].get(), 0, sizes[p],
                                       base::Mapping::Access::kReadWrite);
    }
    const FramePlanes spans = {planes[0].bytes(), planes[1].bytes()};
    size_t gone = 9;
    EXPECT_TRUE(ConvertFrame(frame, spans, port.shape(), scratch.data(), &gone)
                    .has_value());
    ASSERT_EQ(ftruncate(fds[lost].get(), 0), 0);
    EXPECT_FALSE(ConvertFrame(frame, spans, port.shape(), scratch.data(), &gone)
                     .has_value());
    EXPECT_EQ(gone, lost);
  }
}

}  // namespace
}  // namespace rknnd::soft
