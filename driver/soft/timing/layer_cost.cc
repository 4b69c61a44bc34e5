#include "driver/soft/timing/layer_cost.h"

#include <algorithm>
#include <cmath>

namespace rknnd::soft {
namespace {

// Of an RK3588 core: 32 input channels by 32 outputs a cycle, 16 pixels at a
// time; and no more than 8 outputs leave it in a cycle.
constexpr uint64_t kChannelsAtOnce = 32;
constexpr uint64_t kPixelsAtOnce = 16;
constexpr uint64_t kLeastCycles = 4;
constexpr uint64_t kDepthwiseChannels = 64;
constexpr uint64_t kFullCore = 1024;  // MAC/cycle

// Bytes a nanosecond, in and out, of an RK3588 core; by its mover rate for
// others.
constexpr double kResizeRate = 2.5, kPoolRate = 1.4, kMoverRate = 10.0;

uint64_t CeilDiv(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

// Two bytes an element take the multipliers twice as long.
uint64_t Width(const LayerWork& work) {
  return std::max<uint64_t>(1, work.element_bytes);
}

uint64_t Macs(const LayerWork& work) {
  if (work.kind != LayerKind::kConv && work.kind != LayerKind::kDepthwise) {
    return 0;
  }
  const uint64_t each =
      Times(Times(work.in_channels, work.out_channels), work.taps);
  return Times(Times(Times(work.images, work.pixels), work.groups), each);
}

// Cycles of a core of 1024 MAC/cycle.
uint64_t FullCoreCycles(const LayerWork& work) {
  const uint64_t pixels =
      Times(CeilDiv(work.pixels, kPixelsAtOnce), kPixelsAtOnce);
  const uint64_t all = Times(work.images, pixels);
  if (work.kind == LayerKind::kConv) {
    const uint64_t blocks =
        CeilDiv(Times(work.out_channels, Width(work)), kChannelsAtOnce);
    const uint64_t steps =
        std::max(kLeastCycles,
                 Times(CeilDiv(work.in_channels, kChannelsAtOnce), work.taps));
    return Times(Times(Times(all, blocks), steps), work.groups);
  }
  if (work.kind == LayerKind::kDepthwise) {
    const uint64_t channels = Times(work.groups, work.out_channels);
    return Times(
        Times(all, CeilDiv(Times(channels, Width(work)), kDepthwiseChannels)),
        work.taps);
  }
  return 0;
}

double AsDouble(uint64_t value) { return static_cast<double>(value); }

}  // namespace

LayerEstimate EstimateLayer(const LayerWork& work, const SocProfile& soc) {
  LayerEstimate estimate;
  estimate.macs = Macs(work);
  estimate.read_bytes = Plus(work.read, work.weights);
  estimate.ddr_bytes = Plus(estimate.read_bytes, work.written);
  if (work.kind == LayerKind::kHost) return estimate;
  // The guide's table of an RK3568 (figure 8-6) has MACs by 512 and nothing
  // else: for cores narrower than the RK3588's.
  estimate.npu_cycles =
      soc.macs_per_cycle >= kFullCore
          ? FullCoreCycles(work)
          : Times(estimate.macs, Width(work)) / soc.macs_per_cycle;
  estimate.ddr_cycles = static_cast<uint64_t>(std::llround(std::min(
      AsDouble(estimate.ddr_bytes) / soc.estimate_gbs * soc.max_mhz / 1000.0,
      9e18)));
  return estimate;
}

double LayerTime::alone() const {
  return std::max(compute, bytes / bytes_rate) + start_up;
}

LayerTime SimulateLayer(const LayerWork& work, const SocProfile& soc) {
  const TimingRow& row = soc.timing;
  LayerTime time;
  if (work.kind == LayerKind::kHost) return time;
  time.splits = work.splits;
  time.start_up = row.layer_nanoseconds;
  time.bytes = AsDouble(Plus(Plus(work.read, work.weights), work.written));
  const bool is_conv =
      work.kind == LayerKind::kConv || work.kind == LayerKind::kDepthwise;
  const double against_rk3588 = row.mover_bytes / kMoverRate;
  switch (work.kind) {
    case LayerKind::kConv:
    case LayerKind::kDepthwise:
      time.bytes_rate = row.conv_bytes;
      break;
    case LayerKind::kResize:
      time.bytes_rate = kResizeRate * against_rk3588;
      break;
    case LayerKind::kPool:
      time.bytes_rate = kPoolRate * against_rk3588;
      break;
    case LayerKind::kMover:
    case LayerKind::kHost:
      time.bytes_rate = row.mover_bytes;
      break;
  }
  if (is_conv) {
    time.compute = AsDouble(FullCoreCycles(work)) / row.mac;
  }
  if (is_conv || work.lut) {
    const uint64_t channels =
        Times(CeilDiv(Times(work.groups, work.out_channels), kChannelsAtOnce),
              kChannelsAtOnce);
    const double outputs =
        AsDouble(Times(Times(work.images, work.outputs), channels)) *
        AsDouble(Width(work));
    const double rate = work.lut ? row.lut_outputs : row.plain_outputs;
    if (rate > 0) time.compute = std::max(time.compute, outputs / rate);
  }
  return time;
}

base::Nanoseconds SimulateProgram(std::span<const LayerTime> layers,
                                  const SocProfile& soc,
                                  const RunConditions& conditions) {
  const double clock = conditions.clock;
  const uint32_t busy = std::max({1U, conditions.busy, conditions.cores});
  // GB/s is bytes a nanosecond.
  const double share = std::min(soc.core_gbs, soc.ddr_gbs / busy);
  double total = 0;
  for (const LayerTime& layer : layers) {
    const double cores = layer.splits ? std::max(1U, conditions.cores) : 1.0;
    const double rate = cores * std::min(layer.bytes_rate * clock, share);
    const double compute = layer.compute / (cores * clock);
    total += std::max(compute, layer.bytes / rate) + layer.start_up / clock;
  }
  // A file can ask for more than a clock can count.
  return static_cast<base::Nanoseconds>(std::min(total, 4e18));
}

}  // namespace rknnd::soft
