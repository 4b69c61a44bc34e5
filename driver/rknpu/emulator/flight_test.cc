// Tasks of the DPU alone and of the PPU by hand-made programs, against numbers
// that the test computes by itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/emulator/testing/arena.h"
#include "driver/rknpu/emulator/testing/task_builder.h"

namespace rknnd::rknpu {
namespace {

using testing::Arena;
using testing::FlightTask;
using testing::Map;
using testing::PoolTask;
using testing::RegisterValues;
using testing::TaskProgram;

constexpr uint32_t kInput = Arena::kBase, kOperand = kInput + 0x8000,
                   kCoefficients = kInput + 0x10000, kOutput = kInput + 0x18000,
                   kCommands = 0x08000000;

int64_t Rounded(int64_t v, int n) {
  return n == 0 ? v : (v + (int64_t{1} << (n - 1))) >> n;
}

int8_t Clip(int64_t v) {
  return static_cast<int8_t>(std::clamp<int64_t>(v, -128, 127));
}

absl::Status RunProgram(Arena& arena, TaskProgram& program, Engine engine) {
  program.Finish(arena.memory());
  Machine machine;
  const std::span<const Task> tasks = program.tasks();
  RunOptions options;
  options.engine = engine;
  const absl::Status status = machine.Run(arena.memory(), {{tasks}}, options);
  EXPECT_TRUE(arena.memory().Detach(kCommands).ok());
  return status;
}

class FlightTest : public ::testing::TestWithParam<Engine> {
 protected:
  FlightTest() : map_(32, 5, 6), operand_(32, 5, 6), arena_(0x20000) {
    std::mt19937 random(9);
    map_.Fill(random);
    operand_.Fill(random);
    arena_.PutMap(kInput, map_);
    arena_.PutMap(kOperand, operand_);
    task_ = FlightTask(6, 5, 32, kInput, kOutput);
  }

  // Runs the task and expects that function of channel, line and pixel.
  void ExpectOutput(
      const std::function<int64_t(uint32_t c, uint32_t y, uint32_t x)>& f) {
    TaskProgram program(kCommands);
    program.Add(testing::kFlightMask, task_);
    const absl::Status status = RunProgram(arena_, program, GetParam());
    ASSERT_TRUE(status.ok()) << status;
    ExpectMap(f);
  }
  void ExpectMap(
      const std::function<int64_t(uint32_t c, uint32_t y, uint32_t x)>& f) {
    const Map output = arena_.GetMap(kOutput, 32, 5, 6);
    for (uint32_t c = 0; c < 32; ++c) {
      for (uint32_t y = 0; y < 5; ++y) {
        for (uint32_t x = 0; x < 6; ++x) {
          ASSERT_EQ(int{output.At(c, y, x)}, int{Clip(f(c, y, x))})
              << "channel " << c << ", line " << y << ", pixel " << x;
        }
      }
    }
  }

  Map map_, operand_;
  Arena arena_;
  RegisterValues task_;
};

TEST_P(FlightTest, CopiesWithAllStagesOff) {
  ExpectOutput([&](auto c, auto y, auto x) { return map_.At(c, y, x); });
}

TEST_P(FlightTest, Requantises) {
  task_[0x4040] = 0x20050;  // add a register
  task_[0x4044] = 37;
  task_[0x4080] = static_cast<uint32_t>(-20);
  task_[0x4084] = 0x9ed3;
  task_[0x4088] = 15;
  ExpectOutput([&](auto c, auto y, auto x) {
    return Rounded((map_.At(c, y, x) + 37) * 0x9ed3, 15) - 20;
  });
}

// Halves go up, also below zero.
TEST_P(FlightTest, HalvesAreRoundedUp) {
  task_[0x4084] = 1;
  task_[0x4088] = 1;
  ExpectOutput(
      [&](auto c, auto y, auto x) { return (map_.At(c, y, x) + 1) >> 1; });
}

TEST_P(FlightTest, AddsAnotherMap) {
  task_[0x4010] = 1 << 4;
  task_[0x4040] = 0x20040;  // (v + 120) * 0x5416 >> 1
  task_[0x4044] = 120;
  task_[0x4048] = 0x54160100;
  task_[0x4070] = 0x904202c0;
  task_[0x4074] = 125;
  task_[0x4078] = 0x4000;
  task_[0x4080] = static_cast<uint32_t>(-120);
  task_[0x4084] = 0x7756;
  task_[0x4088] = 29;
  task_[0x5034] = 0x40000004;
  task_[0x5038] = kOperand;
  task_[0x5040] = 32 * 16;
  ExpectOutput([&](auto c, auto y, auto x) {
    const int64_t v = Rounded((map_.At(c, y, x) + 120) * 0x5416, 1);
    const int64_t e = (operand_.At(c, y, x) + 125) * 0x4000;
    return Rounded((v + e) * 0x7756, 29) - 120;
  });
}

TEST_P(FlightTest, MultipliesByOneValueAChannel) {
  task_[0x4070] = 0x804002c4;
  task_[0x4074] = 3;
  task_[0x4078] = 1;
  task_[0x4084] = 0x4800;
  task_[0x4088] = 20;
  task_[0x5034] = 4;
  task_[0x5038] = kOperand;
  task_[0x5040] = 16;
  ExpectOutput([&](uint32_t c, auto y, auto x) {
    // The first atoms of the operand's memory, one for each surface.
    const int e = operand_.At(c % 16, 0, c / 16);
    return Rounded(int64_t{map_.At(c, y, x)} * (e + 3) * 0x4800, 20);
  });
}

TEST_P(FlightTest, TakesTheLargerAndTheSmaller) {
  task_[0x5034] = 0x40000004;
  task_[0x5038] = kOperand;
  task_[0x5040] = 32 * 16;
  task_[0x4070] = 0x904003c0;  // maximum, operand as it is
  ExpectOutput([&](auto c, auto y, auto x) {
    return std::max(map_.At(c, y, x), operand_.At(c, y, x));
  });
  task_[0x4070] = 0x904103c0;
  ExpectOutput([&](auto c, auto y, auto x) {
    return std::min(map_.At(c, y, x), operand_.At(c, y, x));
  });
}

TEST_P(FlightTest, ScalesAndShiftsChannelsFromMemory) {
  std::array<int16_t, 32> mul;
  std::array<int32_t, 32> bias;
  for (int i = 0; i < 32; ++i) {
    mul[static_cast<size_t>(i)] = static_cast<int16_t>(i * 500 - 7000);
    bias[static_cast<size_t>(i)] = 1000 * (16 - i);
  }
  arena_.Put<int16_t>(kCoefficients, mul);
  arena_.Put<int32_t>(kCoefficients + 256, bias);
  task_[0x4040] = 0x42;  // multiply only
  task_[0x4048] = 1;
  task_[0x4060] = 0x20110;  // add from memory, ReLU
  task_[0x501c] = 8;
  task_[0x5020] = kCoefficients;
  task_[0x5028] = 2;
  task_[0x502c] = kCoefficients + 256;
  task_[0x4080] = static_cast<uint32_t>(-128);
  task_[0x4084] = 0x5000;
  task_[0x4088] = 26;
  ExpectOutput([&](uint32_t c, auto y, auto x) {
    const int64_t v = int64_t{map_.At(c, y, x)} * mul[c] + bias[c];
    return Rounded(std::max<int64_t>(v, 0) * 0x5000, 26) - 128;
  });
}

TEST_P(FlightTest, LinesMayLieApartOnBothSides) {
  // Only four pixels of each line, and four lines.
  task_ = FlightTask(4, 4, 32, kInput + 6 * 16 + 16, kOutput + 6 * 16 + 16);
  task_[0x5048] = 2 << 19;
  task_[0x504c] = (32 - (3 * 6 + 4)) * 16;
  task_[0x4024] = task_[0x40c0] = 32 * 16;
  task_[0x4038] = 2 << 16 | 2;
  ExpectOutput([&](uint32_t c, uint32_t y, uint32_t x) -> int64_t {
    return y >= 1 && x >= 1 && x < 5 ? map_.At(c, y, x) : 0;
  });
}

// 1 at the end of each half; a straight line, so that values between entries
// are known.
TEST_P(FlightTest, TablesJoinTheirEntriesByLines) {
  std::vector<int16_t> le, lo;
  for (int i = 0; i <= 512; ++i) {
    le.push_back(static_cast<int16_t>(30 * i - 512 * 30));
    lo.push_back(static_cast<int16_t>(50 * i));
  }
  RegisterValues load = FlightTask(1, 1, 16, kInput + 0x7000, kInput + 0x7010);
  testing::UseTable(task_);
  task_[0x4010] = 3 << 10;
  task_[0x4060] = 0x20040;  // v * 1401 >> 3, so up to 22416: beyond the end
  task_[0x4068] = 1401U << 16 | 3 << 8;
  task_[0x4120] = 9;
  task_[0x4124] = 2;
  task_[0x4128] = static_cast<uint32_t>(-11) << 16;
  task_[0x412c] = 3 << 5;
  task_[0x4080] = 5;
  task_[0x4084] = 0x5000;
  task_[0x4088] = 22;
  TaskProgram program(kCommands);
  program.Add(testing::kFlightMask, load, 1, testing::TableCommands(le, lo));
  program.Add(testing::kFlightMask, task_);
  const absl::Status status = RunProgram(arena_, program, GetParam());
  ASSERT_TRUE(status.ok()) << status;
  ExpectMap([&](auto c, auto y, auto x) {
    const int64_t v = Rounded(int64_t{map_.At(c, y, x)} * 1401, 3);
    int64_t f = 0;
    if (v < -16384) {
      f = -512 * 30 + (((v + 16384) * 9) >> 2);
    } else if (v > 16384) {
      f = 512 * 50 + (((v - 16384) * -11) >> 3);
    } else {
      const int64_t p = v < 0 ? v + 16384 : v;
      const int64_t rise = v < 0 ? 30 : 50;
      f = (v < 0 ? -512 * 30 : 0) + rise * (p >> 5) +
          Rounded(rise * (p & 31), 5);
    }
    return Rounded(f * 0x5000, 22) + 5;
  });
}

TEST_P(FlightTest, UnpoolsEachPixelToAWindow) {
  task_ = FlightTask(6, 5, 16, kInput, kOutput);
  task_[0x4010] = 0x04000000;
  task_[0x4024] = 12 * 16;
  task_[0x4038] = 24 << 16 | 24;  // the two other lines of three
  task_[0x4050] = 2 * 0x124 | 2;
  task_[0x405c] = 4 << 16 | 11;
  task_[0x5014] = 7;
  task_[0x5044] = 0xf801;
  // Two wide, three high.
  task_[0x5048] = 1 << 12 | 1 | 2 << 3 | 1 << 6 | 2 << 9;
  TaskProgram program(kCommands);
  program.Add(testing::kFlightMask, task_);
  const absl::Status status = RunProgram(arena_, program, GetParam());
  ASSERT_TRUE(status.ok()) << status;
  const Map output = arena_.GetMap(kOutput, 16, 15, 12);
  for (uint32_t c = 0; c < 16; ++c) {
    for (uint32_t y = 0; y < 15; ++y) {
      for (uint32_t x = 0; x < 12; ++x) {
        ASSERT_EQ(output.At(c, y, x), map_.At(c, y / 3, x / 2));
      }
    }
  }
}

TEST_P(FlightTest, ByteTransposeTurnsPixelsIntoChannels) {
  task_ = FlightTask(8, 4, 8, kInput, kOutput);
  task_[0x400c] = 0x1e5 | 32 << 9;
  task_[0x4010] = 0x24000001;
  task_[0x4024] = 0x40;  // channel to channel
  task_[0x40c0] = 0x10;  // group to group
  task_[0x4050] = 1 << 27 | 7 * 0x124 | 2;
  task_[0x4038] = 24 << 16 | 24;  // (8 + 24) atoms: eight channels
  task_[0x5044] = 0xf821;
  TaskProgram program(kCommands);
  program.Add(testing::kFlightMask, task_);
  const absl::Status status = RunProgram(arena_, program, GetParam());
  ASSERT_TRUE(status.ok()) << status;
  for (uint32_t n = 0; n < 32; ++n) {
    for (uint32_t c = 0; c < 16; ++c) {
      const std::byte from = *arena_.At(kInput + n * 16 + c);
      const uint32_t to =
          (c / 8) * 16 * 32 + (c % 8) * 0x40 + (n / 16) * 0x10 + n % 16;
      ASSERT_EQ(*arena_.At(kOutput + to), from) << n << " " << c;
    }
  }
}

TEST_P(FlightTest, AtomTransposeExchangesPixelsAndLines) {
  task_ = FlightTask(8, 3, 8, kInput, kOutput);
  task_[0x400c] = 0x400001e5;
  task_[0x4010] = 0x24000001;
  task_[0x4024] = 3 * 16;
  task_[0x4050] = 7 * 0x124 | 2;
  task_[0x5044] = 0xf821;
  TaskProgram program(kCommands);
  program.Add(testing::kFlightMask, task_);
  const absl::Status status = RunProgram(arena_, program, GetParam());
  ASSERT_TRUE(status.ok()) << status;
  for (uint32_t y = 0; y < 3; ++y) {
    for (uint32_t x = 0; x < 8; ++x) {
      for (uint32_t i = 0; i < 16; ++i) {
        ASSERT_EQ(*arena_.At(kOutput + (x * 3 + y) * 16 + i),
                  *arena_.At(kInput + (y * 8 + x) * 16 + i));
      }
    }
  }
}

TEST_P(FlightTest, LargestOfWindowsWithABorder) {
  task_ = PoolTask(6, 5, 32, kInput, kOutput);
  task_[0x6018] = 2;  // three wide, three high
  task_[0x601c] = 2;
  task_[0x6034] = 2 | 2 << 8 | 1 << 16 | 1 << 20;
  task_[0x6040] = 0x1111;
  task_[0x607c] = task_[0x6084] = 12 * 16;
  TaskProgram program(kCommands);
  program.Add(testing::kPoolMask, task_);
  const absl::Status status = RunProgram(arena_, program, GetParam());
  ASSERT_TRUE(status.ok()) << status;
  const Map output = arena_.GetMap(kOutput, 32, 3, 3);
  for (uint32_t c = 0; c < 32; ++c) {
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 3; ++x) {
        int most = -128;
        for (int j = std::max(2 * y - 1, 0); j <= std::min(2 * y + 1, 4); ++j) {
          for (int i = std::max(2 * x - 1, 0); i <= std::min(2 * x + 1, 5);
               ++i) {
            most = std::max<int>(most, map_.At(c, static_cast<uint32_t>(j),
                                               static_cast<uint32_t>(i)));
          }
        }
        ASSERT_EQ(int{output.At(c, static_cast<uint32_t>(y),
                                static_cast<uint32_t>(x))},
                  most);
      }
    }
  }
}

TEST_P(FlightTest, AveragesMultiplyBy65536ths) {
  task_ = PoolTask(6, 5, 32, kInput, kOutput);
  task_[0x6018] = 1;  // two wide, one high
  task_[0x601c] = 0;
  task_[0x6024] = 0x10;
  task_[0x6034] = 2 | 4 << 8 | 2 << 16 | 4 << 20;
  task_[0x6038] = 65536 / 3;
  task_[0x603c] = 65536 / 5;
  task_[0x6040] = 0x0001;
  task_[0x6044] = static_cast<uint32_t>(-77);
  task_[0x6048] = 7;
  task_[0x607c] = task_[0x6084] = 4 * 16;
  TaskProgram program(kCommands);
  program.Add(testing::kPoolMask, task_);
  const absl::Status status = RunProgram(arena_, program, GetParam());
  ASSERT_TRUE(status.ok()) << status;
  const Map output = arena_.GetMap(kOutput, 32, 1, 2);
  for (uint32_t c = 0; c < 32; ++c) {
    for (int x = 0; x < 2; ++x) {
      int64_t sum = 0;
      for (uint32_t j = 0; j < 5; ++j) {
        for (int i = 3 * x - 1; i < 3 * x + 2; ++i) {
          sum += i < 0 ? -77 : map_.At(c, j, static_cast<uint32_t>(i));
        }
      }
      ASSERT_EQ(int{output.At(c, 0, static_cast<uint32_t>(x))},
                int{Clip(Rounded(sum * (65536 / 3) * (65536 / 5), 32))});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, FlightTest,
                         ::testing::Values(Engine::kPlain, Engine::kFast),
                         [](const auto& instance) {
                           return instance.param == Engine::kPlain ? "Plain"
                                                                   : "Fast";
                         });

}  // namespace
}  // namespace rknnd::rknpu
