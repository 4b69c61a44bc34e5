#include "driver/soft/import/shapes.h"

#include "driver/soft/import/onnx_import.h"
#include "driver/soft/testing/onnx_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::OnnxBuilder;

// Two inputs, the first an image with open sides.
Graph TwoInputs() {
  OnnxBuilder builder;
  builder.Input("image", {1, 3, -1, -1})
      .Input("words", {1, 8})
      .Node("Relu", {"image"}, {"y"})
      .Node("Relu", {"words"}, {"z"})
      .Output("y", {1, 3, -1, -1})
      .Output("z", {1, 8});
  auto graph = ImportOpen(builder.Bytes(), "m.onnx");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::string ShapesError(const std::vector<InputShapes>& rows) {
  ModelOptions options;
  options.dynamic_input = rows;
  return std::string(CheckRows(options, TwoInputs(), "m").message());
}

TEST(ShapesTest, RowsThatFitAreAccepted) {
  EXPECT_EQ(ShapesError({{{1, 3, 8, 8}, {1, 8}}, {{1, 3, 16, 8}, {1, 80}}}),
            "");
}

TEST(ShapesTest, WrongRowsAreRefusedByOptionRowAndInput) {
  const Shape image = {1, 3, 8, 8};
  for (const auto& [row, words] :
       {std::pair(InputShapes{image},
                  "row 1: has 1 shapes, the model 2 inputs: input 1 'words' "
                  "has none"),
        std::pair(InputShapes{image, {1, 8}, {1}},
                  "row 1: has 3 shapes, the model 2 inputs: there is no input "
                  "2"),
        std::pair(InputShapes{{3, 8, 8}, {1, 8}},
                  "row 1: input 0 'image' has 3 dimensions (3x8x8), the "
                  "model's has 4 (1x3x?x?)"),
        std::pair(InputShapes{image, {1, 0}},
                  "row 1: input 1 'words' of shape 1x0 has a dimension of 0"),
        std::pair(InputShapes{image, {1, -8}},
                  "row 1: input 1 'words' of shape 1x-8 has a dimension of -8"),
        std::pair(InputShapes{{1, 3, 1 << 30, 1 << 30}, {1, 8}},
                  "row 1: input 0 'image': shape"),
        std::pair(InputShapes{{1, 3, 9, 9}, {1, 8}},
                  "row 1: is the same as row 0 (input 0 'image' 1x3x9x9)")}) {
    EXPECT_THAT(ShapesError({{{1, 3, 9, 9}, {1, 8}}, row}),
                AllOf(HasSubstr("model 'm': option 'dynamic_input'"),
                      HasSubstr(words)));
  }
}

TEST(ShapesTest, MoreRowsThanTheApiListsAreRefused) {
  std::vector<InputShapes> rows;
  for (int64_t i = 1; i <= 513; ++i) rows.push_back({{1, 3, 1, i}, {1, 8}});

  EXPECT_THAT(ShapesError(rows), HasSubstr("has 513 rows, at most 512"));
}

TEST(ShapesTest, RowsOfALargeNetworkAreBounded) {
  OnnxBuilder builder;
  builder.Input("t0", {1, 8});
  for (int i = 0; i < 100; ++i) {
    builder.Node("Relu", {"t" + std::to_string(i)},
                 {"t" + std::to_string(i + 1)});
  }
  builder.Output("t100", {1, 8});
  auto graph = ImportOpen(builder.Bytes(), "m.onnx");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ModelOptions options;
  for (int64_t i = 1; i <= 500; ++i) options.dynamic_input.push_back({{1, i}});

  const absl::Status status = CheckRows(options, *graph, "m");

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("500 rows, too many for a network of 100 nodes"));
}

TEST(ShapesTest, RowsOfNodesWithThousandsOfOutputsAreBounded) {
  OnnxBuilder builder;
  std::vector<std::string> pieces;
  for (int i = 0; i < 4096; ++i) pieces.push_back("p" + std::to_string(i));
  builder.Input("x", {1, 4096})
      .Node("Split", {"x"}, pieces)
      .Node("Relu", {"p0"}, {"y"})
      .Output("y", {1, 1});
  auto graph = ImportOpen(builder.Bytes(), "m.onnx");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ModelOptions options;
  for (int64_t i = 1; i <= 63; ++i) options.dynamic_input.push_back({{i, 4}});
  EXPECT_TRUE(CheckRows(options, *graph, "m").ok());
  options.dynamic_input.push_back({{64, 4}});

  const absl::Status status = CheckRows(options, *graph, "m");

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("64 rows, too many for a network of 2 nodes with 4101 "
                        "inputs and outputs"));
}

TEST(ShapesTest, ARowFixesWhatTheFileLeavesOpen) {
  Graph graph = TwoInputs();
  const InputShapes row = {{1, 3, 8, 16}, {1, 80}};

  ASSERT_TRUE(FixInputs(&row, graph).ok());

  EXPECT_EQ(graph.value(graph.inputs[0].value).shape, row[0]);
  EXPECT_EQ(graph.value(graph.inputs[1].value).shape, row[1]);
  // What the file noted for its own shape is forgotten.
  EXPECT_FALSE(graph.value(graph.outputs[1].value).shape.has_value());
}

TEST(ShapesTest, AnOpenShapeWithoutARowIsAnErrorThatNamesTheWayOut) {
  Graph graph = TwoInputs();

  EXPECT_THAT(std::string(FixInputs(nullptr, graph).message()),
              AllOf(HasSubstr("input 'image': dimension 2"),
                    HasSubstr("option 'dynamic_input'")));
}

TEST(ShapesTest, ABatchNeedsAFirstDimensionOfOne) {
  Graph graph = TwoInputs();
  const InputShapes row = {{1, 3, 8, 8}, {2, 8}};
  ASSERT_TRUE(FixInputs(&row, graph).ok());

  EXPECT_TRUE(CheckBatch(1, graph).ok());
  EXPECT_THAT(std::string(CheckBatch(4, graph).message()),
              AllOf(HasSubstr("option 'rknn_batch_size' 4"),
                    HasSubstr("input 'words' of shape 2x8")));
}

TEST(ShapesTest, ABatchOfMoreThanATensorHoldsIsRefused) {
  Graph graph = TwoInputs();
  const InputShapes row = {{1, 3, 4096, 4096}, {1, 8}};
  ASSERT_TRUE(FixInputs(&row, graph).ok());

  EXPECT_EQ(CheckBatch(1024, graph).code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace rknnd::soft
