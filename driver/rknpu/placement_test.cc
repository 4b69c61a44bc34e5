// Where tensors come to lie, and the commands that a core reads. One published
// program was watched on a board: its words must come out equal.

#include "driver/rknpu/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/values/sha256.h"
#include "driver/rknpu/file/testing/program_builder.h"
#include "driver/rknpu/file/testing/shared_programs.h"
#include "driver/rknpu/relocated_commands.h"

namespace rknnd::rknpu {
namespace {

using testing::Build;
using ::testing::HasSubstr;
using testing::ProgramSpec;
using testing::ReadShared;
using testing::SmallProgram;

// The bytes that a read program points into, kept with it.
struct Program {
  explicit Program(const ProgramSpec& spec) : bytes(Build(spec)) {
    auto read = Read(std::as_bytes(std::span(bytes)));
    if (!read.ok()) {
      ADD_FAILURE() << read.error().message;
      return;
    }
    file = *std::move(read);
  }
  std::string bytes;
  ProgramFile file;
};

TEST(PlacementTest, EachTensorLiesInTheMemoryOfItsClass) {
  ProgramSpec spec = SmallProgram();
  spec.tensors.push_back({.name = "exSwish", .layout = 0, .kind = 6});
  spec.tensors.push_back(
      {.name = "g", .layout = 0, .kind = 8, .bytes = 70, .data = "abc"});
  spec.tensors.push_back({.name = "k", .layout = 0, .kind = 5, .bytes = 1});
  spec.weight_bytes = 128;
  spec.generated_bytes = 128;
  const Program program(spec);

  const auto placement = PlaceTensors(program.file);

  ASSERT_TRUE(placement.ok()) << placement.status();
  const std::vector<TensorHome>& homes = placement->homes;
  EXPECT_EQ(homes[0].home, Home::kNowhere);
  EXPECT_EQ(homes[1].home, Home::kConstants);
  EXPECT_EQ(homes[1].offset, 0U);
  EXPECT_EQ(homes[3].home, Home::kInternal);
  EXPECT_EQ(homes[3].offset, 192U);
  EXPECT_EQ(homes[4].home, Home::kPrivate);
  EXPECT_EQ(homes[5].offset, 128U) << "generated constants lie behind all";
  EXPECT_EQ(homes[6].offset, 64U);
  EXPECT_EQ(placement->constant_bytes, 256U);
  EXPECT_EQ(placement->private_bytes, 64U);

  std::vector<std::byte> constants(placement->constant_bytes);
  FillMemory(program.file, *placement, Home::kConstants, constants);
  EXPECT_EQ(constants[31], std::byte{1});
  EXPECT_EQ(constants[32], std::byte{0});
  EXPECT_EQ(constants[128], std::byte{'a'});
  EXPECT_EQ(constants[131], std::byte{0});

  const std::vector<uint64_t> addresses = AddressesOf(
      *placement,
      {.constants = 0x1000, .private_memory = 0x2000, .internal = 0x3000});
  EXPECT_EQ(addresses[1], 0x1000U);
  EXPECT_EQ(addresses[3], 0x30c0U);
  EXPECT_EQ(addresses[4], 0x2000U);
  EXPECT_EQ(addresses[5], 0x1080U);
}

TEST(PlacementTest, AConstantThatTasksWriteIsPrivate) {
  ProgramSpec spec = SmallProgram();
  // The output's address becomes that of the weights.
  spec.relocations = {{"x", {{0, 0}}}, {"w", {{0, 1}, {0, 2}}}};
  const Program program(spec);

  const auto placement = PlaceTensors(program.file);

  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(placement->homes[1].home, Home::kPrivate);
  EXPECT_EQ(placement->private_bytes, 64U);
  EXPECT_EQ(placement->constant_bytes, 64U) << "the file's sum stays";
}

TEST(PlacementTest, AnAddressInAnotherRegisterIsRefused) {
  ProgramSpec spec = SmallProgram();
  spec.commands[0] = 0x0201000000001020;
  const Program program(spec);

  const auto placement = PlaceTensors(program.file);

  ASSERT_FALSE(placement.ok());
  EXPECT_THAT(std::string(placement.status().message()),
              HasSubstr("'x' belongs into CNA DATA_SIZE0 (0x1020)"));
}

TEST(PlacementTest, AConstantLargerThanItsRoomIsRefused) {
  ProgramSpec spec = SmallProgram();
  spec.tensors[1].data.assign(65, '\1');
  const Program program(spec);

  const auto placement = PlaceTensors(program.file);

  ASSERT_FALSE(placement.ok());
  EXPECT_THAT(std::string(placement.status().message()),
              HasSubstr("'w' has 65 bytes in the file, 32 in memory"));
}

TEST(RelocatedCommandsTest, AddressesAndChainsAreThoseOfTheCopy) {
  ProgramSpec spec = SmallProgram();
  spec.commands[3] = 0x0101000000400010;  // leads to byte 64 of the commands
  const Program program(spec);
  const AddressWords places(program.file);
  std::vector<uint64_t> words(program.file.commands.size());
  RelocatedCommands commands(program.file, places, words, 0xffa00000);

  commands.Move(2, 0x80001000);
  commands.Move(3, 0x80002000);

  EXPECT_EQ(words[0], 0x0201800010001070U);
  EXPECT_EQ(words[2], 0x1001800020404020U) << "with what is added in the file";
  EXPECT_EQ(words[3], 0x0101ffa000400010U);
  EXPECT_EQ(words[6], spec.commands[6]);

  // Nothing adds up: the copy can be moved again.
  commands.Move(3, 0x70000000);
  EXPECT_EQ(words[2], 0x1001700000404020U);
  EXPECT_EQ(words[0], 0x0201800010001070U);
  EXPECT_EQ(commands.AddressOf({.commands = 64}), 0xffa00040U);
}

// A run on a board, published with all buffers and commands.
TEST(RelocatedCommandsTest, EqualTheWordsThatWereSeenOnABoard) {
  const std::vector<std::byte> bytes = ReadShared("conv_fp16_c32_rk3588.rknn");
  if (bytes.empty()) GTEST_SKIP() << "no published files in RKNND_SHARED";
  const auto file = Read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  auto placement = PlaceTensors(*file);
  ASSERT_TRUE(placement.ok()) << placement.status();
  ASSERT_EQ(placement->constant_bytes, 75776U);
  // The vendor's runtime keeps what barriers write among the weights.
  uint64_t end = 0;
  for (size_t i = 0; i < file->tensors.size(); ++i) {
    if (file->tensors[i].kind != TensorClass::kWeights) continue;
    placement->homes[i] = {Home::kConstants, end};
    end += (file->tensors[i].bytes + 63) / 64 * 64;
  }
  constexpr uint64_t kWeights = 0xfff8e000;
  constexpr uint64_t kCommands = kWeights + 75776;
  ASSERT_EQ(kCommands, 0xfffa0800U);

  const AddressWords places(*file);
  std::vector<uint64_t> words(file->commands.size());
  RelocatedCommands commands(*file, places, words, kCommands);
  commands.MoveAll(
      AddressesOf(*placement, {.constants = kWeights, .internal = 0xfff81000}));
  commands.Move(file->inputs[0], 0xfff7d000);
  commands.Move(file->outputs[0], 0xfff74000);

  ASSERT_EQ(words.size(), 832U);
  EXPECT_EQ(words[25], 0x0201fff7d0001070U);
  EXPECT_EQ(words[34], 0x0201fff8e0001110U);
  EXPECT_EQ(words[61], 0x1001fff740004020U);
  EXPECT_EQ(words[216], 0x0101fffa0f000010U);
  EXPECT_EQ(words[286], 0x0201fff970001110U);
  EXPECT_EQ(words[239], 0x4001fffa00006070U);
  EXPECT_EQ(words[792], 0x0101fffa21000010U);
  size_t changed = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    changed += words[i] != file->commands[i] ? 1 : 0;
  }
  EXPECT_EQ(changed, 33U) << "28 addresses and 5 links";
  EXPECT_EQ(base::ToHex(base::Sha256Of(std::as_bytes(std::span(words)))),
            "fadb4f95d5ca1ca26c6feffb04c8f0512b6ab2f6b6390f0fb31fa0f984c92fd3");
  std::vector<uint64_t> first_commands;
  for (const TaskEntry& task : file->tasks) {
    first_commands.push_back(commands.AddressOf(task));
  }
  ASSERT_EQ(first_commands.size(), 11U);
  EXPECT_EQ(first_commands[0], kCommands);
  for (size_t i = 0; i < first_commands.size(); ++i) {
    EXPECT_EQ(first_commands[i], file->tasks[i].commands + 0xfffa0800) << i;
    EXPECT_EQ(first_commands[i] % 64, 0U) << i;
  }
}

}  // namespace
}  // namespace rknnd::rknpu
