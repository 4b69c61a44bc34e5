#include "driver/soft/import/options.h"

#include <fstream>
#include <iterator>
#include <string>

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

TEST(OptionsTest, LineThatNamesTheOwnerOfItsWeightsIsNoYaml) {
  const std::string owner(64, 'a');
  for (const std::string own :
       {"", "custom_string: c\n", "{custom_string: c}\n"}) {
    auto options = ReadOptions({}, own + "weights_of: " + owner + "\n", "m");
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->custom_string, own.empty() ? "" : "c");
  }
}

TEST(OptionsTest, WeightsOfByHandIsRefused) {
  for (const auto& [metadata, yaml] :
       {std::pair("weights_of: me", ""), std::pair("", "weights_of: me\n"),
        std::pair("", "weights_of: 12\ncustom_string: c\n")}) {
    std::map<std::string, std::string> in_file;
    if (*metadata != '\0') in_file["rknn.weights_of"] = metadata;
    const auto options = ReadOptions(in_file, yaml, "m");
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(options.status().message()),
                HasSubstr("'weights_of'"));
  }
}

TEST(OptionsTest, RemovedWeightsAreNoOption) {
  EXPECT_TRUE(ReadOptions({{"rknn.remove_weight", "true"}}, "", "m").ok());
  EXPECT_TRUE(ReadOptions({}, "remove_weight: True\n", "m").ok());
}

TEST(OptionsTest, NamesOfNoOptionAreRefusedWithTheNearest) {
  const struct {
    std::map<std::string, std::string> metadata;
    std::string yaml, told;
  } cases[] = {
      {{{"rknn.mean_value", "[[1, 2, 3]]"}},
       "",
       "model 'm': 'mean_value' in the file's metadata is no model option; did "
       "you mean 'mean_values'? (docs/model-options.md lists them)"},
      {{},
       "models:\n  name: x\n  configs:\n    std_value: [1, 2, 3]\n",
       "model 'm': 'std_value' in MODEL.yml is no model option; did you mean "
       "'std_values'?"},
      {{},
       "zzz: 1\n",
       "'zzz' in MODEL.yml is no model option (docs/model-options.md"},
  };
  for (const auto& one : cases) {
    const auto options = ReadOptions(one.metadata, one.yaml, "m");
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(one.told));
  }
}

TEST(OptionsTest, DocumentationHasEach) {
  std::ifstream file(RKNND_SOURCE_ROOT "/docs/model-options.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const std::string_view name : KnownOptions()) {
    EXPECT_THAT(page, HasSubstr("`" + std::string(name) + "`"));
  }
}

// The guide's example (3.1.6), and values that are mappings of a user's words.
TEST(OptionsTest, FilesOfTheConverterAreTaken) {
  const auto options = ReadOptions({}, R"(models:
  name: object_detection
  platform: onnx
  model_file_path: ./object_detection.onnx
  subgraphs:
    input_size_list:
      - 1,3,512,512
    inputs:
      - data
    outputs:
      - conv6-1
  quantize: true
  dataset: ./dataset.txt
  configs:
    quantized_dtype: asymmetric_quantized-8
    mean_values: [127.5,127.5,127.5]
    std_values: [128.0,128.0,128.0]
    quant_img_RGB2BGR: false
    quantized_algorithm: normal
    op_target: {conv6-1: cpu}
)",
                                   "m");

  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->mean_values,
              ElementsAre(ElementsAre(127.5, 127.5, 127.5)));
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

  ASSERT_TRUE(ApplyOptions(*options, graph).ok());

  EXPECT_THAT(graph.inputs[0].mean, ElementsAre(123.5F, 0, 7));
  EXPECT_THAT(graph.inputs[0].deviation, ElementsAre(2, 2, 4));
}

TEST(OptionsTest, MeansThatDoNotFitTheInputAreAnError) {
  auto options = ReadOptions({}, "mean_values: [1, 2, 3]\n", "m");
  ASSERT_TRUE(options.ok()) << options.status();
  Graph graph = OneImage(4);

  EXPECT_THAT(std::string(ApplyOptions(*options, graph).message()),
              HasSubstr("option 'mean_values' has 3 numbers for input "
                        "'image' of shape 1x4x8x8"));
}

TEST(OptionsTest, MeansForMoreInputsThanThereAreAreAnError) {
  auto options = ReadOptions({}, "mean_values: [[1], [2]]\n", "m");
  ASSERT_TRUE(options.ok()) << options.status();
  Graph graph = OneImage(1);

  EXPECT_FALSE(ApplyOptions(*options, graph).ok());
}

TEST(OptionsTest, DeviationsOfZeroAreAnError) {
  auto options = ReadOptions({}, "std_values: [[1, 0, 1]]\n", "m");
  ASSERT_TRUE(options.ok()) << options.status();
  Graph graph = OneImage(3);

  EXPECT_FALSE(ApplyOptions(*options, graph).ok());
}

TEST(OptionsTest, MeansThatAreNoNumbersAreAnErrorThatNamesThem) {
  for (const char* text : {"[[a]]", "5", "[[[1]]]", "{a: 1}", "[[.nan]]"}) {
    auto options = ReadOptions({{"rknn.mean_values", text}}, "", "m");

    EXPECT_THAT(std::string(options.status().message()),
                HasSubstr("option 'mean_values'"))
        << text;
  }
}

TEST(OptionsTest, RowsOfShapesAreRead) {
  auto options = ReadOptions(
      {}, "config:\n  dynamic_input: [[[1,224],[1,40]],[[1,112],[1,80]]]\n",
      "m");

  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->dynamic_input.size(), 2U);
  EXPECT_THAT(options->dynamic_input[0],
              ElementsAre(Shape{1, 224}, Shape{1, 40}));
  EXPECT_THAT(options->dynamic_input[1],
              ElementsAre(Shape{1, 112}, Shape{1, 80}));
}

TEST(OptionsTest, WhatIsNoListOfShapesIsRefusedWithItsPlace) {
  for (const auto& [text, words] :
       {std::pair("7", "is not a list"),
        std::pair("[[[1,3]], 7]", "row 1 is not a list of shapes"),
        std::pair("[[[1,3]], []]", "row 1 is not a list of shapes"),
        std::pair("[[[1,3], 4]]", "row 0, input 1 is not a shape"),
        std::pair("[[[1,x]]]", "row 0, input 0, dimension 1 is not a whole"),
        std::pair("[[[1,2.5]]]", "dimension 1 is not a whole number"),
        std::pair("[[[1,99999999999999999999]]]", "dimension 1 is not")}) {
    auto options = ReadOptions({{"rknn.dynamic_input", text}}, "", "m");

    EXPECT_THAT(std::string(options.status().message()),
                AllOf(HasSubstr("option 'dynamic_input'"), HasSubstr(words)))
        << text;
  }
}

TEST(OptionsTest, BatchSizeIsRead) {
  auto options = ReadOptions({{"rknn.rknn_batch_size", "4"}}, "", "m");

  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->rknn_batch_size, 4U);
}

TEST(OptionsTest, ABatchThatIsNoneIsRefused) {
  for (const char* text : {"0", "-1", "1025", "2.5", "many", "[2]"}) {
    auto options = ReadOptions({{"rknn.rknn_batch_size", text}}, "", "m");

    EXPECT_THAT(std::string(options.status().message()),
                HasSubstr("option 'rknn_batch_size' is '"))
        << text;
  }
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

TEST(OptionsTest, AShortTextThatIsALongListIsRefusedByName) {
  std::string numbers = "[1";
  std::string lists = "[&a ";
  for (int i = 1; i < 4096; ++i) numbers += ",1";
  lists += numbers + "]";
  for (int i = 1; i < 4096; ++i) lists += ",*a";
  lists += "]";

  auto options = ReadOptions({{"rknn.mean_values", lists}}, "", "m");

  EXPECT_THAT(std::string(options.status().message()),
              HasSubstr("in 'mean_values' cannot be read: too many entries"));
}

TEST(OptionsTest, WhatIsNoImageTakesNoMeansButNeutralOnes) {
  Graph graph = OneImage(3);
  graph.values[0].shape = Shape{1, 3, 4};
  const auto apply = [&](const char* name, const char* text) {
    auto options = ReadOptions({{name, text}}, "", "m");
    EXPECT_TRUE(options.ok()) << options.status();
    return ApplyOptions(*options, graph);
  };

  EXPECT_TRUE(apply("rknn.mean_values", "[[0, 0, 0]]").ok());
  EXPECT_TRUE(apply("rknn.std_values", "[[1]]").ok());
  EXPECT_THAT(std::string(apply("rknn.mean_values", "[[5]]").message()),
              HasSubstr("axis 1 of an image"));
  EXPECT_FALSE(apply("rknn.std_values", "[[2]]").ok());
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
