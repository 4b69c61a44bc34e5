#include "driver/soft/import/options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OptionsTest, MetadataIsRead) {
  auto options = ReadOptions({{"rknn.custom_string", "a: b [c"},
                              {"rknn.target_platform", "rk3588"},
                              {"author", "somebody"}},
                             "", "m");

  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->custom_string, "a: b [c");
  EXPECT_EQ(options->target_platform, "rk3588");
}

TEST(OptionsTest, YamlIsReadWhereverItsKeysStand) {
  auto options =
      ReadOptions({}, "models:\n  - name: x\n    custom_string: hello\n", "m");

  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->custom_string, "hello");
}

TEST(OptionsTest, MetadataWinsOverYaml) {
  auto options = ReadOptions({{"rknn.custom_string", "file"}},
                             "custom_string: beside\n", "m");

  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->custom_string, "file");
}

TEST(OptionsTest, MeansThatChangeNothingAreAccepted) {
  EXPECT_TRUE(ReadOptions({{"rknn.mean_values", "[[0, 0, 0]]"},
                           {"rknn.std_values", "[[1, 1.0, 1]]"},
                           {"rknn.rknn_batch_size", "1"},
                           {"rknn.dynamic_input", "false"}},
                          "", "m")
                  .ok());
}

Graph OneImage(int64_t channels) {
  Graph graph;
  graph.values.push_back({.name = "image",
                          .type = DataType::kFloat32,
                          .shape = Shape{1, channels, 8, 8},
                          .constant = nullptr});
  graph.inputs.push_back({.name = "image", .value = 0});
  return graph;
}

TEST(OptionsTest, MeansAndDeviationsGoToTheirInput) {
  auto options = ReadOptions({{"rknn.mean_values", "[[123.5, 0, 7]]"},
                              {"rknn.std_values", "[2, 2, 4]"}},
                             "", "m");
  ASSERT_TRUE(options.ok()) << options.status();
  Graph graph = OneImage(3);

  ASSERT_TRUE(ApplyOptions(*options, graph, "m").ok());

  EXPECT_THAT(graph.inputs[0].mean, ElementsAre(123.5F, 0, 7));
  EXPECT_THAT(graph.inputs[0].deviation, ElementsAre(2, 2, 4));
}

TEST(OptionsTest, MeansThatDoNotFitTheInputAreAnError) {
  auto options = ReadOptions({}, "mean_values: [1, 2, 3]\n", "m");
  ASSERT_TRUE(options.ok()) << options.status();
  Graph graph = OneImage(4);

  EXPECT_THAT(std::string(ApplyOptions(*options, graph, "m").message()),
              HasSubstr("option 'mean_values' has 3 numbers for input "
                        "'image' of shape 1x4x8x8"));
}

TEST(OptionsTest, MeansForMoreInputsThanThereAreAreAnError) {
  auto options = ReadOptions({}, "mean_values: [[1], [2]]\n", "m");
  ASSERT_TRUE(options.ok()) << options.status();
  Graph graph = OneImage(1);

  EXPECT_FALSE(ApplyOptions(*options, graph, "m").ok());
}

TEST(OptionsTest, DeviationsOfZeroAreAnError) {
  auto options = ReadOptions({}, "std_values: [[1, 0, 1]]\n", "m");
  ASSERT_TRUE(options.ok()) << options.status();
  Graph graph = OneImage(3);

  EXPECT_FALSE(ApplyOptions(*options, graph, "m").ok());
}

TEST(OptionsTest, MeansThatAreNoNumbersAreAnErrorThatNamesThem) {
  for (const char* text : {"[[a]]", "5", "[[[1]]]", "{a: 1}", "[[.nan]]"}) {
    auto options = ReadOptions({{"rknn.mean_values", text}}, "", "m");

    EXPECT_THAT(std::string(options.status().message()),
                HasSubstr("option 'mean_values'"))
        << text;
  }
}

TEST(OptionsTest, DynamicInputIsRefusedByName) {
  auto options = ReadOptions({}, "dynamic_input: [[[1,3,32,32]]]\n", "m");

  EXPECT_THAT(std::string(options.status().message()),
              HasSubstr("option 'dynamic_input'"));
}

TEST(OptionsTest, YamlThatIsNoneIsAnError) {
  auto options = ReadOptions({}, "a: [1, 2\nb: }", "m");

  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(options.status().message()),
              HasSubstr("'MODEL.yml' cannot be read"));
}

TEST(OptionsTest, YamlThatRefersToItselfIsAnError) {
  std::string yaml = "mean_values: &a [0, 0]\n";
  for (char c = 'a'; c < 'r'; ++c) {
    char next = static_cast<char>(c + 1);
    yaml += std::string("x") + next + ": &" + next + " [*" + c + ", *" + c +
            ", *" + c + ", *" + c + "]\n";
  }
  yaml += "std_values: *r\n";

  EXPECT_FALSE(ReadOptions({}, yaml, "m").ok());
}

TEST(OptionsTest, ListsThatReferToEachOtherAreAnError) {
  std::string list = "[&a [1";
  for (int i = 0; i < 200; ++i) list += ",1";
  list += "]";
  // Not more than there may be, of either.
  for (int i = 0; i < 60; ++i) list += ",*a";
  list += "]";

  EXPECT_THAT(std::string(ReadOptions({{"rknn.mean_values", list}}, "", "m")
                              .status()
                              .message()),
              HasSubstr("too many entries"));
}

TEST(OptionsTest, WhatIsNoImageTakesNoMeansButNeutralOnes) {
  Graph graph = OneImage(3);
  graph.values[0].shape = Shape{1, 3, 4};
  const auto apply = [&](const char* name, const char* text) {
    auto options = ReadOptions({{name, text}}, "", "m");
    EXPECT_TRUE(options.ok()) << options.status();
    return ApplyOptions(*options, graph, "m");
  };

  EXPECT_TRUE(apply("rknn.mean_values", "[[0, 0, 0]]").ok());
  EXPECT_TRUE(apply("rknn.std_values", "[[1]]").ok());
  EXPECT_THAT(std::string(apply("rknn.mean_values", "[[5]]").message()),
              HasSubstr("NCHW inputs only"));
  EXPECT_FALSE(apply("rknn.std_values", "[[2]]").ok());
}

Graph OneImageOfPixels() {
  Graph graph = OneImage(8);
  graph.values[0].shape = Shape{1, 8, 8, 3};
  graph.values.push_back({.name = "turned",
                          .type = DataType::kFloat32,
                          .shape = Shape{1, 3, 8, 8},
                          .constant = nullptr});
  Node turn;
  turn.type = "Transpose";
  turn.inputs = {0};
  turn.outputs = {1};
  turn.attributes["perm"] = std::vector<int64_t>{0, 3, 1, 2};
  graph.nodes.push_back(turn);
  return graph;
}

TEST(OptionsTest, ChannelsOfAnNhwcNetworkAreItsLastAxis) {
  auto options =
      ReadOptions({}, "mean_values: [1, 2, 3]\nstd_values: [2]\n", "m");
  ASSERT_TRUE(options.ok()) << options.status();
  Graph graph = OneImageOfPixels();

  ASSERT_TRUE(ApplyOptions(*options, graph, "m").ok());

  EXPECT_TRUE(graph.inputs[0].channels_last);
  EXPECT_THAT(graph.inputs[0].mean, ElementsAre(1, 2, 3));
  EXPECT_THAT(graph.inputs[0].deviation, ElementsAre(2, 2, 2));
}

TEST(OptionsTest, AnInputReadOtherwiseTooIsNoNhwcNetworks) {
  auto options = ReadOptions({}, "mean_values: [1, 2, 3]\n", "m");
  ASSERT_TRUE(options.ok()) << options.status();
  Graph graph = OneImageOfPixels();
  graph.nodes.push_back(graph.nodes[0]);
  graph.nodes[1].type = "Relu";

  EXPECT_THAT(std::string(ApplyOptions(*options, graph, "m").message()),
              HasSubstr("NCHW inputs only"));
}

TEST(OptionsTest, MetadataOfMegabytesIsRefusedUnread) {
  auto options =
      ReadOptions({{"rknn.mean_values", std::string(1 << 20, ' ')}}, "", "m");

  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(options.status().message()),
              HasSubstr("1048576 bytes"));
}

TEST(OptionsTest, CustomStringThatDoesNotFitTheApiIsAnError) {
  EXPECT_FALSE(
      ReadOptions({{"rknn.custom_string", std::string(1024, 'x')}}, "", "m")
          .ok());
}

}  // namespace
}  // namespace rknnd::soft
