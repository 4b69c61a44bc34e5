// The table as people and scripts read it.

#include "daemon/core/reports/perf_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rknnd::core {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Not;

driver::DeviceInfo ReportedDevice(uint32_t cores) {
  driver::DeviceInfo device;
  device.soc = "rk3588";
  device.cores = cores;
  device.mhz = 1000;
  device.macs_per_cycle = 1024;
  return device;
}

driver::LayerInfo Layer(const char* type, const char* name, bool on_cpu) {
  driver::LayerInfo layer;
  layer.type = type;
  layer.name = name;
  layer.data_type = "INT8";
  layer.on_cpu = on_cpu;
  layer.output_shape = "(1,8,4,4)";
  return layer;
}

std::vector<driver::LayerInfo> SmallNet() {
  std::vector<driver::LayerInfo> layers = {
      Layer("InputOperator", "x", true), Layer("ConvRelu", "c1", false),
      Layer("ConvRelu", "c2", false), Layer("OutputOperator", "y", true)};
  layers[0].data_type = "UINT8";
  layers[1].input_shape = "(1,3,8,8),(8,3,3,3),(8)";
  layers[1].ddr_cycles = 2000;
  layers[1].npu_cycles = 5000;
  layers[1].macs = 1024 * 1000 * 10 / 2;  // half of what 10 us allow
  layers[1].ddr_bytes = 25 * 1024;
  layers[1].ddr_read = 10 * 1024;
  layers[1].splits = true;
  layers[2].ddr_bytes = 2048;
  layers[2].ddr_read = 1024;
  return layers;
}

TEST(PerfReportTest, TableIsAsTheGuideShowsIt) {
  const auto layers = SmallNet();
  const std::vector<int64_t> times = {1000, 10000, 5000, 4000};
  const auto device = ReportedDevice(1);

  const std::string text =
      PerfTable(MakeRows(layers, times, 1, device), device);

  EXPECT_EQ(
      text,
      // clang-format off
"------------------------------------------------------------------------------------------------------------------------------------------------------------------------\n"
"                                                                    Network Layer Information Table\n"
"------------------------------------------------------------------------------------------------------------------------------------------------------------------------\n"
"ID  OpType          DataType  Target  InputShape               OutputShape  DDRCycles  NPUCycles  MaxCycles  Time(us)  MacUsage(%)  TaskNumber  RW(KB)  FullName\n"
"------------------------------------------------------------------------------------------------------------------------------------------------------------------------\n"
"1   InputOperator   UINT8     CPU     \\                        (1,8,4,4)    0          0          0          1         \\            0           0       InputOperator:x\n"
"2   ConvRelu        INT8      NPU     (1,3,8,8),(8,3,3,3),(8)  (1,8,4,4)    2000       5000       5000       10        50.00        1           10      Conv:c1\n"
"3   ConvRelu        INT8      NPU     \\                        (1,8,4,4)    0          0          0          5         \\            1           1       Conv:c2\n"
"4   OutputOperator  INT8      CPU     \\                        (1,8,4,4)    0          0          0          4         \\            0           0       OutputOperator:y\n"
"------------------------------------------------------------------------------------------------------------------------------------------------------------------------\n"
"Total Operator Elapsed Per Frame Time(us): 20\n"
"Total Memory Read/Write Per Frame Size(KB): 11\n"
"----------------------------------------------------------------------------------------------\n"
"                            Operator Time Consuming Ranking Table\n"
"----------------------------------------------------------------------------------------------\n"
"OpType          CallNumber  CPUTime(us)  GPUTime(us)  NPUTime(us)  TotalTime(us)  TimeRatio(%)\n"
"----------------------------------------------------------------------------------------------\n"
"ConvRelu        2           0            0            15           15             75.00%\n"
"OutputOperator  1           4            0            0            4              20.00%\n"
"InputOperator   1           1            0            0            1              5.00%\n"
"----------------------------------------------------------------------------------------------\n"
"Total                       5            0            15           20\n"
"----------------------------------------------------------------------------------------------\n");
  // clang-format on
}

TEST(PerfReportTest, SeveralCoresHaveTheirWorkLoad) {
  const auto layers = SmallNet();
  const std::vector<int64_t> times = {1000, 10000, 5000, 4000};
  const auto device = ReportedDevice(3);

  const auto rows = MakeRows(layers, times, 0b011, device);

  EXPECT_THAT(rows[0].work_load, ElementsAre(0, 0, 0));
  EXPECT_THAT(rows[1].work_load, ElementsAre(50, 50, 0));
  EXPECT_THAT(rows[1].mac_usage,
              ElementsAre(FloatEq(25), FloatEq(25), FloatEq(0)));
  EXPECT_EQ(rows[1].tasks, 2U);
  // A layer that is not shared out runs on the lowest core.
  EXPECT_THAT(rows[2].work_load, ElementsAre(100, 0, 0));
  const std::string text = PerfTable(rows, device);
  EXPECT_THAT(text, HasSubstr("WorkLoad(0/1/2)"));
  EXPECT_THAT(text, HasSubstr("50.0%/50.0%/0.0%"));
  EXPECT_THAT(text, HasSubstr("25.00/25.00/0.00"));
}

TEST(PerfReportTest, OneCoreHasNoWorkLoad) {
  const auto layers = SmallNet();
  const auto device = ReportedDevice(1);
  EXPECT_THAT(PerfTable(MakeRows(layers, std::vector<int64_t>(4, 1), 1, device),
                        device),
              Not(HasSubstr("WorkLoad")));
}

TEST(PerfReportTest, KernelsAreTheLastColumn) {
  auto layers = SmallNet();
  layers[1].kernel = "bytes avx2";
  layers[2].kernel = "oneDNN ref:any";
  layers[2].is_slow = true;
  const auto device = ReportedDevice(1);

  const std::string text = PerfTable(
      MakeRows(layers, std::vector<int64_t>(4, 1), 1, device), device);

  EXPECT_THAT(text, HasSubstr("  FullName          Kernel\n"));
  EXPECT_THAT(text, HasSubstr("  InputOperator:x   \\\n"));
  EXPECT_THAT(text, HasSubstr("  Conv:c1           bytes avx2\n"));
  EXPECT_THAT(text, HasSubstr("  Conv:c2           oneDNN ref:any (slow)\n"));
}

TEST(PerfReportTest, HalfPrecisionHasHalfTheMultipliers) {
  auto layers = SmallNet();
  layers[1].data_type = "FLOAT16";
  const std::vector<int64_t> times = {1000, 10000, 5000, 4000};
  EXPECT_THAT(MakeRows(layers, times, 1, ReportedDevice(1))[1].mac_usage,
              ElementsAre(FloatEq(100)));
}

TEST(PerfReportTest, ShapesAreInBrackets) {
  EXPECT_EQ(ShapesText("1x3x8x8,8x3x3x3"), "(1,3,8,8),(8,3,3,3)");
  EXPECT_EQ(ShapesText("(1,3)"), "(1,3)");
  EXPECT_EQ(ShapesText(""), "");
}

TEST(PerfReportTest, NamesCannotSteerATerminal) {
  auto layers = SmallNet();
  layers[1].name = "a\x1b[2Jb\nc\xc2\x9bm";
  const auto device = ReportedDevice(1);
  EXPECT_THAT(PerfTable(MakeRows(layers, std::vector<int64_t>(4, 1), 1, device),
                        device),
              HasSubstr("Conv:a?[2Jb?c\xc2?m\n"));
}

TEST(PerfReportTest, LongShapesAreCutForTheSakeOfEveryOtherRow) {
  auto layers = SmallNet();
  layers[1].input_shape = "(" + std::string(100'000, '1') + ")";
  const auto device = ReportedDevice(1);
  const std::string text = PerfTable(
      MakeRows(layers, std::vector<int64_t>(4, 1), 1, device), device);
  EXPECT_THAT(text, HasSubstr("111...  "));
  EXPECT_LT(text.size(), 8000U);
}

TEST(PerfReportTest, NoTimeIsNoDivision) {
  const auto layers = SmallNet();
  const auto device = ReportedDevice(1);
  const std::string text = PerfTable(
      MakeRows(layers, std::vector<int64_t>(4, 0), 1, device), device);
  EXPECT_THAT(text, HasSubstr("Time(us): 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace rknnd::core
