// Both engines on the same random tasks, at every level of CPU, and on tasks
// whose registers were changed at random: the same end, the same bytes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "driver/rknpu/emulator/kernels/kernels.h"
#include "driver/rknpu/emulator/testing/both_engines.h"
#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::rknpu {
namespace {

using testing::AnyTask;
using testing::ChooseTask;
using testing::Comparison;
using testing::RunBoth;

std::vector<uint8_t> RandomBytes(std::mt19937& random) {
  std::vector<uint8_t> bytes(testing::kArenaBytes);
  // Coefficients of four bytes that have the size of real ones, now and then.
  const bool small = random() % 2 == 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(random());
    const bool upper = i >= 0x4000 && i < 0x4800 && i % 64 < 32 && i % 4 >= 2;
    if (small && upper) bytes[i] = 0;
  }
  return bytes;
}

TEST(EnginesTest, LeaveTheSameBytesAtAllLevels) {
  for (const soft::CpuLevel level : soft::UsableCpuLevels()) {
    std::mt19937 random(1);
    size_t ran = 0, fast = 0;
    constexpr size_t kTasks = 400;
    for (size_t i = 0; i < kTasks; ++i) {
      SCOPED_TRACE(std::string(soft::CpuLevelName(level)) + ", task " +
                   std::to_string(i));
      const AnyTask task =
          ChooseTask([&](uint32_t below) { return random() % below; });
      const Comparison result =
          RunBoth(task, RandomBytes(random), fast::KernelsFor(level));
      ASSERT_EQ(result.difference, "");
      ran += result.ran ? 1 : 0;
      fast += result.fast ? 1 : 0;
    }
    EXPECT_GT(ran, kTasks * 8 / 10);
    EXPECT_GT(fast, kTasks / 2);
  }
}

TEST(EnginesTest, ChangedRegistersEndWithAReasonOrTheSameBytes) {
  std::mt19937 random(2);
  size_t ran = 0, refused = 0;
  for (size_t i = 0; i < 3000; ++i) {
    SCOPED_TRACE("task " + std::to_string(i));
    AnyTask task = ChooseTask([&](uint32_t below) { return random() % below; });
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      auto at = task.registers.begin();
      std::advance(at, random() % task.registers.size());
      switch (random() % 3) {
        case 0:
          at->second ^= 1U << random() % 32;
          break;
        case 1:
          at->second += random() % 64 - 32;
          break;
        default:
          at->second = static_cast<uint32_t>(random());
      }
    }
    const Comparison result = RunBoth(
        task, RandomBytes(random), fast::KernelsFor(soft::CurrentCpuLevel()));
    ASSERT_EQ(result.difference, "");
    EXPECT_EQ(result.refusal.empty(), result.ran);
    ++(result.ran ? ran : refused);
  }
  EXPECT_GT(ran, 300U);
  EXPECT_GT(refused, 300U);
}

// Every loop of either engine asks, so a task of any kind and size ends.
TEST(EnginesTest, AskWhetherTheJobWasStopped) {
  std::mt19937 random(3);
  size_t ended = 0;
  for (size_t i = 0; i < 200; ++i) {
    SCOPED_TRACE("task " + std::to_string(i));
    const AnyTask task =
        ChooseTask([&](uint32_t below) { return random() % below; });
    const fast::Kernels& kernels = fast::KernelsFor(soft::CurrentCpuLevel());
    if (!RunBoth(task, {}, kernels).ran) continue;
    ++ended;
    EXPECT_TRUE(testing::EndsWhenStopped(task, nullptr));
    EXPECT_TRUE(testing::EndsWhenStopped(task, &kernels));
  }
  EXPECT_GT(ended, 150U);
}

}  // namespace
}  // namespace rknnd::rknpu
