// Programs that stay in their memory, and those that do not. Published files
// must pass: they ran on boards.

#include "driver/rknpu/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "driver/rknpu/file/testing/shared_programs.h"
#include "driver/rknpu/testing/task_writer.h"

namespace rknnd::rknpu {
namespace {

using ::testing::HasSubstr;
using testing::ReadShared;
using testing::Registers;
using testing::SmallConvolution;
using testing::TaskWriter;

// The addresses of SmallConvolution().
const std::map<uint16_t, std::string> kAddresses = {
    {0x1070, "x"}, {0x1110, "w"}, {0x4020, "y"}};

Registers With(Registers registers, const Registers& changes) {
  for (const auto& [number, value] : changes) registers[number] = value;
  return registers;
}

// A program in memory, checked.
struct Checked {
  explicit Checked(const testing::ProgramSpec& spec)
      : bytes(testing::Build(spec)) {
    auto read = Read(std::as_bytes(std::span(bytes)));
    if (!read.ok()) {
      ADD_FAILURE() << read.error().message;
      return;
    }
    file = *std::move(read);
    const auto placement = PlaceTensors(file);
    const auto schedule = MakeSchedule(file, 1);
    if (!placement.ok() || !schedule.ok()) {
      ADD_FAILURE() << placement.status() << schedule.status();
      return;
    }
    ports = CheckProgram(file, *placement, {&*schedule, 1});
  }
  [[nodiscard]] std::string message() const {
    return std::string(ports.status().message());
  }
  std::string bytes;
  ProgramFile file;
  absl::StatusOr<CheckedPorts> ports = absl::InternalError("not checked");
};

TEST(CheckerTest, AProgramThatStaysInItsMemoryPasses) {
  TaskWriter writer;
  writer.Node("c").Add(0xd, SmallConvolution(), kAddresses);

  const Checked checked(writer.spec());

  ASSERT_TRUE(checked.ports.ok()) << checked.ports.status();
  EXPECT_TRUE(checked.ports->may_be_bound[2]);
  EXPECT_TRUE(checked.ports->may_be_bound[3]);
  EXPECT_FALSE(checked.ports->may_be_bound[1]) << "weights are no port";
  EXPECT_EQ(checked.ports->touched[1], 0);
  EXPECT_EQ(checked.ports->touched[2], 512);
  EXPECT_EQ(checked.ports->touched[3], 1024);
}

// Who binds such an output would find what was there before.
TEST(CheckerTest, AnOutputThatBeginsWithAGapIsNotTouchedFromItsStart) {
  TaskWriter writer;
  // 16 channels of its second half.
  writer.Node("c").Add(0xd,
                       With(SmallConvolution(), {{0x4020, 512},
                                                 {0x4058, 15},
                                                 {0x403c, 0xf000f},
                                                 {0x40c0, 512},
                                                 {0x4050, 0}}),
                       kAddresses);

  const Checked checked(writer.spec());

  ASSERT_TRUE(checked.ports.ok()) << checked.ports.status();
  EXPECT_TRUE(checked.ports->may_be_bound[3]);
  EXPECT_EQ(checked.ports->touched[3], 0);
}

TEST(CheckerTest, WhatLeavesTheMemoryIsNamed) {
  const struct {
    Registers changes;
    const char* message;
  } cases[] = {
      // One atom further than internal memory has.
      {{{0x4020, 16}},
       "task 0 of node 'c': it writes the bytes 16 to 1040 of tensor 'y', "
       "which has 1024 (DPU"},
      {{{0x1070, 1536 - 511}}, "it reads the bytes 1025 to 1537 of tensor 'x'"},
      {{{0x1080, 0x0fffffc0}, {0x1024, 32}},
       "it reads the bytes -512 to 512 of tensor 'x'"},
      {{{0x1110, 16}}, "it reads the bytes 16 to 528 of tensor 'w'"},
      {{{0x1038, 0x01010021}}, "it reads the bytes 0 to 528 of tensor 'w'"},
      {{{0x405c, 4U << 16 | 7}}, "it writes the bytes 0 to 1152 of tensor 'y'"},
      {{{0x40c0, 0x7fffffff}, {0x4058, 63}, {0x403c, 63}},
       "it writes the bytes 0 to 2147484671 of tensor 'y'"}};
  for (const auto& wrong : cases) {
    TaskWriter writer;
    writer.Node("c").Add(0xd, With(SmallConvolution(), wrong.changes),
                         kAddresses);

    const Checked checked(writer.spec());

    EXPECT_THAT(checked.message(), HasSubstr(wrong.message));
  }
}

TEST(CheckerTest, AnAddressThatIsNoTensorsIsRefused) {
  for (const uint16_t number : {0x1070, 0x1110, 0x4020}) {
    auto addresses = kAddresses;
    addresses.erase(number);
    TaskWriter writer;
    writer.Node("c").Add(0xd, SmallConvolution(), addresses);

    const Checked checked(writer.spec());

    EXPECT_THAT(checked.message(), HasSubstr("is no tensor's"));
  }
}

TEST(CheckerTest, CommandsAreOutOfReach) {
  TaskWriter writer;
  writer.Node("c").Add(0xd, SmallConvolution(),
                       {{0x1070, "regcmd"}, {0x1110, "w"}, {0x4020, "y"}});

  const Checked checked(writer.spec());

  EXPECT_THAT(checked.message(), HasSubstr("of tensor 'regcmd'"));
}

// What the file has in an address's place is not what the NPU will see there.
TEST(CheckerTest, WhatIsAddedToAnAddressIsTakenFromTheRelocation) {
  TaskWriter writer;
  writer.Node("c").Add(0xd, SmallConvolution(), kAddresses);
  for (auto& relocation : writer.spec().relocations) {
    if (relocation.tensor == "y") relocation.places[0].addend = 16;
  }

  const Checked checked(writer.spec());

  EXPECT_THAT(checked.message(), HasSubstr("the bytes 16 to 1040"));
}

TEST(CheckerTest, APortThatIsTouchedBeyondItsBytesStaysInInternalMemory) {
  TaskWriter writer;
  // Reads the last lines of 'x' and the first ones of 'y'.
  writer.Node("c").Add(0xd, With(SmallConvolution(), {{0x1070, 128}}),
                       kAddresses);

  const Checked checked(writer.spec());

  ASSERT_TRUE(checked.ports.ok()) << checked.ports.status();
  EXPECT_FALSE(checked.ports->may_be_bound[2]);
  EXPECT_TRUE(checked.ports->may_be_bound[3]);
}

TEST(CheckerTest, AnInputThatIsWrittenStaysInInternalMemory) {
  TaskWriter writer;
  writer.Node("c").Add(
      0xd,
      With(SmallConvolution(),
           {{0x4058, 15}, {0x403c, 0xf000f}, {0x40c0, 512}, {0x4050, 0}}),
      {{0x1070, "x"}, {0x1110, "w"}, {0x4020, "x"}});

  const Checked checked(writer.spec());

  ASSERT_TRUE(checked.ports.ok()) << checked.ports.status();
  EXPECT_FALSE(checked.ports->may_be_bound[2]);
}

// A short task has what it leaves out from the task before last.
TEST(CheckerTest, ShortTasksAreFollowedThroughBothBanks) {
  const Registers whole = SmallConvolution();
  TaskWriter writer;
  writer.Node("c")
      .Add(0xd, whole, kAddresses)
      .Add(0xd, With(whole, {{0x405c, 1U << 16 | 7}}), kAddresses)
      .Add(0xd, {{0x4038, 0}}, {})
      .Add(0xd, {{0x4020, 256}}, {{0x4020, "y"}});
  EXPECT_TRUE(Checked(writer.spec()).ports.ok()) << "two lines fit there";

  TaskWriter other;
  other.Node("c")
      .Add(0xd, whole, kAddresses)
      .Add(0xd, With(whole, {{0x405c, 1U << 16 | 7}}), kAddresses)
      .Add(0xd, {{0x4020, 256}}, {{0x4020, "y"}});
  EXPECT_THAT(Checked(other.spec()).message(),
              HasSubstr("task 2 of node 'c': it writes the bytes 256 to 1280"));
}

TEST(CheckerTest, NothingIsTakenFromAnotherNode) {
  TaskWriter writer;
  writer.Node("c")
      .Add(0xd, SmallConvolution(), kAddresses)
      .Node("d")
      .Add(0xd, SmallConvolution(), kAddresses)
      .Node("e")
      .Add(0xd, {{0x4038, 0}}, {});

  const Checked checked(writer.spec());

  EXPECT_THAT(checked.message(),
              HasSubstr("is written by no task of the node"));
}

TEST(CheckerTest, TablesKeepTheirTaskInTheFirstBank) {
  Registers stays = SmallConvolution();
  stays[0x4004] = 0x30;
  TaskWriter writer;
  writer.Node("c")
      .Add(0xd, stays, kAddresses)
      .Add(0xd, With(SmallConvolution(), {{0x4004, 0x30}}), kAddresses)
      // CNA and CORE have turned twice, the output stage never.
      .Add(0xd, {{0x4004, 0x30}, {0x4020, 16}}, {{0x4020, "y"}});

  const Checked checked(writer.spec());

  EXPECT_THAT(checked.message(), HasSubstr("task 2 of node 'c': it writes"));
}

TEST(CheckerTest, TasksOfOtherKindsAreRefused) {
  TaskWriter mask;
  mask.Node("c").Add(0x1, SmallConvolution(), kAddresses);
  EXPECT_THAT(Checked(mask.spec()).message(),
              HasSubstr("uses the blocks 0x1, which are not known together"));

  TaskWriter block;
  block.Node("c").Add(0xd, With(SmallConvolution(), {{0x5044, 0x7801}}),
                      kAddresses);
  EXPECT_THAT(Checked(block.spec()).message(), HasSubstr("does not use"));

  TaskWriter pointer;
  pointer.Node("c").Add(0xd, With(SmallConvolution(), {{0x4004, 0x1}}),
                        kAddresses);
  EXPECT_THAT(Checked(pointer.spec()).message(), HasSubstr("to 0x1"));

  // A word that would lead the chain elsewhere.
  TaskWriter chain;
  chain.Node("c").Add(0xd, SmallConvolution(), kAddresses);
  chain.spec().commands[0] = 0x0101000010000010;
  EXPECT_THAT(Checked(chain.spec()).message(), HasSubstr("does not use"));
}

TEST(CheckerTest, PublishedFilesPass) {
  for (const char* name : testing::kRk3588Programs) {
    const std::vector<std::byte> bytes = ReadShared(name);
    if (bytes.empty()) GTEST_SKIP() << "no published files in RKNND_SHARED";
    const auto file = Read(bytes);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto placement = PlaceTensors(*file);
    ASSERT_TRUE(placement.ok()) << placement.status();
    std::vector<std::vector<Step>> schedules;
    for (uint32_t cores = 1; cores <= 3; ++cores) {
      auto schedule = MakeSchedule(*file, cores);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      schedules.push_back(*std::move(schedule));
    }

    const auto ports = CheckProgram(*file, *placement, schedules);

    EXPECT_TRUE(ports.ok()) << name << ": " << ports.status();
    if (!ports.ok()) continue;
    for (const auto* list : {&file->inputs, &file->outputs}) {
      for (const uint32_t port : *list) {
        EXPECT_TRUE(ports->may_be_bound[port])
            << name << ": " << file->tensors[port].name;
      }
    }
  }
}

}  // namespace
}  // namespace rknnd::rknpu
