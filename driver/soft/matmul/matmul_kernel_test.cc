// Every type in every layout, on every level of CPU that this machine has,
// beside sums one by one.

#include "driver/soft/matmul/matmul_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/values/half.h"

namespace rknnd::soft {
namespace {

using matmul::Element;
using matmul::Layout;
using matmul::Shape;
using matmul::Spec;

// A matrix by its numbers, and as bytes.
struct Matrix {
  std::vector<double> numbers;
  std::vector<std::byte> bytes;
};

void Put(Element element, int64_t at, double value,
         std::vector<std::byte>& bytes) {
  const auto i = static_cast<size_t>(at);
  if (element == Element::kInt4) {
    const auto half = static_cast<unsigned>(static_cast<int>(value)) & 0xf;
    bytes[i / 2] |= static_cast<std::byte>(i % 2 == 0 ? half : half << 4);
  } else if (element == Element::kInt8) {
    bytes[i] = static_cast<std::byte>(static_cast<int>(value));
  } else {
    const base::Half half = base::FloatToHalf(static_cast<float>(value));
    std::memcpy(bytes.data() + i * 2, &half, sizeof half);
  }
}

double Get(Element element, int64_t at, const std::vector<std::byte>& bytes) {
  const std::byte* const from =
      bytes.data() + static_cast<size_t>(at) * matmul::BitsOf(element) / 8;
  const auto read = [from](auto value) {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  switch (element) {
    case Element::kInt8:
      return read(int8_t{});
    case Element::kInt16:
      return read(int16_t{});
    case Element::kInt32:
      return read(int32_t{});
    case Element::kFloat16:
      return base::HalfToFloat(read(base::Half{}));
    case Element::kBfloat16: {
      const uint32_t bits = uint32_t{read(uint16_t{})} << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    default:
      return read(float{});
  }
}

struct Case {
  Spec spec;
  Shape shape;
  std::string soc;
  bool scaled = false;
};

class MatmulKernelTest : public ::testing::Test {
 protected:
  double Random(Element element) {
    switch (element) {
      case Element::kInt4:
        return std::uniform_int_distribution<>(-8, 7)(random_);
      case Element::kInt8:
        return std::uniform_int_distribution<>(-128, 127)(random_);
      default:
        return base::HalfToFloat(base::FloatToHalf(
            std::uniform_real_distribution<float>(-2, 2)(random_)));
    }
  }

  template <class PlaceOf>
  Matrix Make(Element element, uint64_t bytes, int64_t rows, int64_t columns,
              const PlaceOf& place) {
    Matrix matrix;
    matrix.bytes.resize(bytes);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        matrix.numbers.push_back(Random(element));
        Put(element, place(r, c), matrix.numbers.back(), matrix.bytes);
      }
    }
    return matrix;
  }

  void Check(const Case& of) {
    const auto [m, k, n] = of.shape;
    const matmul::Blocks blocks = matmul::BlocksOf(of.spec.type, of.soc);
    const matmul::Forms forms = matmul::FormsOf(of.spec, of.shape, blocks);
    const matmul::Elements elements = matmul::ElementsOf(of.spec.type);
    const bool native = of.spec.native_ac;
    const Matrix a =
        Make(elements.a, forms.a.bytes, m, k, [&](int64_t r, int64_t c) {
          const int64_t block = blocks.a_k;
          return native ? (c / block * m + r) * block + c % block : r * k + c;
        });
    const matmul::PlacesOfB places(of.spec.b_layout, of.shape, blocks);
    const Matrix b =
        Make(elements.b, forms.b.bytes, k, n,
             [&](int64_t r, int64_t c) { return places.Of(r, c); });
    const bool a_is_half = elements.a == Element::kFloat16;
    std::vector<float> scales = {1, 0, 1, 0};
    const int64_t count = of.spec.ScaleCount(of.shape);
    if (of.scaled) {
      scales = {a_is_half ? 1.0F : 0.03F, a_is_half ? 0.0F : 3.0F, 20.0F,
                -5.0F};
      for (int64_t i = 0; i < count; ++i) {
        scales.push_back(0.5F + 0.01F * static_cast<float>(i % 90));
      }
    } else {
      scales.resize(static_cast<size_t>(4 + count), 1.0F);
    }
    const bool asymmetric = of.spec.b_quantization % 2 != 0;
    for (int64_t i = 0; i < count; ++i) {
      scales.push_back(asymmetric ? static_cast<float>(i % 5 - 2) : 0.0F);
    }
    const auto entry = [&](int64_t row, int64_t column) {
      switch (of.spec.b_scales()) {
        case matmul::Scales::kPerLayer:
          return int64_t{0};
        case matmul::Scales::kPerChannel:
          return column;
        case matmul::Scales::kPerGroup:
          break;
      }
      return row / of.spec.group * n + column;
    };
    const bool uses = of.spec.is_scaled();
    std::vector<double> expected, sizes;
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0, size = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double left = a.numbers[static_cast<size_t>(r * k + i)];
          const double right = b.numbers[static_cast<size_t>(i * n + c)];
          const auto at = static_cast<size_t>(4 + entry(i, c));
          const double product =
              uses ? (left - double{scales[1]}) *
                         (right -
                          double{scales[at + static_cast<size_t>(count)]}) *
                         double{scales[at]} * double{scales[0]}
                   : left * right;
          sum += product;
          size += std::abs(product);
        }
        if (elements.c == Element::kInt8) {
          sum = std::clamp(
              std::nearbyint(sum / double{scales[2]}) + double{scales[3]},
              -128.0, 127.0);
        }
        if (elements.c == Element::kInt16)
          sum = std::clamp(sum, -32768.0, 32767.0);
        expected.push_back(sum);
        sizes.push_back(size);
      }
    }
    for (const CpuLevel level : UsableCpuLevels()) {
      const MatmulKernel kernel(of.spec, of.shape, blocks, level);
      for (const uint32_t parts : {1U, 2U}) {
        if (parts > kernel.most_parts()) continue;
        std::vector<std::byte> c(forms.c.bytes, std::byte{0x77});
        std::vector<std::byte> scratch(kernel.scratch_size() + 64);
        for (uint32_t part = 0; part < parts; ++part) {
          kernel.Run({part, parts},
                     {.a = a.bytes.data(),
                      .b = b.bytes.data(),
                      .scales = uses ? reinterpret_cast<const std::byte*>(
                                           scales.data())
                                     : nullptr,
                      .c = c.data()},
                     scratch.data());
        }
        ExpectNear(of, c, expected, sizes, blocks, CpuLevelName(level));
      }
    }
  }

  static void ExpectNear(const Case& of, const std::vector<std::byte>& c,
                         const std::vector<double>& expected,
                         const std::vector<double>& sizes,
                         const matmul::Blocks& blocks, const char* level) {
    const Element element = matmul::ElementsOf(of.spec.type).c;
    const bool sums_floats =
        matmul::ElementsOf(of.spec.type).a == Element::kFloat16 ||
        of.spec.b_scales() == matmul::Scales::kPerGroup;
    // Of the last rounding, and of sums as floats.
    double step = 0;
    if (element == Element::kFloat16) step = 1.0 / 2048;
    if (element == Element::kBfloat16) step = 1.0 / 256;
    if (element == Element::kFloat32) step = 1e-7;
    const double sum_step = sums_floats ? 1e-6 : 0;
    const int64_t n = of.shape.n, m = of.shape.m;
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t block = blocks.c_n;
        const int64_t at = of.spec.native_ac
                               ? (i / block * m + r) * block + i % block
                               : r * n + i;
        const auto number = static_cast<size_t>(r * n + i);
        const double want = expected[number];
        // Beyond the largest half.
        const double got = Get(element, at, c);
        if (std::isinf(got) && std::abs(want) > 65504) continue;
        ASSERT_NEAR(got, want,
                    std::abs(want) * step + sizes[number] * sum_step + 1e-9)
            << matmul::TypeName(of.spec.type) << " of " << of.soc << ", "
            << matmul::ShapeText(of.shape) << ", row " << r << ", column " << i
            << ", B " << static_cast<int>(of.spec.b_layout) << ", quantised "
            << of.spec.b_quantization << ", " << level;
      }
    }
  }

  std::mt19937 random_{7};
};

const std::vector<std::string> kSocs = {"rk3588", "rk3576", "rk3562", "rk3566"};

TEST_F(MatmulKernelTest, EveryTypeInEveryLayoutIsRight) {
  int tried = 0;
  for (const std::string& soc : kSocs) {
    for (int32_t type = 1; type < 16; ++type) {
      for (const Layout layout :
           {Layout::kNormal, Layout::kNative, Layout::kTransposed}) {
        for (const bool native : {false, true}) {
          Case of;
          of.spec.type = type;
          of.spec.b_layout = layout;
          of.spec.native_ac = native;
          of.soc = soc;
          for (const Shape shape : {Shape{1, 64, 192}, Shape{5, 96, 64}}) {
            of.spec.shapes = {shape};
            of.shape = shape;
            if (!matmul::Check(of.spec, soc).ok()) continue;
            ++tried;
            Check(of);
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 200);
}

TEST_F(MatmulKernelTest, ScalesAndZeroPointsAreUsedInEveryQuantisation) {
  for (const std::string& soc :
       {std::string("rk3588"), std::string("rk3576")}) {
    for (const int32_t type : {3, 5, 7, 8, 9, 12, 15}) {
      for (int32_t quantization = 0; quantization < 6; ++quantization) {
        for (const Layout layout :
             {Layout::kNormal, Layout::kNative, Layout::kTransposed}) {
          Case of;
          of.spec.type = type;
          of.spec.b_layout = layout;
          of.spec.b_quantization = quantization;
          of.spec.ac_quantization = 1;
          of.spec.group = quantization >= 4 ? 32 : 0;
          of.shape = {3, 128, 96};
          of.spec.shapes = {of.shape};
          of.soc = soc;
          of.scaled = true;
          // A scale for each group is summed as floats, so not quite exact.
          if (type == 3 && quantization >= 4) continue;
          if (matmul::Check(of.spec, soc).ok()) Check(of);
        }
      }
    }
  }
}

// Rows in several turns, columns that end within a block, K in pieces.
TEST_F(MatmulKernelTest, LargeAndOddSizesAreRight) {
  const auto check = [this](int32_t type, const Shape& shape, Layout layout,
                            const char* soc) {
    Case of;
    of.spec.type = type;
    of.spec.b_layout = layout;
    of.shape = shape;
    of.spec.shapes = {shape};
    of.soc = soc;
    ASSERT_TRUE(matmul::Check(of.spec, soc).ok());
    Check(of);
  };
  for (const Layout layout :
       {Layout::kNormal, Layout::kNative, Layout::kTransposed}) {
    check(2, {2, 8192 + 96, 32}, layout, "rk3588");
    check(11, {2, 4096 + 32, 32}, layout, "rk3576");
    check(1, {2, 4096 + 32, 16}, layout, "rk3576");
    check(2, {300, 64, 160}, layout, "rk3588");
    check(4, {270, 32, 48}, layout, "rk3588");
  }
  check(1, {3, 16, 8}, Layout::kNative, "rk3566");
  check(1, {3, 48, 72}, Layout::kNormal, "rk3568");
}

TEST_F(MatmulKernelTest, NumbersThatAreNoNumbersDoNoHarm) {
  Spec spec;
  spec.type = 3;
  spec.b_quantization = 3;
  const Shape shape = {2, 32, 32};
  spec.shapes = {shape};
  const matmul::Blocks blocks = matmul::BlocksOf(3, "rk3588");
  const MatmulKernel kernel(spec, shape, blocks);
  std::vector<std::byte> a(64, std::byte{1}), b(1024, std::byte{1}), c(64);
  std::vector<std::byte> scratch(kernel.scratch_size());
  for (const float bad : {NAN, INFINITY, -INFINITY, 1e30F, 0.0F}) {
    const std::vector<float> scales(4 + 64, bad);
    kernel.Run({0, 1},
               {.a = a.data(),
                .b = b.data(),
                .scales = reinterpret_cast<const std::byte*>(scales.data()),
                .c = c.data()},
               scratch.data());
  }
}

}  // namespace
}  // namespace rknnd::soft
