#include "base/values/model_options.h"

#include <gtest/gtest.h>

#include <string>

namespace rknnd::base {
namespace {

Sha256Digest SomeDigest() {
  return Sha256Of(std::as_bytes(std::span("owner", 5)));
}

TEST(ModelOptionsTest, WhatIsAppendedIsReadBack) {
  for (const std::string options : {"", "a: b", "a: b\n", "{a: b}", "\n"}) {
    const std::string text = WithWeightsOf(options, SomeDigest());
    const auto split = SplitModelOptions(text);
    ASSERT_TRUE(split.ok());
    EXPECT_EQ(split->weights_of, SomeDigest());
    const bool ends = options.empty() || options.back() == '\n';
    EXPECT_EQ(split->own, ends ? options : options + "\n");
  }
}

TEST(ModelOptionsTest, OptionsWithoutTheLineAreAllTheUsers) {
  for (const std::string options : {"", "a: b\n", "x_weights_of: 1"}) {
    const auto split = SplitModelOptions(options);
    ASSERT_TRUE(split.ok());
    EXPECT_EQ(split->own, options);
    EXPECT_FALSE(split->weights_of.has_value());
  }
}

TEST(ModelOptionsTest, OnlyTheLastLineCounts) {
  const std::string options = WithWeightsOf("", SomeDigest()) + "a: b\n";
  const auto split = SplitModelOptions(options);
  ASSERT_TRUE(split.ok());
  EXPECT_FALSE(split->weights_of.has_value());
  EXPECT_EQ(split->own, options);
}

TEST(ModelOptionsTest, WhatIsNoModelsNumberIsRefused) {
  const std::string hex = ToHex(SomeDigest());
  std::string upper = hex;
  upper[0] = 'G';
  for (const std::string& value :
       {std::string(), std::string("owner"), hex.substr(1), hex + "0", upper,
        hex + " "}) {
    const auto split = SplitModelOptions("weights_of: " + value + "\n");
    ASSERT_FALSE(split.ok()) << value;
    EXPECT_EQ(split.error().code, Code::kInvalidArgument);
    EXPECT_NE(split.error().message.find("weights_of"), std::string::npos);
  }
}

TEST(ModelOptionsTest, CustomOperatorsComeBackBehindAllOthers) {
  const std::string own = "a: b";
  const std::string options = WithCustomOperators(
      WithWeightsOf(own, SomeDigest()), {{"cstFoo", "cst Bar"}, 3});
  const auto split = SplitModelOptions(options);
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(split->own, own + "\n");
  EXPECT_EQ(split->weights_of, SomeDigest());
  ASSERT_TRUE(split->custom.has_value());
  EXPECT_EQ(split->custom->types,
            (std::vector<std::string>{"cstFoo", "cst Bar"}));
  EXPECT_EQ(split->custom->part, 3U);

  const auto whole =
      SplitModelOptions(WithCustomOperators("", {{"cstFoo"}, std::nullopt}));
  ASSERT_TRUE(whole.ok() && whole->custom.has_value());
  EXPECT_EQ(whole->own, "");
  EXPECT_FALSE(whole->custom->part.has_value());
  const auto none = SplitModelOptions(WithCustomOperators("", {{}, 0}));
  ASSERT_TRUE(none.ok() && none->custom.has_value());
  EXPECT_TRUE(none->custom->types.empty());
}

TEST(ModelOptionsTest, WhatIsNoPartOfAModelIsRefused) {
  for (const std::string value : {"", " ", " all", " x cstFoo", " 1x cstFoo",
                                  " -1 cstFoo", " 99999999999 cstFoo"}) {
    const auto split = SplitModelOptions("custom_operators:" + value + "\n");
    ASSERT_FALSE(split.ok()) << value;
    EXPECT_NE(split.error().message.find("custom_operators"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace rknnd::base
