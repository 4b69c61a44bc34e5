#include "examples/detector/scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "examples/detector/frame.h"
#include "examples/detector/painter.h"

namespace rknnd::detector {
namespace {

constexpr int kWidth = 480, kHeight = 270;

struct Shot {
  std::vector<uint8_t> bytes;
  std::vector<Figure> figures;
};

Shot Film(Scene& scene, double seconds, int width = kWidth,
          int height = kHeight) {
  Shot shot;
  shot.bytes.resize(Nv12Bytes(width, height));
  shot.figures = scene.Draw(seconds, Nv12In(shot.bytes.data(), width, height));
  return shot;
}

TEST(SceneTest, TheSameSeedGivesTheSameFrame) {
  Scene first(7, kWidth, kHeight), second(7, kWidth, kHeight);
  EXPECT_EQ(Film(first, 2.5).bytes, Film(second, 2.5).bytes);
}

TEST(SceneTest, AFrameDoesNotDependOnTheFramesBeforeIt) {
  Scene scene(7, kWidth, kHeight);
  const Shot before = Film(scene, 1);
  Film(scene, 9);
  EXPECT_EQ(Film(scene, 1).bytes, before.bytes);
}

TEST(SceneTest, AnotherSeedGivesAnotherPlace) {
  Scene first(7, kWidth, kHeight), second(8, kWidth, kHeight);
  EXPECT_NE(Film(first, 0).bytes, Film(second, 0).bytes);
}

TEST(SceneTest, FiguresMove) {
  for (uint64_t seed = 1; seed < 50; ++seed) {
    Scene scene(seed, kWidth, kHeight);
    const Shot early = Film(scene, 0), late = Film(scene, 0.5);
    if (early.figures.empty() || late.figures.size() != early.figures.size()) {
      continue;
    }
    const bool moved = std::any_of(
        early.figures.begin(), early.figures.end(), [&](const Figure& f) {
          const auto i = static_cast<size_t>(&f - early.figures.data());
          return f.box.left != late.figures[i].box.left;
        });
    EXPECT_TRUE(moved) << "seed " << seed;
  }
}

TEST(SceneTest, BoxesLieInTheFrame) {
  for (uint64_t seed = 1; seed < 100; ++seed) {
    Scene scene(seed, kWidth, kHeight);
    for (const Figure& figure : Film(scene, 3).figures) {
      EXPECT_GE(figure.box.left, 0);
      EXPECT_GE(figure.box.top, 0);
      EXPECT_LE(figure.box.right, 1);
      EXPECT_LE(figure.box.bottom, 1);
      EXPECT_LT(figure.box.left, figure.box.right);
      EXPECT_LT(figure.box.top, figure.box.bottom);
    }
  }
}

TEST(SceneTest, BothKindsAreSeenOften) {
  size_t people = 0, vehicles = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Scene scene(seed, kWidth, kHeight);
    for (const Figure& figure : Film(scene, 0).figures) {
      (figure.kind == Kind::kPerson ? people : vehicles) += 1;
    }
  }
  EXPECT_GT(people, 100U);
  EXPECT_GT(vehicles, 50U);
}

TEST(SceneTest, BoxesDoNotDependOnTheSizeOfTheFrame) {
  Scene small(11, kWidth, kHeight), large(11, 1920, 1080);
  const Shot a = Film(small, 4), b = Film(large, 4, 1920, 1080);
  ASSERT_EQ(a.figures.size(), b.figures.size());
  for (size_t i = 0; i < a.figures.size(); ++i) {
    EXPECT_NEAR(a.figures[i].box.left, b.figures[i].box.left, 1e-5);
    EXPECT_NEAR(a.figures[i].box.bottom, b.figures[i].box.bottom, 1e-5);
  }
}

TEST(SceneTest, RowsMayHaveGapsThatStayUntouched) {
  Scene scene(7, kWidth, kHeight);
  const Shot packed = Film(scene, 1);
  constexpr size_t kStride = kWidth + 32;
  std::vector<uint8_t> bytes(kStride * kHeight * 3 / 2, 0xAB);

  scene.Draw(1, {bytes.data(), bytes.data() + kStride * kHeight, kWidth,
                 kHeight, kStride});

  for (size_t y = 0; y < kHeight * 3 / 2; ++y) {
    const auto row = bytes.begin() + static_cast<std::ptrdiff_t>(y * kStride);
    ASSERT_TRUE(std::equal(
        row, row + kWidth,
        packed.bytes.begin() + static_cast<std::ptrdiff_t>(y * kWidth)));
    ASSERT_TRUE(std::all_of(row + kWidth, row + kStride,
                            [](uint8_t v) { return v == 0xAB; }));
  }
}

TEST(FrameTest, AColourComesBackThroughTheFrame) {
  std::vector<uint8_t> bytes(Nv12Bytes(64, 36));
  const Nv12 frame = Nv12In(bytes.data(), 64, 36);
  Painter painter(frame, Light());
  painter.Rectangle(0, 0, 2, 1, {200, 90, 30});
  std::vector<uint8_t> rgb(16 * 9 * 3);

  Shrinker().ToRgb(frame, 16, 9, rgb.data());

  for (size_t i = 0; i < rgb.size(); i += 3) {
    ASSERT_NEAR(rgb[i], 200, 4);
    ASSERT_NEAR(rgb[i + 1], 90, 4);
    ASSERT_NEAR(rgb[i + 2], 30, 4);
  }
}

TEST(FrameTest, ShrinkingAveragesWhatAPixelCovers) {
  std::vector<uint8_t> bytes(Nv12Bytes(8, 8), 128);
  const Nv12 frame = Nv12In(bytes.data(), 8, 8);
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) {
      frame.luma[y * 8 + x] = x % 2 == 0 ? 16 : 235;  // black and white
    }
  }
  std::vector<uint8_t> rgb(4 * 4 * 3);

  Shrinker().ToRgb(frame, 4, 4, rgb.data());

  for (const uint8_t v : rgb) EXPECT_NEAR(v, 128, 2);
}

TEST(PainterTest, ShapesOutsideOfTheFrameDrawNothing) {
  std::vector<uint8_t> bytes(Nv12Bytes(64, 36), 77);
  const std::vector<uint8_t> before = bytes;
  Painter painter(Nv12In(bytes.data(), 64, 36), Light());

  painter.Ellipse({-1, 0.5}, 0.5, 0.5, {255, 0, 0});
  painter.Rectangle(3, 0, 4, 1, {255, 0, 0});
  painter.Limb({0.5, -2}, {0.9, -1}, 0.1, 0.1, {255, 0, 0});
  painter.Shadow({0.5, 3}, 1, 1, 0.5);

  EXPECT_EQ(bytes, before);
}

}  // namespace
}  // namespace rknnd::detector
