// Which products a SoC takes, where their numbers lie, and the bytes by which
// a device is told of one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "driver/matmul/matmul_layout.h"
#include "driver/matmul/matmul_spec.h"

namespace rknnd::matmul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kHalf = 1, kBytes = 2, kInt4 = 10;

Spec Of(int32_t type, const Shape& shape) {
  Spec spec;
  spec.type = type;
  spec.shapes = {shape};
  return spec;
}

std::string Refusal(const Spec& spec, const std::string& soc) {
  const base::Expected<void> checked = Check(spec, soc);
  return checked.ok() ? "" : checked.error().message;
}

TEST(MatmulSpecTest, EachSocTakesTheTypesOfTheGuidesTable) {
  const auto types = [](const std::string& soc) {
    std::set<int32_t> taken;
    for (int32_t type = 0; type < 20; ++type) {
      if (Check(Of(type, {1, 64, 64}), soc).ok()) taken.insert(type);
    }
    return taken;
  };
  EXPECT_THAT(types("rk3588"), ElementsAre(1, 2, 3, 4, 9, 10));
  EXPECT_THAT(types("rk3588s"), ElementsAre(1, 2, 3, 4, 9, 10));
  EXPECT_THAT(types("rk3576"), ElementsAre(1, 2, 4, 5, 6, 7, 8, 11, 12, 15));
  for (const char* soc : {"rk3562", "rk3566", "rk3568"}) {
    EXPECT_THAT(types(soc), ElementsAre(1, 2)) << soc;
  }
  for (const char* soc : {"rv1106", "rv1103b", "rk2118"}) {
    EXPECT_THAT(types(soc), ElementsAre()) << soc;
    EXPECT_THAT(Refusal(Of(kBytes, {1, 32, 32}), soc),
                HasSubstr("has no matmul API"));
  }
}

TEST(MatmulSpecTest, SizesOutsideOfTheTableAreRefusedWithTheLimit) {
  EXPECT_EQ(Refusal(Of(kBytes, {1, 32, 4096}), "rk3588"), "");
  EXPECT_THAT(Refusal(Of(kBytes, {1, 33, 64}), "rk3588"),
              HasSubstr("K is 33: with RKNN_INT8_MM_INT8_TO_INT32 the rk3588 "
                        "takes multiples of 32"));
  EXPECT_THAT(Refusal(Of(kBytes, {1, 32, 4128}), "rk3588"),
              HasSubstr("multiples of 32 up to 4096"));
  EXPECT_THAT(Refusal(Of(kInt4, {1, 32, 8256}), "rk3588"),
              HasSubstr("multiples of 64 up to 8192"));
  EXPECT_THAT(Refusal(Of(kBytes, {1, 10272, 64}), "rk3568"),
              HasSubstr("up to 10240"));
  EXPECT_EQ(Refusal(Of(kBytes, {1, 20480, 64}), "rk3588"), "");
  for (const Shape shape :
       {Shape{0, 32, 32}, Shape{-1, 32, 32}, Shape{1, 0, 32}, Shape{1, 32, 0},
        Shape{1, -32, 32}, Shape{INT32_MAX, 131072, 32}}) {
    EXPECT_NE(Refusal(Of(kBytes, shape), "rk3588"), "") << ShapeText(shape);
  }
}

// Guide and header differ: only what both refuse is refused.
TEST(MatmulSpecTest, OfTwoLimitsTheWiderOneHolds) {
  EXPECT_EQ(Refusal(Of(kHalf, {1, 16, 8}), "rk3566"), "");
  EXPECT_NE(Refusal(Of(kHalf, {1, 16, 8}), "rk3562"), "");
  EXPECT_EQ(Refusal(Of(kHalf, {1, 32, 16}), "rk3588"), "");
}

TEST(MatmulSpecTest, SomeSocsHaveNoTransposedB) {
  Spec spec = Of(kBytes, {1, 32, 32});
  spec.b_layout = Layout::kTransposed;
  EXPECT_EQ(Refusal(spec, "rk3562"), "");
  EXPECT_THAT(Refusal(spec, "rk3566"), HasSubstr("TP_NORM"));
}

TEST(MatmulSpecTest, GroupsDivideK) {
  Spec spec = Of(9, {1, 96, 32});
  spec.b_quantization = 4;
  for (const int32_t group : {0, -32, 64}) {
    spec.group = group;
    EXPECT_THAT(Refusal(spec, "rk3588"), HasSubstr("group_size")) << group;
  }
  spec.group = 32;
  EXPECT_EQ(Refusal(spec, "rk3588"), "");
  EXPECT_EQ(spec.ScaleCount(spec.shapes[0]), 96);
  spec.type = kBytes;
  EXPECT_THAT(Refusal(spec, "rk3588"), HasSubstr("not scaled"));
}

TEST(MatmulSpecTest, ComesBackFromItsBytes) {
  Spec spec = Of(9, {1, 96, 32});
  spec.b_layout = Layout::kNative;
  spec.native_ac = true;
  spec.b_quantization = 5;
  spec.ac_quantization = 1;
  spec.group = 32;
  spec.shapes.push_back({7, 128, 64});
  const std::vector<std::byte> bytes = Write(spec);
  ASSERT_TRUE(IsSpec(bytes));
  const base::Expected<Spec> back = Read(bytes);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(Write(*back), bytes);
  EXPECT_EQ(back->shapes, spec.shapes);
  // Any byte less, and any number out of its range.
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Read(std::span(bytes).first(size)).ok()) << size;
  }
  for (size_t at = 12; at < 28; at += 4) {
    for (const std::byte bad : {std::byte{0x40}, std::byte{0xff}}) {
      std::vector<std::byte> damaged = bytes;
      damaged[at] = bad;
      EXPECT_FALSE(Read(damaged).ok()) << at;
    }
  }
}

TEST(MatmulLayoutTest, FormsAreThoseOfTheGuidesTable) {
  const auto native = [](int32_t type, const Shape& shape, const char* soc) {
    Spec spec = Of(type, shape);
    spec.b_layout = Layout::kNative;
    spec.native_ac = true;
    return FormsOf(spec, shape, BlocksOf(type, soc));
  };
  const Forms half = native(kHalf, {3, 64, 48}, "rk3588");
  EXPECT_THAT(half.a.dims, ElementsAre(8, 3, 8));
  EXPECT_THAT(half.b.dims, ElementsAre(3, 2, 16, 32));
  EXPECT_THAT(half.c.dims, ElementsAre(12, 3, 4));
  EXPECT_EQ(half.a.bytes, 3U * 64 * 2);
  EXPECT_EQ(half.c.bytes, 3U * 48 * 4);
  const Forms bytes = native(kBytes, {3, 64, 64}, "rk3588");
  EXPECT_THAT(bytes.a.dims, ElementsAre(4, 3, 16));
  EXPECT_THAT(bytes.b.dims, ElementsAre(2, 2, 32, 32));
  EXPECT_THAT(bytes.c.dims, ElementsAre(16, 3, 4));
  const Forms int4 = native(kInt4, {3, 64, 128}, "rk3588");
  EXPECT_THAT(int4.a.dims, ElementsAre(2, 3, 32));
  EXPECT_THAT(int4.b.dims, ElementsAre(2, 2, 64, 32));
  EXPECT_THAT(int4.c.dims, ElementsAre(16, 3, 8));
  EXPECT_EQ(int4.b.bytes, 64U * 128 / 2);
  EXPECT_EQ(int4.c.bytes, 3U * 128 * 2);
  EXPECT_THAT(native(kBytes, {3, 64, 48}, "rk3566").a.dims,
              ElementsAre(8, 3, 8));
  EXPECT_THAT(native(kHalf, {3, 64, 48}, "rk3566").b.dims,
              ElementsAre(6, 4, 8, 16));
  EXPECT_THAT(native(kHalf, {3, 64, 48}, "rk3562").b.dims,
              ElementsAre(6, 2, 8, 32));
  // Of mixed types B lies as the type of C goes with.
  EXPECT_THAT(native(7, {3, 64, 48}, "rk3576").b.dims,
              ElementsAre(3, 2, 16, 32));
  EXPECT_THAT(native(11, {3, 64, 64}, "rk3576").b.dims,
              ElementsAre(2, 2, 32, 32));
}

TEST(MatmulLayoutTest, EachNumberOfBHasAPlaceOfItsOwn) {
  const Shape shape = {1, 8192 + 64, 96};
  for (const Layout layout :
       {Layout::kNormal, Layout::kNative, Layout::kTransposed}) {
    const PlacesOfB places(layout, shape, BlocksOf(kBytes, "rk3588"));
    std::vector<bool> taken(static_cast<size_t>(shape.k) * 96);
    for (int64_t k = 0; k < shape.k; ++k) {
      for (int64_t n = 0; n < shape.n; ++n) {
        const int64_t at = places.Of(k, n);
        ASSERT_LT(at, static_cast<int64_t>(taken.size()));
        ASSERT_FALSE(taken[static_cast<size_t>(at)]) << k << ' ' << n;
        taken[static_cast<size_t>(at)] = true;
      }
    }
  }
}

// The guide's example code, and a second piece of long K by itself.
TEST(MatmulLayoutTest, NativeBIsAsTheGuideSays) {
  const PlacesOfB places(Layout::kNative, {1, 8192 + 64, 96},
                         BlocksOf(kBytes, "rk3588"));
  // [N/32][K/32][32][32]
  EXPECT_EQ(places.Of(0, 1), 32);
  EXPECT_EQ(places.Of(1, 0), 1);
  EXPECT_EQ(places.Of(32, 0), 1024);
  EXPECT_EQ(places.Of(0, 32), 256 * 1024);
  EXPECT_EQ(places.Of(8192, 0), 8192 * 96);
  EXPECT_EQ(places.Of(8192, 32), 8192 * 96 + 2 * 1024);
  EXPECT_EQ(
      PlacesOfB(Layout::kNative, {1, 8192, 96}, BlocksOf(kBytes, "rk3576"))
          .Of(4096, 0),
      4096 * 96);
}

TEST(MatmulLayoutTest, Int4KeepsItsOrderInPairs) {
  const Shape shape = {1, 32, 64};
  std::vector<std::byte> from(32 * 64 / 2), to(from.size());
  // Number of row k, column n: (k + n) % 16.
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t k = i * 2 / 64, n = i * 2 % 64;
    from[i] = static_cast<std::byte>((k + n) % 16 | ((k + n + 1) % 16) << 4);
  }
  const Blocks blocks = BlocksOf(kInt4, "rk3588");
  MakeNative(kInt4, shape, blocks, from.data(), to.data());
  const PlacesOfB places(Layout::kNative, shape, blocks);
  for (int64_t k = 0; k < 32; ++k) {
    for (int64_t n = 0; n < 64; ++n) {
      const int64_t at = places.Of(k, n);
      const auto pair = static_cast<unsigned>(to[static_cast<size_t>(at / 2)]);
      EXPECT_EQ(at % 2 == 0 ? pair & 15 : pair >> 4, (k + n) % 16);
    }
  }
}

}  // namespace
}  // namespace rknnd::matmul
