// Files made by testing/rknn_builder.h and, where it is there, a published one.

#include "driver/rknn_file/rknn_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "driver/rknn_file/testing/rknn_builder.h"

namespace rknnd::rknn_file {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

base::Expected<Description> ReadText(const std::string& file) {
  return Read(std::as_bytes(std::span(file.data(), file.size())));
}

std::string WhyNot(const std::string& file) {
  const auto read = ReadText(file);
  return read.ok() ? "it was read" : read.error().message;
}

Kind KindOfText(const std::string& text) {
  return KindOf(std::as_bytes(std::span(text.data(), text.size())));
}

TEST(RknnFileTest, TellsKindsByTheirFirstBytes) {
  EXPECT_EQ(KindOfText("RKNN...."), Kind::kRknn);
  EXPECT_EQ(KindOfText("CYPTRKNN"), Kind::kEncrypted);
  EXPECT_EQ(KindOfText("RKNX...."), Kind::kRknn3);
  EXPECT_EQ(KindOfText("VPMN...."), Kind::kFirstGeneration);
  EXPECT_EQ(KindOfText("\x08\x07"), Kind::kOther);
  EXPECT_EQ(KindOfText(""), Kind::kOther);
}

TEST(RknnFileTest, ReadsInputsAndOutputs) {
  const auto read = ReadText(Build(testing::SmallModel()));
  ASSERT_TRUE(read.ok()) << read.error().message;

  ASSERT_THAT(read->inputs, SizeIs(1));
  const Tensor& x = read->inputs[0];
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(x.type, 2U);  // RKNN_TENSOR_INT8
  EXPECT_EQ(x.type_name, "INT8");
  EXPECT_THAT(x.dims, ElementsAre(1, 3, 8, 8));
  EXPECT_THAT(x.native_dims, ElementsAre(1, 1, 8, 8, 16));
  EXPECT_EQ(x.layout, "NHWC");
  EXPECT_TRUE(x.quantized);
  EXPECT_EQ(x.scale, 0.5F);
  EXPECT_EQ(x.zero_point, -3);
  ASSERT_THAT(read->outputs, SizeIs(1));
  EXPECT_EQ(read->outputs[0].name, "y");
  EXPECT_EQ(read->outputs[0].layout, "NCHW");
}

TEST(RknnFileTest, ReadsVersionsAndTarget) {
  const auto read = ReadText(Build(testing::SmallModel()));
  ASSERT_TRUE(read.ok()) << read.error().message;

  EXPECT_EQ(read->container_version, 6U);
  EXPECT_EQ(read->format, "RKNPU v2");
  EXPECT_EQ(read->toolkit_version, "2.3.2");
  EXPECT_EQ(read->compiler_version, "2.3.2 (abc@2025-04-01)");
  EXPECT_EQ(read->target_platform, "rk3588");
  EXPECT_EQ(read->framework, "ONNX");
  EXPECT_EQ(read->batch, "1");
  EXPECT_EQ(read->inference_type, "static_shape");
}

TEST(RknnFileTest, ListsNodesWithWhereTheyRun) {
  const auto read = ReadText(Build(testing::SmallModel()));
  ASSERT_TRUE(read.ok()) << read.error().message;

  ASSERT_THAT(read->nodes, SizeIs(3));
  EXPECT_TRUE(read->nodes[0].on_cpu);
  EXPECT_EQ(read->nodes[1].type, "ConvRelu");
  EXPECT_FALSE(read->nodes[1].on_cpu);
}

TEST(RknnFileTest, SumsSizesUpWhereTheFileStoresNone) {
  const auto read = ReadText(Build(testing::SmallModel()));
  ASSERT_TRUE(read.ok()) << read.error().message;

  EXPECT_FALSE(read->sizes_stored);
  EXPECT_EQ(read->weight_bytes, 128U);  // 100, rounded up to 64
  EXPECT_EQ(read->internal_bytes, 1088U);
}

TEST(RknnFileTest, TakesStoredSizes) {
  testing::FileSpec spec = testing::SmallModel();
  spec.sizes = {uint64_t{5} << 32, 509184, 277440};
  const auto read = ReadText(Build(spec));
  ASSERT_TRUE(read.ok()) << read.error().message;

  EXPECT_TRUE(read->sizes_stored);
  EXPECT_EQ(read->weight_bytes, uint64_t{5} << 32);
  EXPECT_EQ(read->internal_bytes, 509184U);
  EXPECT_EQ(read->other_bytes, 277440U);
}

TEST(RknnFileTest, ReadsTheOldContainer) {
  testing::FileSpec spec = testing::SmallModel();
  spec.container_version = 1;
  const auto read = ReadText(Build(spec));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->inputs[0].name, "x");
}

TEST(RknnFileTest, FloatTensorsAreNotQuantized) {
  testing::FileSpec spec = testing::SmallModel();
  spec.tensors[0].type = 10;
  const auto read = ReadText(Build(spec));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->inputs[0].type_name, "FP16");
  EXPECT_FALSE(read->inputs[0].quantized);
}

TEST(RknnFileTest, NamesWhatCannotBeRead) {
  EXPECT_THAT(WhyNot("CYPTRKNN12345678"), HasSubstr("encrypted"));
  EXPECT_THAT(WhyNot("RKNX1234"), HasSubstr("RKNN3"));
  EXPECT_THAT(WhyNot("VPMN1234"), HasSubstr("first-generation"));
  EXPECT_THAT(WhyNot("onnx"), HasSubstr("no .rknn model"));
}

TEST(RknnFileTest, UnknownContainerVersionIsNamed) {
  testing::FileSpec spec = testing::SmallModel();
  spec.container_version = 77;
  EXPECT_THAT(WhyNot(Build(spec)), HasSubstr("container version is 77"));
}

TEST(RknnFileTest, IndexBehindTheTensorsIsNamed) {
  testing::FileSpec spec = testing::SmallModel();
  spec.inputs = {3};
  EXPECT_THAT(WhyNot(Build(spec)), HasSubstr("inputs name tensor 3 of 3"));
}

TEST(RknnFileTest, TooManyDimensionsAreNamed) {
  testing::FileSpec spec = testing::SmallModel();
  spec.tensors[0].shape.assign(17, 1);
  EXPECT_THAT(WhyNot(Build(spec)), HasSubstr("tensor 'x' has 17 dimensions"));
}

TEST(RknnFileTest, TooManyInputsAreRefused) {
  testing::FileSpec spec = testing::SmallModel();
  spec.inputs.assign(kMaxPorts + 1, 0);
  EXPECT_THAT(WhyNot(Build(spec)), HasSubstr("1025 inputs"));
}

TEST(RknnFileTest, FileCutAnywhereIsRefused) {
  const std::string whole = Build(testing::SmallModel());
  const size_t section_end = whole.size() - sizeof(uint64_t) - 2;
  for (size_t size = 0; size < section_end; ++size) {
    EXPECT_FALSE(ReadText(whole.substr(0, size)).ok()) << size << " bytes";
  }
}

// Whatever one byte is: an answer, and nothing outside the file is read (which
// the address sanitizer sees).
TEST(RknnFileTest, AnyByteChangedIsSurvived) {
  const std::string whole = Build(testing::SmallModel());
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(value);
      const auto read = ReadText(changed);
      if (!read.ok()) {
        EXPECT_NE(read.error().message, "");
      }
    }
  }
}

TEST(RknnFileTest, ReadsAPublishedFile) {
  const char* shared = std::getenv("RKNND_SHARED");
  const std::string path =
      (shared != nullptr ? std::string(shared)
                         : std::string(RKNND_SOURCE_ROOT "/../shared")) +
      "/rknn/multiple_input_demo_rk3588.rknn";
  std::ifstream file(path, std::ios::binary);
  if (!file) GTEST_SKIP() << "no '" << path << "'";
  const std::string bytes{std::istreambuf_iterator<char>(file),
                          std::istreambuf_iterator<char>()};

  const auto read = ReadText(bytes);

  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->container_version, 2U);
  EXPECT_EQ(read->target_platform, "rk3588");
  EXPECT_EQ(read->toolkit_version, "1.3.4-source_code");
  EXPECT_EQ(read->compiler_version, "1.4.2b4 (ba1a7fe97@2023-03-06T22:00:25)");
  EXPECT_EQ(read->json_bytes, 1348U);
  ASSERT_THAT(read->inputs, SizeIs(2));
  EXPECT_THAT(read->inputs[0].dims, ElementsAre(1, 1, 128, 128));
  EXPECT_THAT(read->inputs[1].dims, ElementsAre(1, 3, 128, 128));
  EXPECT_EQ(read->inputs[0].type_name, "INT8");
  EXPECT_EQ(read->inputs[0].scale, 1.0F);
  EXPECT_EQ(read->inputs[0].zero_point, -128);
  EXPECT_EQ(read->inputs[0].layout, "NHWC");
  ASSERT_THAT(read->outputs, SizeIs(1));
  EXPECT_EQ(read->outputs[0].name, "8");
  EXPECT_THAT(read->outputs[0].dims, ElementsAre(1, 8, 128, 128));
  EXPECT_THAT(read->nodes, SizeIs(5));
  EXPECT_GT(read->weight_bytes, 2816U);
  EXPECT_GT(read->internal_bytes, 0U);
}

}  // namespace
}  // namespace rknnd::rknn_file
