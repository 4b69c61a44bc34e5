#include "driver/soft/import/options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

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

TEST(OptionsTest, MeansThatChangeTheAnswersAreRefusedByName) {
  auto options =
      ReadOptions({{"rknn.mean_values", "[[123.7, 0, 0]]"}}, "", "m");

  EXPECT_EQ(options.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(options.status().message()),
              HasSubstr("option 'mean_values'"));
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
