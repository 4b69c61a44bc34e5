#include "driver/soft/timing/layer_cost.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "driver/soft/timing/testing/published_cycles.h"

namespace rknnd::soft {
namespace {

SocProfile KnownSoc(const char* name) { return *FindSoc(name); }

TEST(EstimateLayerTest, ReproducesEveryPublishedConvolutionToTheCycle) {
  uint32_t convolutions = 0;
  for (const PublishedTable& table : PublishedTables()) {
    const SocProfile soc = KnownSoc(table.soc);
    for (const PublishedConv& row : table.rows) {
      EXPECT_EQ(EstimateLayer(WorkOf(row, soc), soc).npu_cycles, row.npu_cycles)
          << table.name << ": " << row.in_channels << " -> " << row.out_channels
          << ", " << row.kernel << "x" << row.kernel << " at " << row.height
          << "x" << row.width;
      convolutions += row.count;
    }
  }
  EXPECT_EQ(convolutions, 66U + 66U + 10U + 8U);
}

TEST(EstimateLayerTest, DdrCyclesAreTheBoardsBytes) {
  for (const PublishedTable& table : PublishedTables()) {
    SocProfile soc = KnownSoc(table.soc);
    soc.estimate_gbs = table.ddr_gbs;
    for (const PublishedConv& row : table.rows) {
      if (row.ddr_cycles == 0) continue;
      const LayerEstimate estimate = EstimateLayer(WorkOf(row, soc), soc);
      // The last layers of detectors are a few bytes off, in the weights.
      EXPECT_NEAR(static_cast<double>(estimate.ddr_cycles),
                  static_cast<double>(row.ddr_cycles),
                  10 + 1e-4 * static_cast<double>(row.ddr_cycles))
          << table.name << ": " << row.in_channels << " -> " << row.out_channels
          << ", " << row.kernel << "x" << row.kernel << " at " << row.height
          << "x" << row.width;
    }
  }
}

// 64 -> 64 channels, 3x3, 240x240.
LayerWork Large(const SocProfile& soc) {
  return WorkOf({64, 64, 3, 1, 240, 240, 2073600, 313274}, soc);
}

TEST(EstimateLayerTest, MacsAreThoseOfTheConvolution) {
  const SocProfile soc = KnownSoc("rk3588");
  EXPECT_EQ(EstimateLayer(Large(soc), soc).macs,
            uint64_t{240} * 240 * 64 * 64 * 9);
}

TEST(EstimateLayerTest, TwoBytesAnElementTakeTwiceAsLong) {
  const SocProfile soc = KnownSoc("rk3588");
  LayerWork work = Large(soc);
  work.element_bytes = 2;
  EXPECT_EQ(EstimateLayer(work, soc).npu_cycles, 2U * 2073600U);
}

TEST(EstimateLayerTest, OnlyConvolutionsHaveNpuCycles) {
  const SocProfile soc = KnownSoc("rk3588");
  LayerWork work;
  work.read = 2365400;
  work.written = 0;
  const LayerEstimate estimate = EstimateLayer(work, soc);
  EXPECT_EQ(estimate.npu_cycles, 0U);
  EXPECT_EQ(estimate.macs, 0U);
  EXPECT_EQ(estimate.ddr_cycles, 100000U);
}

TEST(EstimateLayerTest, ShapesOfAnySizeDoNotWrapAround) {
  const SocProfile soc = KnownSoc("rk3588");
  ConvShape shape;
  shape.images = shape.in_height = shape.in_width = UINT64_MAX / 2;
  shape.out_height = shape.out_width = shape.out_channels = UINT64_MAX / 2;
  shape.in_channels = shape.taps = UINT64_MAX / 2;
  const LayerWork work = ConvWork(shape, soc);
  EXPECT_EQ(EstimateLayer(work, soc).npu_cycles, UINT64_MAX);
  const LayerTime time = SimulateLayer(work, soc);
  EXPECT_GT(SimulateProgram({&time, 1}, soc, {}), 0);
}

TEST(SimulateLayerTest, ALargeConvolutionIsBoundByItsMacs) {
  const SocProfile soc = KnownSoc("rk3588");
  EXPECT_NEAR(SimulateLayer(Large(soc), soc).alone(), 2073600 / 0.95 + 8000,
              1.0);
}

TEST(SimulateLayerTest, SwishIsBoundByItsTable) {
  const SocProfile soc = KnownSoc("rk3588");
  LayerWork work = WorkOf({64, 64, 1, 1, 240, 240, 0, 0}, soc);
  const double plain = SimulateLayer(work, soc).alone();
  work.lut = true;
  EXPECT_NEAR(SimulateLayer(work, soc).alone(), 240 * 240 * 64 / 2.1 + 8000,
              1.0);
  EXPECT_LT(plain, SimulateLayer(work, soc).alone());
}

TEST(SimulateLayerTest, TheRk3576HasNoCapBehindSwish) {
  const SocProfile soc = KnownSoc("rk3576");
  LayerWork work = Large(soc);
  const double plain = SimulateLayer(work, soc).alone();
  work.lut = true;
  EXPECT_EQ(SimulateLayer(work, soc).alone(), plain);
}

TEST(SimulateLayerTest, HostLayersTakeNoTimeOfTheNpu) {
  LayerWork work;
  work.kind = LayerKind::kHost;
  work.read = 1 << 20;
  EXPECT_EQ(SimulateLayer(work, KnownSoc("rk3588")).alone(), 0.0);
}

// A mover of 10 MB: one millisecond at an RK3588's 10 GB/s.
LayerTime Mover(const SocProfile& soc) {
  LayerWork work;
  work.read = work.written = 5000000;
  return SimulateLayer(work, soc);
}

TEST(SimulateProgramTest, LayersAddUp) {
  const SocProfile soc = KnownSoc("rk3588");
  const std::vector<LayerTime> layers = {Mover(soc), Mover(soc)};
  EXPECT_EQ(SimulateProgram(layers, soc, {}), 2 * (1000000 + 8000));
}

TEST(SimulateProgramTest, BusyCoresShareTheDdr) {
  const SocProfile soc = KnownSoc("rk3588");
  const LayerTime layer = Mover(soc);
  // 14 GB/s each is more than a mover takes, 28/3 is less.
  EXPECT_EQ(SimulateProgram({&layer, 1}, soc, {.busy = 2}), 1008000);
  EXPECT_NEAR(
      static_cast<double>(SimulateProgram({&layer, 1}, soc, {.busy = 3})),
      10e6 / (28.0 / 3) + 8000, 1.0);
}

TEST(SimulateProgramTest, CoresThatShareALayerOutEndItSooner) {
  const SocProfile soc = KnownSoc("rk3588");
  LayerTime layer = SimulateLayer(Large(soc), soc);
  const double alone = layer.alone() - 8000;
  EXPECT_NEAR(
      static_cast<double>(SimulateProgram({&layer, 1}, soc, {.cores = 2})),
      alone + 8000, 1.0);
  layer.splits = true;
  EXPECT_NEAR(
      static_cast<double>(SimulateProgram({&layer, 1}, soc, {.cores = 2})),
      alone / 2 + 8000, 1.0);
}

TEST(SimulateProgramTest, HalfTheClockTakesTwiceTheTime) {
  const SocProfile soc = KnownSoc("rk3588");
  const std::vector<LayerTime> layers = {Mover(soc),
                                         SimulateLayer(Large(soc), soc)};
  const auto full = static_cast<double>(SimulateProgram(layers, soc, {}));
  EXPECT_NEAR(static_cast<double>(SimulateProgram(layers, soc, {.clock = 0.5})),
              2 * full, 2.0);
}

}  // namespace
}  // namespace rknnd::soft
