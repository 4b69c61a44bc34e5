// Tests of model tokens: what is printed is read again, and nothing else.

#include "client/target/model_token.h"

#include <string>

#include "gtest/gtest.h"

namespace rknnd::client {
namespace {

ModelToken Example() {
  ModelToken token;
  for (size_t i = 0; i < token.id.size(); ++i) {
    token.id[i] = static_cast<uint8_t>(7 * i + 250);
  }
  token.flags = 0x80000210;
  return token;
}

TEST(ModelTokenTest, WhatIsPrintedIsReadAgain) {
  const std::string text = PrintToken(Example());
  const auto read = ParseToken(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->id, Example().id);
  EXPECT_EQ(read->flags, Example().flags);
}

TEST(ModelTokenTest, TextIsPrintableAndShort) {
  const std::string text = PrintToken(Example());
  EXPECT_LT(text.size(), 128U);
  EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
            std::string::npos);
}

TEST(ModelTokenTest, EachChangedCharacterIsFoundOut) {
  const std::string good = PrintToken(Example());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string text = good;
    text[i] = text[i] == '3' ? '4' : '3';
    EXPECT_FALSE(ParseToken(text).ok()) << text;
  }
}

TEST(ModelTokenTest, CutOffLengthenedOrForeignTextIsRefused) {
  const std::string good = PrintToken(Example());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ParseToken(good.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseToken(good + "0").ok());
  EXPECT_FALSE(ParseToken("/models/yolo.rknn").ok());
}

TEST(ModelTokenTest, LaterVersionIsNamed) {
  std::string text = PrintToken(Example());
  text.replace(5, 1, "2");
  const auto read = ParseToken(text);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("version is '2'"), std::string::npos);
}

}  // namespace
}  // namespace rknnd::client
