#include "client/ctl/models/info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/rknn_file/testing/rknn_builder.h"
#include "driver/rknpu/testing/task_writer.h"

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

TEST(InfoTest, TasksOfAProgram) {
  rknpu::testing::TaskWriter writer;
  writer.Node("Conv:c").Add(0xd, {{0x1010, 0x50}, {0x4020, 64}},
                            {{0x4020, "y"}});
  const std::string bytes = rknpu::testing::Build(writer.spec());
  const auto file = rknpu::Read(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file.ok()) << file.error().message;

  const Output output = ProgramOutput(*file);

  EXPECT_EQ(output.json, Json::parse(R"json({"tasks": [{"task": 0, "cores": 1,
      "core": 0, "layer": 1, "op_type": "Conv", "full_name": "Conv:c",
      "blocks": "CNA CORE DPU", "commands": [
        {"register": "CNA CONV_CON2 (0x1010)", "number": 4112, "value": 80},
        {"register": "DPU DST_BASE_ADDR (0x4020)", "number": 16416,
         "value": 64, "tensor": "y"}]}]})json"));
  EXPECT_THAT(output.text, HasSubstr("task 0, layer 1 Conv 'Conv:c'"));
}

rknnd_kernel KernelOf(const char* name, const char* kernel) {
  rknnd_kernel layer{};
  layer.type = "Conv";
  layer.name = name;
  layer.input_shape = "(1,8,9,9,9)";
  layer.output_shape = "(1,8,7,7,7)";
  layer.kernel = kernel;
  return layer;
}

TEST(InfoTest, KernelsAreCountedAndSlowLayersNamed) {
  std::vector<rknnd_kernel> layers = {KernelOf("Conv:a", "loops"),
                                      KernelOf("Conv:b", "bytes avx2"),
                                      KernelOf("Conv:c\x1b", "oneDNN ref:any"),
                                      KernelOf("Conv:d", "bytes avx2")};
  layers[2].is_slow = 1;

  const Output output = KernelsOutput(layers);

  EXPECT_EQ(output.text,
            "kernels: 2 bytes avx2, 1 loops, 1 oneDNN ref:any\n"
            "slow layer: Conv:c?, Conv (1,8,9,9,9) -> (1,8,7,7,7), by oneDNN "
            "ref:any\n");
  EXPECT_EQ(output.json["kernels"], Json::parse(R"({"bytes avx2": 2,
      "loops": 1, "oneDNN ref:any": 1})"));
  ASSERT_EQ(output.json["slow_layers"].size(), 1U);
  EXPECT_EQ(output.json["slow_layers"][0]["kernel"], "oneDNN ref:any");
  EXPECT_EQ(output.json["slow_layers"][0]["op_type"], "Conv");
}

TEST(InfoTest, DeviceThatDoesNotSayHasNoKernels) {
  EXPECT_EQ(KernelsOutput({}).text, "");
  EXPECT_EQ(KernelsOutput({}).json, Json::object());
  const std::vector<rknnd_kernel> board = {KernelOf("Conv:a", "")};
  EXPECT_EQ(KernelsOutput(board).json, Json::object());
}

}  // namespace
}  // namespace rknnd::client
