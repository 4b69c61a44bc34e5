// Elementwise operators, pooling and normalisation: the same answers blocked
// and dense, with the padding of blocked tensors left zero.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <limits>

#include "driver/soft/kernels/elementwise/activation.h"
#include "driver/soft/kernels/testing/one_node.h"

namespace rknnd::soft {
namespace {

using testing::Noise;
using testing::OneNode;

const Shape kShape = {2, 19, 5, 4};
constexpr int64_t kCount = 2 * 19 * 5 * 4;
const Shape kPerChannel = {1, 19, 1, 1};

struct ElementCase {
  const char* name;
  std::function<OneNode()> make;
};

void PrintTo(const ElementCase& c, std::ostream* out) { *out << c.name; }

class PlacementTest : public ::testing::TestWithParam<ElementCase> {};

TEST_P(PlacementTest, BlockedEqualsDense) {
  const auto dense = GetParam().make().Run(1);
  ASSERT_TRUE(dense.ok()) << dense.status();
  for (const int block : {8, 16}) {
    OneNode node = GetParam().make();
    const auto blocked = node.Run(block);
    ASSERT_TRUE(blocked.ok()) << blocked.status();
    EXPECT_TRUE(node.was_blocked());
    EXPECT_TRUE(node.padding_is_zero()) << "block " << block;
    ASSERT_EQ(blocked->size(), dense->size());
    for (size_t i = 0; i < dense->size(); ++i) {
      ASSERT_NEAR((*blocked)[i], (*dense)[i], 1e-5) << "element " << i;
    }
  }
}

OneNode Unary(const char* type) {
  return OneNode(type).Values(kShape, Noise(kCount));
}
OneNode BinaryNode(const char* type, const Shape& other, int64_t count) {
  return OneNode(type)
      .Values(kShape, Noise(kCount))
      .Values(other, Noise(count, 7));
}
OneNode Pool(const char* type) {
  return Unary(type)
      .With("kernel_shape", std::vector<int64_t>{3, 2})
      .With("strides", std::vector<int64_t>{2, 1})
      .With("pads", std::vector<int64_t>{1, 0, 1, 1});
}

INSTANTIATE_TEST_SUITE_P(
    Operators, PlacementTest,
    ::testing::Values(
        ElementCase{"Relu", [] { return Unary("Relu"); }},
        ElementCase{"Sigmoid", [] { return Unary("Sigmoid"); }},
        ElementCase{"Exp", [] { return Unary("Exp"); }},
        ElementCase{"Cos", [] { return Unary("Cos"); }},
        ElementCase{
            "Clip",
            [] {
              return Unary("Clip").Floats({}, {0.25F}).Floats({}, {0.5F});
            }},
        ElementCase{"Add", [] { return BinaryNode("Add", kShape, kCount); }},
        ElementCase{"AddNumber", [] { return BinaryNode("Add", {}, 1); }},
        ElementCase{"MulChannel",
                    [] { return BinaryNode("Mul", kPerChannel, 19); }},
        ElementCase{"DivChannel",
                    [] { return BinaryNode("Div", kPerChannel, 19); }},
        ElementCase{"SubFromChannelOfEachImage",
                    [] {
                      return OneNode("Sub")
                          .Values({2, 19, 1, 1}, Noise(38, 7))
                          .Values(kShape, Noise(kCount));
                    }},
        ElementCase{"MaxNumber", [] { return BinaryNode("Max", {1}, 1); }},
        ElementCase{"SquareRoot",
                    [] { return Unary("Pow").Floats({}, {2.0F}); }},
        ElementCase{"PRelu",
                    [] {
                      return Unary("PRelu").Floats({19, 1, 1}, Noise(19, 2));
                    }},
        ElementCase{"PReluNumber",
                    [] { return Unary("PRelu").Floats({1}, {0.25F}); }},
        ElementCase{"MaxPool", [] { return Pool("MaxPool"); }},
        ElementCase{"AveragePool", [] { return Pool("AveragePool"); }},
        ElementCase{"DilatedMaxPool",
                    [] {
                      return Pool("MaxPool").With("dilations",
                                                  std::vector<int64_t>{2, 1});
                    }},
        ElementCase{"PaddedAverage",
                    [] {
                      return Pool("AveragePool")
                          .With("count_include_pad", int64_t{1})
                          .With("ceil_mode", int64_t{1});
                    }},
        ElementCase{"GlobalAveragePool",
                    [] { return Unary("GlobalAveragePool"); }},
        ElementCase{"GlobalMaxPool", [] { return Unary("GlobalMaxPool"); }},
        ElementCase{"Identity", [] { return Unary("Identity"); }},
        ElementCase{"BatchNormalization",
                    [] {
                      return Unary("BatchNormalization")
                          .Floats({19}, Noise(19, 2))
                          .Floats({19}, Noise(19, 3))
                          .Floats({19}, Noise(19, 4))
                          .Floats({19}, std::vector<float>(19, 0.5F))
                          .Then(Activation::kSigmoid);
                    }},
        ElementCase{
            "Nearest",
            [] {
              return Unary("Resize").NoInput().Floats({4}, {1, 1, 2, 2});
            }},
        ElementCase{"Linear",
                    [] {
                      return Unary("Resize")
                          .NoInput()
                          .NoInput()
                          .Ints({4}, {2, 19, 9, 3})
                          .With("mode", std::string("linear"));
                    }}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(ElementwiseTest, ConcatOfWholeBlocksIsBlocked) {
  OneNode node("Concat");
  node.Values({1, 32, 3, 3}, Noise(288, 1))
      .Values({1, 5, 3, 3}, Noise(45, 2))
      .With("axis", int64_t{1});
  const auto blocked = node.Run(16);
  ASSERT_TRUE(blocked.ok()) << blocked.status();
  EXPECT_TRUE(node.was_blocked());
  const auto dense = node.Run(1);
  ASSERT_TRUE(dense.ok());
  EXPECT_EQ(*blocked, *dense);
}

TEST(ElementwiseTest, ConcatInTheMiddleOfABlockStaysDense) {
  OneNode node("Concat");
  node.Values({1, 5, 3, 3}, Noise(45, 1))
      .Values({1, 32, 3, 3}, Noise(288, 2))
      .With("axis", int64_t{1});
  ASSERT_TRUE(node.Run(16).ok());
  EXPECT_FALSE(node.was_blocked());
}

// The vectorised functions over their whole range.
TEST(ActivationTest, VectorisedFunctionsAreExact) {
  std::vector<float> x;
  for (float v = -100.0F; v <= 100.0F; v += 0.0371F) x.push_back(v);
  std::vector<float> y(x.size());
  const auto n = static_cast<int64_t>(x.size());
  const auto check = [&](FloatLoop loop, double (*want)(double)) {
    loop(x.data(), y.data(), n, 0.0F, 0.0F);
    for (size_t i = 0; i < x.size(); ++i) {
      const double w = want(double{x[i]});
      if (std::fabs(w) > std::numeric_limits<float>::max()) {
        EXPECT_TRUE(std::isinf(y[i])) << x[i];
      } else {
        EXPECT_NEAR(y[i], w, 1e-6 * std::fabs(w) + 1e-37) << x[i];
      }
    }
  };
  check(ExpLoop(), [](double v) { return std::exp(v); });
  check(ErfLoop(), [](double v) { return std::erf(v); });
  check(LoopOf(Activation::kTanh), [](double v) { return std::tanh(v); });
  // Far below zero the sigmoid is as small as a float gets.
  for (float& v : x) v = std::fmax(v, -80.0F);
  check(LoopOf(Activation::kSigmoid),
        [](double v) { return 1.0 / (1.0 + std::exp(-v)); });
  check(LoopOf(Activation::kSwish),
        [](double v) { return v / (1.0 + std::exp(-v)); });
  // One and a number close to -1 have few digits left.
  for (float& v : x) v = std::fmax(v, -2.0F);
  check(LoopOf(Activation::kGeluTanh), [](double v) {
    return 0.5 * v *
           (1.0 + std::tanh(std::sqrt(2.0 / 3.14159265358979) *
                            (v + 0.044715 * v * v * v)));
  });
  for (float& v : x) v = std::fmax(v, -0.5F);
  check(LoopOf(Activation::kGelu), [](double v) {
    return 0.5 * v * (1.0 + std::erf(v * std::sqrt(0.5)));
  });
}

TEST(ActivationTest, NotANumberStaysOne) {
  // Longer than a vector, and an end.
  const std::vector<float> x(37, std::numeric_limits<float>::quiet_NaN());
  for (const Activation activation :
       {Activation::kRelu, Activation::kLeakyRelu, Activation::kClip,
        Activation::kSigmoid, Activation::kTanh, Activation::kHardSigmoid,
        Activation::kHardSwish, Activation::kSwish, Activation::kGelu,
        Activation::kGeluTanh}) {
    std::vector<float> y(x.size());
    LoopOf(activation)(x.data(), y.data(), 37, -1.0F, 1.0F);
    EXPECT_TRUE(std::all_of(y.begin(), y.end(), [](float v) {
      return std::isnan(v);
    })) << static_cast<int>(activation);
  }
}

// Squares of four by four in registers, and what is left around them.
TEST(TransposeTest, MatricesAreTurned) {
  for (const Shape& shape :
       {Shape{1, 4, 4}, Shape{2, 7, 5}, Shape{1, 70, 9}, Shape{3, 1, 6}}) {
    const std::vector<float> x = Noise(shape[0] * shape[1] * shape[2]);
    const auto y = OneNode("Transpose")
                       .Values(shape, x)
                       .With("perm", std::vector<int64_t>{0, 2, 1})
                       .Run();
    ASSERT_TRUE(y.ok()) << y.status();
    for (int64_t i = 0; i < std::ssize(x); ++i) {
      const int64_t column = i % shape[2], row = i / shape[2] % shape[1];
      const int64_t matrix = i / (shape[1] * shape[2]) * shape[1] * shape[2];
      ASSERT_EQ((*y)[static_cast<size_t>(matrix + column * shape[1] + row)],
                x[static_cast<size_t>(i)])
          << ShapeText(shape) << ", element " << i;
    }
  }
}

TEST(ReduceTest, ColumnsAreTakenSideBySide) {
  constexpr size_t kRows = 5, kColumns = 37;
  const std::vector<float> x = Noise(2 * kRows * kColumns);
  const auto y = OneNode("ReduceMean")
                     .Values({2, kRows, kColumns}, x)
                     .With("axes", std::vector<int64_t>{1})
                     .Run();
  ASSERT_TRUE(y.ok()) << y.status();
  ASSERT_EQ(y->size(), 2 * kColumns);
  for (size_t i = 0; i < y->size(); ++i) {
    double sum = 0.0;
    for (size_t r = 0; r < kRows; ++r) {
      sum += x[(i / kColumns * kRows + r) * kColumns + i % kColumns];
    }
    EXPECT_NEAR((*y)[i], sum / kRows, 1e-6) << i;
  }
}

TEST(ElementwiseTest, OneNumberMayBeOnEitherSide) {
  const std::vector<float> x = Noise(2 * 16 * 6);
  for (const int block : {1, 16}) {
    const auto left =
        OneNode("Sub").Values({1}, {2.0F}).Values({2, 16, 2, 3}, x).Run(block);
    const auto right =
        OneNode("Sub").Values({2, 16, 2, 3}, x).Values({1}, {2.0F}).Run(block);
    ASSERT_TRUE(left.ok() && right.ok());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ((*left)[i], 2.0F - x[i]);
      EXPECT_EQ((*right)[i], x[i] - 2.0F);
    }
  }
}

// A piece of exactly one block looks as if it had its channels last.
TEST(ConcatTest, PiecesOfWholeBlocksLieSideBySide) {
  const auto make = [] {
    return OneNode("Concat")
        .Values({2, 16, 3, 2}, Noise(2 * 16 * 6))
        .Values({2, 32, 3, 2}, Noise(2 * 32 * 6, 5))
        .With("axis", int64_t{1});
  };
  OneNode node = make();

  const auto blocked = node.Run(16);

  ASSERT_TRUE(blocked.ok()) << blocked.status();
  EXPECT_TRUE(node.was_blocked());
  EXPECT_EQ(*blocked, *make().Run(1));
}

}  // namespace
}  // namespace rknnd::soft
