// What the kernel tells of the NPU, as boards have it.

#include "daemon/board/npu_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/board/testing/board_tree.h"

namespace rknnd::board {
namespace {

using testing::BoardTree;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NpuFiguresTest, AnRk3588OfTheVendorsKernel) {
  const BoardTree tree;
  tree.AddClocks();
  tree.Put("/sys/kernel/debug/rknpu/load",
           "NPU load:  Core0:  0%, Core1: 37%, Core2:100%,\n");
  tree.Put("/sys/kernel/debug/rknpu/mm",
           "SRAM bitmap: \"*\" - used, \".\" - free (1bit = 4KB)\n"
           "[000] [****............................]\n"
           "SRAM total size: 978944, used: 147456, free: 831488\n");
  tree.Put("/sys/class/thermal/thermal_zone6/type", "npu-thermal\n");
  tree.Put("/sys/class/thermal/thermal_zone6/temp", "45307\n");
  tree.Put("/sys/class/regulator/regulator.7/name", "vdd_npu_s0\n");
  tree.Put("/sys/class/regulator/regulator.7/microvolts", "850000\n");
  tree.Put("/sys/class/regulator/regulator.8/name", "vdd_npu_mem_s0\n");
  tree.Put("/sys/class/regulator/regulator.8/microvolts", "750000\n");
  tree.Put("/sys/devices/platform/fdab0000.npu/power/runtime_status",
           "suspended\n");

  const NpuFigures figures = ReadNpuFigures(Files(tree.root()));

  EXPECT_THAT(figures.load, ElementsAre(0, 37, 100));
  EXPECT_FALSE(figures.load_was_wrong);
  EXPECT_EQ(Describe(figures),
            "load 0 %, 37 %, 100 %; 300 MHz; 0.850 V; 45 C; SRAM 144 of 956 "
            "KiB used; suspended");
}

TEST(NpuFiguresTest, OneCoreAndProcfs) {
  const BoardTree tree;
  tree.Put("/proc/rknpu/load", "NPU load:  5%\n");
  EXPECT_EQ(Describe(ReadNpuFigures(Files(tree.root()))), "load 5 %");
}

TEST(NpuFiguresTest, ALoadAboveAllIsAFaultOfTheCounter) {
  const BoardTree tree;
  tree.Put("/sys/kernel/debug/rknpu/load",
           "NPU load:  Core0:20000%, Core1:  0%, Core2:  0%,\n");
  const NpuFigures figures = ReadNpuFigures(Files(tree.root()));
  EXPECT_THAT(figures.load, ElementsAre(100, 0, 0));
  EXPECT_TRUE(figures.load_was_wrong);
}

TEST(NpuFiguresTest, NothingIsKnownOfAMachineWithoutOne) {
  const BoardTree tree;
  EXPECT_THAT(Describe(ReadNpuFigures(Files(tree.root()))), IsEmpty());
  // Nor of what is no number.
  tree.Put("/sys/kernel/debug/rknpu/load", "NPU load: %, Core1: x%,\n");
  tree.Put("/sys/kernel/debug/rknpu/mm", "\n");
  EXPECT_THAT(Describe(ReadNpuFigures(Files(tree.root()))), IsEmpty());
}

}  // namespace
}  // namespace rknnd::board
