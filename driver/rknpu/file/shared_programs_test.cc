// Published files: numbers that were taken from them by another reader.

#include "driver/rknpu/file/testing/shared_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "driver/rknpu/file/program_file.h"

namespace rknnd::rknpu {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::ReadShared;

struct Published {
  const char* file;
  const char* platform;
  uint64_t weight_bytes, internal_bytes, command_bytes;
  uint32_t nodes, tasks, relocations;
  std::vector<uint32_t> first_of_lists;
  uint32_t tasks_of_first;
};

const Published kPublished[] = {
    {"multiple_input_demo_v6_rk3588.rknn",
     "rk3588",
     4864,
     1114112,
     13696,
     5,
     17,
     70,
     {0, 2, 5, 8, 11, 14},
     2},
    {"multiple_input_demo_v6_rk3562.rknn",
     "rk3562",
     896,
     720896,
     10816,
     5,
     41,
     0,
     {0},
     41},
    {"multiple_input_demo_v6_rk3566.rknn",
     "rk3566",
     1408,
     1114112,
     7232,
     5,
     10,
     0,
     {0},
     10},
    {"multiple_input_demo_v6_rk3576.rknn",
     "rk3576",
     2176,
     1114112,
     9216,
     5,
     8,
     0,
     {0, 2, 4},
     2},
    {"dual_residual_rk3588.rknn",
     "rk3588",
     2176,
     9920,
     12032,
     7,
     17,
     0,
     {0, 2, 5, 8, 11, 14},
     2},
    {"dual_residual_rk3562.rknn", "rk3562", 128, 6720, 1920, 7, 2, 0, {0}, 2},
    {"dual_residual_rk3566.rknn", "rk3566", 128, 5536, 1920, 7, 2, 0, {0}, 2},
    {"dual_residual_rk3576.rknn",
     "rk3576",
     128,
     9920,
     8192,
     7,
     8,
     0,
     {0, 2, 4},
     2},
    {"mobilenetv2_rk3588.rknn",
     "rk3588",
     3697472,
     1605632,
     349568,
     57,
     352,
     0,
     {0, 68, 126, 183, 240, 296},
     68},
    {"yolov8n_algae_rk3588.rknn",
     "rk3588",
     3050432,
     4505600,
     899840,
     108,
     1070,
     0,
     {0, 265, 555, 631, 920, 995},
     265},
    {"ppocrv4_det_rk3588.rknn",
     "rk3588",
     1350784,
     27648000,
     935808,
     170,
     1314,
     0,
     {0, 281, 591, 735, 1040, 1177},
     281},
    {"lprnet_rk3566.rknn",
     "rk3566",
     563392,
     403264,
     85760,
     65,
     172,
     612,
     {0},
     172},
    {"conv_fp16_c32_rk3588.rknn",
     "rk3588",
     75776,
     49408,
     6656,
     3,
     11,
     28,
     {0, 1, 3, 5, 7, 9},
     1}};

class PublishedTest : public ::testing::TestWithParam<Published> {};

TEST_P(PublishedTest, SizesAndTasksAreExact) {
  const Published& expected = GetParam();
  const std::vector<std::byte> bytes = ReadShared(expected.file);
  if (bytes.empty()) GTEST_SKIP() << expected.file << " is not in RKNND_SHARED";

  const auto file = Read(bytes);

  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->platform, expected.platform);
  EXPECT_EQ(file->weight_bytes, expected.weight_bytes);
  EXPECT_EQ(file->internal_bytes, expected.internal_bytes);
  EXPECT_EQ(file->commands.size() * 8, expected.command_bytes);
  EXPECT_EQ(file->nodes.size(), expected.nodes);
  EXPECT_EQ(file->tasks.size(), expected.tasks);
  if (expected.relocations != 0) {
    EXPECT_EQ(file->relocations.size(), expected.relocations);
  }
  std::vector<uint32_t> first;
  for (const TaskList& list : file->lists) first.push_back(list.first);
  EXPECT_THAT(first, ElementsAreArray(expected.first_of_lists));
  EXPECT_EQ(file->lists[0].count, expected.tasks_of_first);
}

INSTANTIATE_TEST_SUITE_P(All, PublishedTest, ::testing::ValuesIn(kPublished),
                         [](const auto& published) {
                           const std::string name = published.param.file;
                           return name.substr(0, name.find('.'));
                         });

TEST(SharedProgramsTest, ContainerTwoIsRefusedByName) {
  const std::vector<std::byte> bytes =
      ReadShared("multiple_input_demo_rk3588.rknn");
  if (bytes.empty()) GTEST_SKIP() << "no published files in RKNND_SHARED";

  const auto file = Read(bytes);

  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, base::Code::kUnimplemented);
  EXPECT_THAT(file.error().message, HasSubstr("container version 2"));
}

TEST(SharedProgramsTest, APublishedFileCutShortAnywhereIsRefused) {
  const std::vector<std::byte> bytes =
      ReadShared("multiple_input_demo_v6_rk3588.rknn");
  if (bytes.empty()) GTEST_SKIP() << "no published files in RKNND_SHARED";
  constexpr size_t kMainSectionEnds = 64 + 30208;

  for (size_t size = 0; size < kMainSectionEnds; ++size) {
    ASSERT_FALSE(Read(std::span(bytes).first(size)).ok()) << size;
  }
}

}  // namespace
}  // namespace rknnd::rknpu
