// Shape rules against what a broken or hostile model file may say: an error
// that names operator and node, never a crash.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "driver/soft/kernels/testing/one_node.h"

namespace rknnd::soft {
namespace {

using testing::Noise;
using testing::OneNode;
using IntList = std::vector<int64_t>;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr int64_t kLow = std::numeric_limits<int64_t>::min();

OneNode Picture(const char* type, int opset = 13) {
  return OneNode(type, opset).Values({1, 4, 6, 6}, Noise(144));
}

void ExpectRefused(const OneNode& node) {
  const auto inferred = node.Infer();
  ASSERT_FALSE(inferred.ok());
  EXPECT_NE(inferred.status().message().find("'it'"), std::string::npos)
      << inferred.status();
}

TEST(HostileTest, AxesOutOfRangeAreRefused) {
  for (const int64_t axis : {kHuge, kLow, int64_t{4}, int64_t{-5}}) {
    ExpectRefused(Picture("Softmax").With("axis", axis));
    ExpectRefused(Picture("Concat").With("axis", axis));
    ExpectRefused(Picture("Split").With("axis", axis));
    ExpectRefused(Picture("ArgMax").With("axis", axis));
    ExpectRefused(Picture("Gather").Ints({1}, {0}).With("axis", axis));
    ExpectRefused(
        Picture("LayerNormalization").Floats({6}, Noise(6)).With("axis", axis));
    ExpectRefused(Picture("ReduceMax").With("axes", IntList{axis}));
    ExpectRefused(Picture("Squeeze", 11).With("axes", IntList{axis}));
    ExpectRefused(Picture("Transpose").With("perm", IntList{0, 1, 2, axis}));
    ExpectRefused(
        Picture("Slice").Ints({1}, {0}).Ints({1}, {1}).Ints({1}, {axis}));
    ExpectRefused(Picture("CumSum").Ints({}, {axis}));
  }
  ExpectRefused(Picture("Flatten").With("axis", int64_t{5}));
  ExpectRefused(Picture("Unsqueeze", 11).With("axes", IntList{9}));
  ExpectRefused(Picture("Unsqueeze", 11).With("axes", IntList{0, 0}));
}

TEST(HostileTest, MissingInputsAreRefused) {
  for (const char* type : {"Conv", "Add", "MatMul", "Gemm", "Gather", "Where",
                           "BatchNormalization", "ConvTranspose", "Expand",
                           "Tile", "OneHot", "Range", "PRelu", "Mod",
                           "InstanceNormalization", "Equal", "Pow", "CumSum"}) {
    ExpectRefused(Picture(type));
    ExpectRefused(Picture(type).NoInput());
  }
  for (const char* type :
       {"Relu", "Softmax", "Concat", "Max", "Reshape", "Slice", "Pad", "TopK",
        "Shape", "MaxPool", "Clip", "Cast", "Squeeze", "Resize", "Dropout"}) {
    ExpectRefused(OneNode(type));
    ExpectRefused(OneNode(type).NoInput());
  }
}

TEST(HostileTest, ShapesOfAnySizeAreRefused) {
  for (const int64_t dim : {kHuge, kLow, int64_t{-2}, int64_t{1} << 40}) {
    ExpectRefused(Picture("Reshape").Ints({2}, {dim, 1}));
    ExpectRefused(OneNode("Expand").Values({1}, {0}).Ints({2}, {dim, dim}));
    ExpectRefused(Picture("Tile").Ints({4}, {1, dim, dim, 1}));
    ExpectRefused(OneNode("ConstantOfShape").Ints({2}, {dim, dim}));
    ExpectRefused(
        Picture("Resize").NoInput().NoInput().Ints({4}, {1, 4, dim, dim}));
    if (dim != -2) {  // which cuts
      ExpectRefused(Picture("Pad").Ints({8}, {0, 0, dim, 0, 0, 0, dim, dim}));
    }
    ExpectRefused(Picture("TopK").Ints({1}, {dim}));
    ExpectRefused(Picture("DepthToSpace").With("blocksize", dim));
    ExpectRefused(Picture("SpaceToDepth").With("blocksize", dim));
    ExpectRefused(Picture("Split", 11)
                      .With("split", IntList{dim})
                      .With("axis", int64_t{1}));
  }
  ExpectRefused(Picture("Pad").Ints({8}, {0, 0, -4, 0, 0, 0, -4, 0}));
  ExpectRefused(Picture("Reshape").Ints({2}, {-1, -1}));
  ExpectRefused(Picture("Reshape").Ints({5}, {0, 0, 0, 0, 0}));
  ExpectRefused(
      Picture("Reshape").Ints({2}, {-1, 0}).With("allowzero", int64_t{1}));
  ExpectRefused(
      Picture("Slice").Ints({1}, {0}).Ints({1}, {4}).Ints({1}, {1}).Ints({1},
                                                                         {0}));
  ExpectRefused(OneNode("Range").Ints({}, {0}).Ints({}, {kHuge}).Ints({}, {1}));
  ExpectRefused(OneNode("Range").Ints({}, {0}).Ints({}, {1}).Ints({}, {0}));
}

TEST(HostileTest, WindowsThatDoNotFitAreRefused) {
  for (const char* type : {"MaxPool", "AveragePool"}) {
    ExpectRefused(Picture(type));
    ExpectRefused(Picture(type).With("kernel_shape", IntList{0, 1}));
    ExpectRefused(Picture(type).With("kernel_shape", IntList{7, 7}));
    ExpectRefused(Picture(type).With("kernel_shape", IntList{kHuge, 1}));
    ExpectRefused(Picture(type)
                      .With("kernel_shape", IntList{2, 2})
                      .With("strides", IntList{0, 0}));
    ExpectRefused(Picture(type)
                      .With("kernel_shape", IntList{2, 2})
                      .With("pads", IntList{-1, 0, 0, 0}));
  }
  ExpectRefused(Picture("LRN").With("size", int64_t{0}));
  ExpectRefused(Picture("ConvTranspose")
                    .Floats({4, 2, 3, 3}, Noise(72))
                    .With("pads", IntList{9, 9, 9, 9}));
  ExpectRefused(Picture("ConvTranspose")
                    .Floats({4, 2, 3, 3}, Noise(72))
                    .With("group", kHuge));
}

TEST(HostileTest, ShapesThatDoNotBroadcastAreRefused) {
  for (const char* type : {"Add", "Max", "Less", "PRelu"}) {
    ExpectRefused(Picture(type).Values({5}, Noise(5)));
  }
  ExpectRefused(
      OneNode("MatMul").Values({2, 3}, Noise(6)).Values({2, 3}, Noise(6)));
  ExpectRefused(Picture("BatchNormalization")
                    .Floats({3}, Noise(3))
                    .Floats({4}, Noise(4))
                    .Floats({4}, Noise(4))
                    .Floats({4}, Noise(4)));
}

TEST(HostileTest, IndicesAndRegionsThatDoNotFitAreRefused) {
  for (const char* type : {"ScatterElements", "Scatter", "ScatterND"}) {
    ExpectRefused(Picture(type).Ints({1}, {0}));
    ExpectRefused(Picture(type).Ints({1}, {0}).Values({1}, {0}));
    ExpectRefused(Picture(type).Ints({1, 1, 1, 1}, {9}).Values({1}, {0}));
  }
  for (const int64_t index : {kHuge, kLow, int64_t{4}, int64_t{-5}}) {
    ExpectRefused(Picture("ScatterElements")
                      .Ints({1, 1, 1, 1}, {index})
                      .Values({1, 1, 1, 1}, {0})
                      .With("axis", int64_t{1}));
    ExpectRefused(Picture("ScatterND")
                      .Ints({1, 2}, {0, index})
                      .Values({1, 6, 6}, Noise(36)));
    ExpectRefused(Picture("GatherND").Ints({1, 2}, {0, index}));
    ExpectRefused(
        Picture("GatherND").Ints({1, 1}, {0}).With("batch_dims", index));
    ExpectRefused(Picture("Compress").Ints({1}, {1}).With("axis", index));
  }
  ExpectRefused(Picture("GatherND").Ints({1, 5}, {0, 0, 0, 0, 0}));
  ExpectRefused(Picture("GatherND").Ints({}, {0}));
  ExpectRefused(Picture("ReverseSequence").Ints({3}, {1, 1, 1}));
  ExpectRefused(Picture("ReverseSequence").Ints({4}, {1, 1, 1, 2}));
  ExpectRefused(Picture("ReverseSequence")
                    .Ints({4}, {1, 1, 1, 1})
                    .With("time_axis", kHuge));
  ExpectRefused(Picture("RoiAlign").Values({1, 4}, Noise(4)).Ints({1}, {1}));
  ExpectRefused(Picture("RoiAlign")
                    .Values({1, 4}, Noise(4))
                    .Ints({1}, {0})
                    .With("sampling_ratio", kHuge));
  ExpectRefused(Picture("RoiAlign")
                    .Values({1, 4}, Noise(4))
                    .Ints({1}, {0})
                    .With("output_height", int64_t{1} << 40));
  ExpectRefused(Picture("GridSample").Values({1, 2, 2, 3}, Noise(12)));
  ExpectRefused(Picture("GridSample").Values({2, 2, 2, 2}, Noise(16)));
  ExpectRefused(OneNode("NonMaxSuppression")
                    .Values({1, 2, 4}, Noise(8))
                    .Values({1, 1, 3}, Noise(3)));
}

TEST(HostileTest, MoreIndicesThanAModelHoldsAreRefused) {
  constexpr int64_t kMany = (int64_t{1} << 20) + 1;
  ExpectRefused(OneNode("NonZero").Ints(
      {kMany}, std::vector<int64_t>(static_cast<size_t>(kMany), 1)));
}

TEST(HostileTest, WhatCannotBeWrittenOutIsRefused) {
  for (const char* equation : {"", "ab", "a..b->a", "abcd->e", "abcd->aa",
                               "abcd,a->b", "...a...->a"}) {
    OneNode node = Picture("Einsum");
    node.With("equation", std::string(equation));
    ExpectRefused(node);
  }
  ExpectRefused(OneNode("Einsum")
                    .Values({2, 3}, Noise(6))
                    .Values({2, 3}, Noise(6))
                    .With("equation", std::string("ij,jk->ik")));
  for (const int64_t groups : {kHuge, kLow, int64_t{0}, int64_t{3}}) {
    ExpectRefused(Picture("GroupNormalization")
                      .Floats({4}, Noise(4))
                      .Floats({4}, Noise(4))
                      .With("num_groups", groups));
  }
  for (const int64_t p : {kHuge, kLow, int64_t{0}}) {
    ExpectRefused(
        Picture("LpPool").With("kernel_shape", IntList{2, 2}).With("p", p));
    ExpectRefused(Picture("GlobalLpPool").With("p", p));
    ExpectRefused(Picture("LpNormalization").With("p", p));
  }
  ExpectRefused(Picture("LpPool").With("kernel_shape", IntList{kHuge, kHuge}));
  ExpectRefused(Picture("LpPool"));
  for (const char* type : {"If", "Loop", "Scan", "LSTM", "GRU", "RNN"}) {
    ExpectRefused(Picture(type));
    ExpectRefused(OneNode(type));
  }
}

TEST(HostileTest, AnIndexOutOfRangeFailsTheRun) {
  for (const char* type : {"GatherND", "ScatterND"}) {
    OneNode node = OneNode(type).Values({3}, {1, 2, 3}).Values({1, 1}, {3});
    node.OfType(DataType::kInt32, 1);
    if (std::string(type) == "ScatterND") node.Values({1}, {0});
    const auto ran = node.Run();
    EXPECT_NE(ran.status().message().find("'it': an index is out of range"),
              std::string::npos)
        << ran.status();
  }

  const auto ran =
      OneNode("Gather").Values({3}, {1, 2, 3}).Ints({2}, {0, 3}).Run();
  EXPECT_FALSE(ran.ok());
}

TEST(HostileTest, AnIndexOfTheModelIsFoundWhenItIsLoaded) {
  for (const char* type : {"Gather", "GatherElements"}) {
    const auto told = OneNode(type)
                          .Values({2, 3}, Noise(6))
                          .Ints({2, 2}, {0, -3, 2, -4})
                          .With("axis", int64_t{1})
                          .Infer();
    EXPECT_EQ(told.status().message(),
              std::string(type) +
                  " 'it': index -4 is out of range: axis 1 of its data has 3");
  }
}

TEST(HostileTest, ValuesKnownOnlyAtRunTimeAreAskedForByName) {
  OneNode node = Picture("Reshape").Values({2}, {1, 144});
  const auto inferred = node.Infer();
  EXPECT_TRUE(absl::IsFailedPrecondition(inferred.status()))
      << inferred.status();
}

TEST(EmptyTensorTest, OperatorsOfNothingMakeNothing) {
  EXPECT_TRUE(OneNode("Relu").Values({0, 4}, {}).Run().ok());
  EXPECT_TRUE(OneNode("Softmax").Values({0, 4}, {}).Run().ok());
  EXPECT_TRUE(OneNode("Transpose").Values({0, 4}, {}).Run().ok());
  EXPECT_TRUE(
      OneNode("MatMul").Values({0, 4}, {}).Values({4, 2}, Noise(8)).Run().ok());
  EXPECT_TRUE(OneNode("Conv")
                  .Values({0, 4, 3, 3}, {})
                  .Floats({2, 4, 1, 1}, Noise(8))
                  .Run()
                  .ok());
  EXPECT_TRUE(
      OneNode("Add").Values({0, 4}, {}).Values({4}, Noise(4)).Run().ok());
}

TEST(EmptyTensorTest, AProductOverNothingIsZero) {
  const auto product =
      OneNode("MatMul").Values({2, 0}, {}).Values({0, 3}, {}).Run();
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(*product, std::vector<float>(6, 0.0F));
}

}  // namespace
}  // namespace rknnd::soft
