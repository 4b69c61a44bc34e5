// How a program reads.

#include "driver/rknpu/text/program_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/rknpu/testing/task_writer.h"

namespace rknnd::rknpu {
namespace {

using ::testing::HasSubstr;

TEST(ProgramTextTest, NamesLayersRegistersAndTensors) {
  testing::TaskWriter writer;
  writer.Node("Conv:c").Add(0xd, {{0x1010, 0x50}, {0x4020, 64}},
                            {{0x4020, "y"}});
  const std::string bytes = testing::Build(writer.spec());
  const auto file = Read(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file.ok()) << file.error().message;

  const std::string text = ProgramText(*file);

  EXPECT_EQ(
      text,
      "tasks of 1 core: 1\n"
      "  task 0, layer 1 Conv 'Conv:c': CNA CORE DPU, 2 commands at 0x0\n"
      "    CNA CONV_CON2 (0x1010)           0x00000050\n"
      "    DPU DST_BASE_ADDR (0x4020)       0x00000040  from the start of "
      "'y'\n");
}

TEST(ProgramTextTest, WhatIsNotKnownKeepsItsNumber) {
  testing::TaskWriter writer;
  writer.Node("c").Add(0x80, {{0x1ffc, 1}}, {});
  const std::string bytes = testing::Build(writer.spec());
  const auto file = Read(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file.ok()) << file.error().message;

  EXPECT_THAT(ProgramText(*file), HasSubstr("0x1ffc"));
}

}  // namespace
}  // namespace rknnd::rknpu
