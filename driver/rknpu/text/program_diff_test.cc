// What of two programs is alike, and how the rest reads.

#include "driver/rknpu/text/program_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "driver/rknpu/testing/task_writer.h"

namespace rknnd::rknpu {
namespace {

// A program, and the bytes that its tensors point into.
struct Written {
  std::string bytes;
  ProgramFile file;
};
Written Write(testing::TaskWriter& writer) {
  Written written;
  written.bytes = testing::Build(writer.spec());
  auto file = Read(std::as_bytes(std::span(written.bytes)));
  EXPECT_TRUE(file.ok()) << file.error().message;
  if (file.ok()) written.file = *std::move(file);
  return written;
}

std::string DifferenceOf(testing::TaskWriter& first,
                         testing::TaskWriter& second) {
  const Written a = Write(first);
  const Written b = Write(second);
  return DifferenceText(Compare(a.file, b.file));
}

TEST(ProgramDiffTest, EqualProgramsHaveNone) {
  testing::TaskWriter a;
  a.Node("c").Add(0xd, {{0x1010, 0x50}, {0x4020, 64}}, {{0x4020, "y"}});
  testing::TaskWriter b;
  b.Node("c").Add(0xd, {{0x1010, 0x50}, {0x4020, 64}}, {{0x4020, "y"}});
  EXPECT_EQ(DifferenceOf(a, b),
            "tasks: 1 alike, 0 changed, 0 only in the first file, 0 only in "
            "the second\n");
}

TEST(ProgramDiffTest, RegistersAreNamedWithBothValues) {
  testing::TaskWriter a;
  a.Node("c").Add(0xd, {{0x1010, 0x50}, {0x4020, 64}, {0x4084, 1}},
                  {{0x4020, "y"}});
  testing::TaskWriter b;
  b.Node("c").Add(0x18, {{0x1010, 0x60}, {0x4020, 64}, {0x4088, 2}},
                  {{0x4020, "x"}});
  EXPECT_EQ(
      DifferenceOf(a, b),
      "tasks: 0 alike, 1 changed, 0 only in the first file, 0 only in the "
      "second\n"
      "  1 core, layer 'c', task 0:\n"
      "    blocks: CNA CORE DPU -> DPU DPU_RDMA\n"
      "    CNA CONV_CON2 (0x1010): 0x00000050 -> 0x00000060\n"
      "    DPU DST_BASE_ADDR (0x4020): 0x00000040 from the start of 'y' -> "
      "0x00000040 from the start of 'x'\n"
      "    DPU OUT_CVT_SCALE (0x4084): 0x00000001 -> not written\n"
      "    DPU OUT_CVT_SHIFT (0x4088): not written -> 0x00000002\n");
}

TEST(ProgramDiffTest, TasksAreMatchedByTheirLayer) {
  testing::TaskWriter a;
  a.Node("old").Add(0xd, {{0x1010, 1}}, {});
  a.Node("kept").Add(0xd, {{0x1010, 2}}, {}).Add(0xd, {{0x1010, 3}}, {});
  testing::TaskWriter b;
  b.Node("kept").Add(0xd, {{0x1010, 2}}, {}).Add(0xd, {{0x1010, 4}}, {});
  b.Node("new").Add(0xd, {{0x1010, 5}}, {});
  EXPECT_EQ(DifferenceOf(a, b),
            "tasks: 1 alike, 1 changed, 1 only in the first file, 1 only in "
            "the second\n"
            "  1 core, layer 'old', task 0: only the first file has it\n"
            "  1 core, layer 'kept', task 2 (1):\n"
            "    CNA CONV_CON2 (0x1010): 0x00000003 -> 0x00000004\n"
            "  1 core, layer 'new', task 2: only the second file has it\n");
}

TEST(ProgramDiffTest, OtherPlatformsAreSaid) {
  testing::TaskWriter a;
  a.Node("c").Add(0xd, {{0x1010, 1}}, {});
  testing::TaskWriter b;
  b.Node("c").Add(0xd, {{0x1010, 1}}, {});
  b.spec().platform = "rk3576";
  EXPECT_THAT(DifferenceOf(a, b),
              ::testing::HasSubstr("the programs are for rk3588 and rk3576"));
}

}  // namespace
}  // namespace rknnd::rknpu
