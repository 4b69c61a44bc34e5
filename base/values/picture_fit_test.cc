#include "base/values/picture_fit.h"

#include "gtest/gtest.h"

namespace rknnd::base {
namespace {

TEST(PictureFitTest, StretchedPictureFillsTheInput) {
  EXPECT_EQ(FitPicture(1920, 1080, 320, 240, false),
            (PictureFit{0, 0, 320, 240}));
}

TEST(PictureFitTest, WidePictureHasBarsAboveAndBelow) {
  EXPECT_EQ(FitPicture(1920, 1080, 640, 640, true),
            (PictureFit{0, 140, 640, 360}));
}

TEST(PictureFitTest, TallPictureHasBarsAtItsSides) {
  EXPECT_EQ(FitPicture(1080, 1920, 640, 640, true),
            (PictureFit{140, 0, 360, 640}));
}

TEST(PictureFitTest, SmallPictureIsEnlarged) {
  EXPECT_EQ(FitPicture(4, 2, 16, 16, true), (PictureFit{0, 4, 16, 8}));
}

TEST(PictureFitTest, HalvesAreRoundedUpAndTheOddPixelIsBelow) {
  // 5 * 10 / 20 = 2.5.
  EXPECT_EQ(FitPicture(20, 5, 10, 10, true), (PictureFit{0, 3, 10, 3}));
}

TEST(PictureFitTest, NothingVanishesAndNothingOverflows) {
  EXPECT_EQ(FitPicture(16384, 1, 8, 8, true), (PictureFit{0, 3, 8, 1}));
  const uint32_t most = uint32_t{1} << 31;
  EXPECT_EQ(FitPicture(most, most, most, most, true),
            (PictureFit{0, 0, most, most}));
}

}  // namespace
}  // namespace rknnd::base
