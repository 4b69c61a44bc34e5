#include "client/ctl/info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/rknn_file/testing/rknn_builder.h"

namespace rknnd::client {
namespace {

using testing::HasSubstr;

rknn_file::Description Small() {
  const std::string file =
      rknn_file::testing::Build(rknn_file::testing::SmallModel());
  auto read =
      rknn_file::Read(std::as_bytes(std::span(file.data(), file.size())));
  EXPECT_TRUE(read.ok());
  return *std::move(read);
}

TEST(InfoTest, RknnFileAsJson) {
  const Json json = RknnOutput("a.rknn", 1234, Small()).json;

  EXPECT_EQ(json["format"], "rknn");
  EXPECT_EQ(json["bytes"], 1234);
  EXPECT_EQ(json["target"], "rk3588");
  EXPECT_EQ(json["inputs"], Json::parse(R"([{"name": "x",
      "shape": [1, 3, 8, 8], "type": "INT8", "layout": "NHWC",
      "quantization": {"scale": 0.5, "zero_point": -3}}])"));
  EXPECT_EQ(json["versions"]["toolkit"], "2.3.2");
  EXPECT_EQ(json["versions"]["container"], 6);
  EXPECT_EQ(json["memory"]["weight"], 128);
  EXPECT_EQ(json["layers"], Json::parse(R"({"npu": 1, "cpu": 2})"));
}

TEST(InfoTest, RknnFileAsText) {
  const std::string text = RknnOutput("a.rknn", 1234, Small()).text;

  EXPECT_THAT(text, HasSubstr("target platform: rk3588\n"));
  EXPECT_THAT(text, HasSubstr("toolkit: 2.3.2\n"));
  EXPECT_THAT(text, HasSubstr("1 on the NPU, 2 on the CPU"));
  EXPECT_THAT(text, HasSubstr("input   x     1x3x8x8"));
}

}  // namespace
}  // namespace rknnd::client
