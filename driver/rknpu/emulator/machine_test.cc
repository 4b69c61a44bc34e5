// Jobs: banks of registers, chains, cores that step together, and everything
// that ends a job with a reason.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/emulator/testing/arena.h"
#include "driver/rknpu/emulator/testing/task_builder.h"
#include "driver/rknpu/registers/registers.h"

namespace rknnd::rknpu {
namespace {

using ::testing::AllOf;
using testing::Arena;
using testing::FlightTask;
using ::testing::HasSubstr;
using testing::kFlightMask;
using testing::RegisterValues;
using testing::TaskProgram;

constexpr uint32_t kBase = Arena::kBase, kCommands = 0x08000000;

class MachineTest : public ::testing::Test {
 protected:
  MachineTest() : arena_(0x4000) {
    for (size_t i = 0; i < 0x1000; ++i) {
      arena_.bytes()[i] = static_cast<std::byte>(i * 7 + i / 256);
    }
  }

  absl::Status RunProgram(TaskProgram& program,
                          const RunOptions& options = {}) {
    program.Finish(arena_.memory());
    const std::span<const Task> tasks = program.tasks();
    const absl::Status status =
        machine_.Run(arena_.memory(), {{tasks}}, options);
    EXPECT_TRUE(arena_.memory().Detach(kCommands).ok());
    return status;
  }
  absl::Status RunOne(uint32_t mask, const RegisterValues& registers) {
    TaskProgram program(kCommands);
    program.Add(mask, registers, 42);
    return RunProgram(program);
  }
  // Of four atoms, from offset to offset.
  static RegisterValues Copy(uint32_t from, uint32_t to) {
    return FlightTask(4, 1, 16, kBase + from, kBase + to);
  }
  bool IsCopied(uint32_t from, uint32_t to) {
    return std::memcmp(arena_.At(kBase + from), arena_.At(kBase + to), 64) == 0;
  }

  Arena arena_;
  Machine machine_;
};

TEST_F(MachineTest, ALaterTaskHasTheRegistersOfTheOneBeforeLast) {
  TaskProgram program(kCommands);
  program.Add(kFlightMask, Copy(0, 0x1000));
  RegisterValues other = Copy(0x40, 0x1040);
  other[0x4080] = 1;  // the second bank adds 1
  program.Add(kFlightMask, other);
  const RegisterValues pointers = {{0x4004, 0xe}, {0x5004, 0xe}};
  RegisterValues third = pointers, fourth = pointers;
  third[0x4020] = kBase + 0x1080;
  fourth[0x5018] = kBase + 0x80;
  fourth[0x4020] = kBase + 0x10c0;
  program.Add(kFlightMask, third);
  program.Add(kFlightMask, fourth);

  const absl::Status status = RunProgram(program);

  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(IsCopied(0, 0x1000));
  EXPECT_TRUE(IsCopied(0, 0x1080)) << "the first one's source and offset";
  const auto plus_one = [&](uint32_t from, uint32_t to) {
    const int value = static_cast<int8_t>(*arena_.At(kBase + from)) + 1;
    return static_cast<int8_t>(*arena_.At(kBase + to)) == value;
  };
  EXPECT_TRUE(plus_one(0x40, 0x1040));
  EXPECT_TRUE(plus_one(0x80, 0x10c0)) << "the second one's offset";
}

TEST_F(MachineTest, TasksWithThePointerAtBank0KeepIt) {
  TaskProgram program(kCommands);
  RegisterValues first = Copy(0, 0x1000);
  first[0x4004] = first[0x5004] = 0x30;
  program.Add(kFlightMask, first);
  program.Add(kFlightMask,
              {{0x4004, 0x30}, {0x5004, 0x30}, {0x4020, kBase + 0x1040}});
  const absl::Status status = RunProgram(program);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(IsCopied(0, 0x1040));
}

TEST_F(MachineTest, ARegisterThatNobodyWroteIsNamed) {
  TaskProgram program(kCommands);
  program.Add(kFlightMask, Copy(0, 0x1000), 5);
  program.Add(kFlightMask, {{0x4004, 0xe}, {0x5004, 0xe}}, 6);
  const absl::Status status = RunProgram(program);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("task 1 of core 0 (node 6)"), HasSubstr("has no value")));
}

TEST_F(MachineTest, AJobBeginsWithEmptyRegisters) {
  ASSERT_TRUE(RunOne(kFlightMask, Copy(0, 0x1000)).ok());
  EXPECT_FALSE(RunOne(kFlightMask, {{0x4004, 0xe}, {0x5004, 0xe}}).ok());
}

// What is refused, by whom it is named.
struct Refusal {
  uint16_t reg;
  uint32_t value;
  const char* text;
};
const Refusal kRefusals[] = {
    {0x4004, 0xf, "DPU POINTER (0x4004)"},
    {0x400c, 0x1e7, "DPU FEATURE_MODE_CFG (0x400c) is 0x000001e7"},
    {0x4010, 2, "DPU DATA_FORMAT (0x4010) is 0x00000002"},
    {0x4040, 0x20, "DPU BS_CFG (0x4040)"},
    {0x4040, 0x30040, "DPU BS_CFG (0x4040)"},
    {0x4050, 0x1000, "DPU BS_OW_CFG (0x4050)"},
    {0x4058, 31, "DPU WRITER_SIZE1 (0x405c)"},
    {0x4060, 0x20040, "DPU"},
    {0x4070, 0x904302c0, "DPU EW_CFG (0x4070) is 0x904302c0"},
    {0x4070, 0xb04202c0, "DPU EW_CFG (0x4070)"},
    {0x4084, 0x10001, "DPU OUT_CVT_SCALE (0x4084)"},
    {0x4014, 1, "DPU OFFSET_PEND (0x4014)"},
    {0x5014, 7, "DPU_RDMA DATA_CUBE_CHANNEL (0x5014)"},
    {0x501c, 0x10, "DPU_RDMA BRDMA_CFG (0x501c)"},
    {0x5034, 4, "DPU_RDMA ERDMA_CFG (0x5034)"},
    {0x5044, 0x17801, "DPU_RDMA FEATURE_MODE_CFG (0x5044)"},
    {0x5048, 0x1000, "DPU_RDMA SRC_DMA_CFG (0x5048)"},
};

TEST_F(MachineTest, WhatIsNotKnownOfAFlightIsRefusedByName) {
  for (const Refusal& refusal : kRefusals) {
    RegisterValues registers = Copy(0, 0x1000);
    registers[0x4068] = 0x10000;
    registers[0x4064] = 3;
    registers[refusal.reg] = refusal.value;
    const absl::Status status = RunOne(kFlightMask, registers);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented)
        << NameOf(refusal.reg) << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("(node 42)"), HasSubstr(refusal.text)));
  }
}

const Refusal kConvRefusals[] = {
    {0x100c, 1, "CNA CONV_CON1 (0x100c) is 0x00000001"},
    {0x100c, 0x10, "CNA CONV_CON1 (0x100c)"},
    {0x100c, 0x10003, "CNA CONV_CON1 (0x100c)"},
    {0x1014, 0x10009, "CNA CONV_CON3 (0x1014)"},
    {0x1014, 0x109, "CNA CONV_CON3 (0x1014)"},
    {0x1014, 0, "CNA CONV_CON3 (0x1014)"},
    {0x1024, 17, "CNA DATA_SIZE1 (0x1024)"},
    {0x1038, 0x01010000, "CNA WEIGHT_SIZE2 (0x1038)"},
    {0x104c, 0xa, "CNA CVT_CON0 (0x104c)"},
    {0x1100, 1, "CNA DCOMP_CTRL (0x1100)"},
    {0x1140, 9, "CNA DCOMP_AMOUNT0 (0x1140)"},
    {0x1180, 1, "CNA CVT_CON5 (0x1180)"},
    {0x3010, 0, "CORE MISC_CFG (0x3010)"},
    {0x3014, 0x10003, "DPU WRITER_SIZE1 (0x405c)"},
    {0x301c, 1, "CORE CLIP_TRUNCATE (0x301c)"},
    {0x400c, 0x1e5, "DPU FEATURE_MODE_CFG (0x400c)"},
    {0x4010, 0, "DPU DATA_FORMAT (0x4010)"},
    {0x501c, 6, "DPU BS_MUL_CFG (0x4048)"},
};

TEST_F(MachineTest, WhatIsNotKnownOfAConvolutionIsRefusedByName) {
  const testing::ConvShape shape = {.width = 4,
                                    .height = 1,
                                    .out_width = 4,
                                    .input = kBase,
                                    .weights = kBase + 0x400,
                                    .coefficients = kBase + 0x800,
                                    .output = kBase + 0x1000};
  ASSERT_TRUE(RunOne(testing::kConvMask, ConvTask(shape)).ok());
  for (const Refusal& refusal : kConvRefusals) {
    RegisterValues registers = ConvTask(shape);
    registers[refusal.reg] = refusal.value;
    const absl::Status status = RunOne(testing::kConvMask, registers);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented)
        << NameOf(refusal.reg) << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(refusal.text));
  }
}

TEST_F(MachineTest, WhatIsNotKnownOfAPoolingIsRefusedByName) {
  const RegisterValues pool =
      testing::PoolTask(4, 1, 16, kBase, kBase + 0x1000);
  ASSERT_TRUE(RunOne(testing::kPoolMask, pool).ok());
  for (const Refusal& refusal :
       {Refusal{0x6024, 0x12, "PPU OPERATION_MODE (0x6024)"},
        {0x6084, 0x11, "PPU DATA_FORMAT (0x6084)"},
        {0x6044, 1, "PPU PADDING_VALUE1 (0x6044)"},
        {0x700c, 9, "PPU_RDMA INPUT_WIDTH (0x700c)"},
        {0x7030, 2, "PPU_RDMA DATA_FORMAT (0x7030)"}}) {
    RegisterValues registers = pool;
    registers[refusal.reg] = refusal.value;
    EXPECT_THAT(std::string(RunOne(testing::kPoolMask, registers).message()),
                HasSubstr(refusal.text));
  }
}

TEST_F(MachineTest, ATableThatWasNotLoadedIsRefused) {
  RegisterValues registers = Copy(0, 0x1000);
  testing::UseTable(registers);
  for (const Engine engine : {Engine::kPlain, Engine::kFast}) {
    TaskProgram program(kCommands);
    program.Add(kFlightMask, registers);
    RunOptions options;
    options.engine = engine;
    EXPECT_THAT(std::string(RunProgram(program, options).message()),
                HasSubstr("EW_CFG (0x4070) uses tables"));
  }
}

TEST_F(MachineTest, CommandsToOtherBlocksAreRefused) {
  RegisterValues registers = Copy(0, 0x1000);
  registers[0x6024] = 0x11;
  EXPECT_THAT(std::string(RunOne(kFlightMask, registers).message()),
              HasSubstr("the task does not enable the PPU"));

  TaskProgram program(kCommands);
  program.Add(kFlightMask, Copy(0, 0x1000), 1,
              {Encode({0x1001, 5, 0x4ffc}), Encode({0x1002, 5, 0x4020})});
  EXPECT_THAT(std::string(RunProgram(program).message()),
              HasSubstr("DPU register 0x4ffc"));
}

TEST_F(MachineTest, OtherMasksAreRefused) {
  EXPECT_THAT(std::string(RunOne(0x7f, Copy(0, 0x1000)).message()),
              HasSubstr("enable mask 0x7f"));
}

TEST_F(MachineTest, MemoryOutsideIsNeverTouched) {
  for (const Engine engine : {Engine::kPlain, Engine::kFast}) {
    RunOptions options;
    options.engine = engine;
    const auto message = [&](const RegisterValues& registers) {
      TaskProgram program(kCommands);
      program.Add(kFlightMask, registers, 3);
      const absl::Status status = RunProgram(program, options);
      EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
      return std::string(status.message());
    };
    EXPECT_THAT(message(Copy(0x4000 - 48, 0x1000)),
                AllOf(HasSubstr("DPU_RDMA SRC_BASE_ADDR (0x5018)"),
                      HasSubstr("0x104000")));
    EXPECT_THAT(message(Copy(0, 0x4000 - 48)),
                HasSubstr("DPU DST_BASE_ADDR (0x4020)"));
    RegisterValues to_commands = Copy(0, 0x1000);
    to_commands[0x4020] = kCommands;
    EXPECT_THAT(message(to_commands), HasSubstr("may only be read"));
  }
}

TEST_F(MachineTest, CommandsOutsideAreNeverRead) {
  for (const uint64_t address : {uint64_t{0}, uint64_t{kBase + 0x3ff8},
                                 uint64_t{1} << 40, ~uint64_t{7}}) {
    for (const uint32_t words : {1U, 0x7fffffffU, 0xffffffffU}) {
      const std::vector<Task> tasks = {{1, kFlightMask, 0x300, words, address}};
      const std::span<const Task> list = tasks;
      EXPECT_EQ(machine_.Run(arena_.memory(), {{list}}, {}).code(),
                absl::StatusCode::kOutOfRange);
    }
  }
}

TEST_F(MachineTest, AChainThatLeadsElsewhereEndsTheJob) {
  TaskProgram program(kCommands);
  program.Add(kFlightMask, Copy(0, 0x1000));
  program.Add(kFlightMask, Copy(0x40, 0x1040));
  program.Finish(arena_.memory());
  const uint32_t words = program.tasks()[0].words;
  program.words()[words] += uint64_t{64} << 16;
  const std::span<const Task> tasks = program.tasks();
  const absl::Status status = machine_.Run(arena_.memory(), {{tasks}}, {});
  EXPECT_THAT(std::string(status.message()), HasSubstr("its chain leads to"));
  ASSERT_TRUE(arena_.memory().Detach(kCommands).ok());
}

TEST_F(MachineTest, CoresStepTogether) {
  // Core 0 reads in its second task what core 1 wrote in its first.
  TaskProgram first(kCommands), second(kCommands + 0x10000);
  first.Add(kFlightMask, Copy(0x100, 0x1100));
  first.Add(kFlightMask, Copy(0x1000, 0x1200));
  second.Add(kFlightMask, Copy(0, 0x1000));
  second.Add(kFlightMask, Copy(0x40, 0x1000));
  first.Finish(arena_.memory());
  second.Finish(arena_.memory());
  const std::span<const Task> a = first.tasks(), b = second.tasks();
  std::vector<TaskReport> report;
  RunOptions options;
  options.report = &report;
  const absl::Status status = machine_.Run(arena_.memory(), {{a, b}}, options);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(IsCopied(0, 0x1200));
  ASSERT_EQ(report.size(), 4U);
  EXPECT_EQ(report[1].core, 1U);
  EXPECT_EQ(report[2].task, 1U);
}

TEST_F(MachineTest, ACoreThatWaitsForNobodyEndsTheJob) {
  TaskProgram program(kCommands);
  program.Add(kFlightMask, Copy(0, 0x1000));
  program.Add(kFlightMask, Copy(0x40, 0x1040));
  program.Finish(arena_.memory());
  program.words()[program.tasks()[0].words + 1] |= uint64_t{1} << (16 + 16);
  const std::span<const Task> tasks = program.tasks();
  EXPECT_THAT(
      std::string(machine_.Run(arena_.memory(), {{tasks}}, {}).message()),
      HasSubstr("waits for 1 other cores"));
  ASSERT_TRUE(arena_.memory().Detach(kCommands).ok());
}

TEST_F(MachineTest, AStoppedJobSaysSo) {
  const std::atomic<bool> raised = true;
  RunOptions options;
  options.stop_too = &raised;
  TaskProgram program(kCommands);
  program.Add(kFlightMask, Copy(0, 0x1000));
  EXPECT_EQ(RunProgram(program, options).code(), absl::StatusCode::kCancelled);
}

TEST_F(MachineTest, ReportsCountWhatRegistersSay) {
  const testing::ConvShape shape = {.width = 4,
                                    .height = 1,
                                    .channels = 32,
                                    .out_width = 4,
                                    .input = kBase,
                                    .weights = kBase + 0x400,
                                    .coefficients = kBase + 0x800,
                                    .output = kBase + 0x1000};
  // Coefficients of any size would be for the plain engine.
  std::memset(arena_.At(kBase + 0x800), 0, 4 * 64);
  std::vector<TaskReport> report;
  RunOptions options;
  options.report = &report;
  TaskProgram program(kCommands);
  program.Add(testing::kConvMask, ConvTask(shape), 8);
  ASSERT_TRUE(RunProgram(program, options).ok());
  ASSERT_EQ(report.size(), 1U);
  EXPECT_EQ(report[0].cycles, std::max(report[0].computing, report[0].moving));
  EXPECT_EQ(report[0].node, 8U);
  EXPECT_EQ(report[0].macs, 4U * 32 * 32);
  EXPECT_EQ(report[0].bytes_read, 4U * 32 + 32 * 32 + 4 * 64);
  EXPECT_EQ(report[0].bytes_written, 4U * 32);
  EXPECT_EQ(report[0].cycles, report[0].bytes_read / 16);
  EXPECT_TRUE(report[0].fast);
}

TEST_F(MachineTest, TasksAreCountedWithoutBeingExecuted) {
  std::memset(arena_.At(kBase), 7, 512);
  std::memset(arena_.At(kBase + 0x1000), 9, 512);
  std::vector<TaskReport> report;
  RunOptions options;
  options.report = &report;
  options.executes = false;
  TaskProgram program(kCommands);
  program.Add(kFlightMask, Copy(0, 0x1000));
  RegisterValues unknown = Copy(0, 0x1000);
  unknown[0x4084] = 0x80000001;
  program.Add(kFlightMask, unknown);

  const absl::Status status = RunProgram(program, options);

  EXPECT_THAT(std::string(status.message()), HasSubstr("(0x4084)"));
  ASSERT_EQ(report.size(), 1U);
  EXPECT_GT(report[0].bytes_written, 0U);
  EXPECT_EQ(*arena_.At(kBase + 0x1000), std::byte{9});
}

TEST(MemoryTest, RangesNeitherOverlapNorLeaveTheAddressSpace) {
  std::vector<std::byte> bytes(64);
  Memory memory;
  EXPECT_FALSE(memory.Attach({0, {}, true}).ok());
  EXPECT_FALSE(memory.Attach({0xffffffd0, bytes, true}).ok());
  ASSERT_TRUE(memory.Attach({0xffffffc0, bytes, true}).ok());
  ASSERT_TRUE(memory.Attach({0x100, bytes, false}).ok());
  EXPECT_FALSE(memory.Attach({0xe0, bytes, true}).ok());
  EXPECT_FALSE(memory.Attach({0x13f, bytes, true}).ok());
  EXPECT_NE(memory.Readable(0x100, 64), nullptr);
  EXPECT_EQ(memory.Readable(0x101, 64), nullptr);
  EXPECT_EQ(memory.Readable(0xff, 1), nullptr);
  EXPECT_EQ(memory.Readable(0x100, ~uint64_t{0}), nullptr);
  EXPECT_EQ(memory.Writable(0x100, 1), nullptr);
  EXPECT_NE(memory.Writable(0xffffffff, 1), nullptr);
  EXPECT_TRUE(memory.Detach(0x100).ok());
  EXPECT_FALSE(memory.Detach(0x100).ok());
}

TEST(RegistersTest, AreInOrderAndOfKnownBlocks) {
  uint32_t last = 0;
  for (const RegisterInfo& info : Registers()) {
    EXPECT_GT(info.reg, last);
    last = info.reg;
    EXPECT_EQ(FindRegister(info.reg), &info);
    EXPECT_THAT(NameOf(info.reg), ::testing::Not(HasSubstr("no block")));
  }
  EXPECT_EQ(FindRegister(0x1000), nullptr);
  EXPECT_EQ(NameOf(0x100c), "CNA CONV_CON1 (0x100c)");
  EXPECT_EQ(NameOf(0x2004), "no block register 0x2004");
}

}  // namespace
}  // namespace rknnd::rknpu
