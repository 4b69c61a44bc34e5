// Convolutions of the fast engine (fast_engine.h): some pixels at a time, for
// each 32 kernels sums, then the output stages while they are in the cache.

#include "driver/rknpu/emulator/fast/fast_engine.h"

#include <algorithm>
#include <cstring>

#include "driver/rknpu/emulator/fast/target.h"

namespace rknnd::rknpu::fast {
namespace {

// Pixels at a time, a multiple of what the loops take.
constexpr size_t kChunk = 96;
constexpr uint32_t kKernelsAtOnce = 32;

// What 255 instead of 128 makes of the sum must fit 32 bits too.
SumBounds BoundsOf(const ConvSpec& conv) {
  const uint64_t products =
      uint64_t{conv.taps()} * (conv.depthwise ? 1 : conv.feature.channels);
  return {products * 128 * 128, products * 128};
}

}  // namespace

FastEngine::FastEngine() : FastEngine(KernelsFor(soft::CurrentCpuLevel())) {}

bool FastEngine::RunConv(const ConvSpec& conv, const OutputSpec& output,
                         const Tables& tables, Access& access) {
  if (conv.precision != Precision::kInt8) return false;
  const uint32_t surfaces = conv.channels / kAtom;
  Target target;
  if (!target.Find(output, surfaces, conv.height, conv.width, access)) {
    return false;
  }
  const Form form = conv.depthwise ? Form::kBytes : kernels_.form;
  const int32_t ow_offset = form == Form::kUnsigned ? -128 : 0;
  if (!plan_.Make(output, conv.channels, BoundsOf(conv), ow_offset, tables,
                  table_bytes_, kernels_, access)) {
    return false;
  }
  const bool packed = conv.depthwise
                          ? ReadDepthwiseWeights(conv, access, depthwise_)
                          : weights_.Pack(conv, kernels_, access);
  if (!packed || !band_.Fill(conv, form, kernels_, access)) {
    return !access.ok();
  }
  windows_.resize(kChunk);
  results_.resize(kChunk * kLanes);
  operands_.resize(kChunk * kLanes);
  sums_.resize(2 * kChunk * kLanes);
  if (conv.depthwise) {
    ConvolveDepthwise(conv, output, target, access);
    return true;
  }
  const int32_t* const window_sums =
      plan_.uses_window_sums() ? band_.WindowSums(conv, kernels_).data()
                               : nullptr;
  Convolve(conv, output, target, window_sums, access);
  return true;
}

void FastEngine::Convolve(const ConvSpec& conv, const OutputSpec& output,
                          const Target& target, const int32_t* window_sums,
                          Access& access) {
  offsets_.clear();
  for (uint32_t j = 0; j < conv.kernel_height; ++j) {
    for (uint32_t i = 0; i < conv.kernel_width; ++i) {
      for (uint32_t s = 0; s < conv.feature_surfaces(); ++s) {
        offsets_.push_back(band_.OffsetOf(j, i, s));
      }
    }
  }
  TileJob job;
  job.pixels = windows_.data();
  job.offsets = offsets_.data();
  job.runs = offsets_.size();
  job.surface_step = kChunk * kLanes;
  const auto block = static_cast<uint32_t>(kernels_.block);
  const size_t pixels = size_t{conv.width} * conv.height;
  for (size_t first = 0; first < pixels; first += kChunk) {
    job.count = std::min(kChunk, pixels - first);
    for (size_t i = 0; i < job.count; ++i) {
      const auto n = static_cast<uint32_t>(first + i);
      windows_[i] = band_.Window(n / conv.width, n % conv.width);
    }
    for (uint32_t o0 = 0; o0 < conv.channels; o0 += kKernelsAtOnce) {
      if (!access.GoesOn()) return;
      if (o0 + kKernelsAtOnce > conv.kernels) {
        FillIdle(window_sums == nullptr ? nullptr : window_sums + first,
                 job.count);
      }
      const uint32_t end = std::min(o0 + kKernelsAtOnce, conv.kernels);
      for (uint32_t o = o0; o < end; o += block) {
        job.weights = weights_.Block(o / block);
        job.sums = sums_.data() + (o - o0) / kLanes * job.surface_step +
                   (o - o0) % kLanes;
        kernels_.tile(job);
      }
      for (uint32_t o = o0; o < std::min(o0 + kKernelsAtOnce, conv.channels);
           o += kAtom) {
        Deliver(conv, output, target, o / kAtom, first, job.count,
                sums_.data() + (o - o0) / kLanes * job.surface_step,
                window_sums);
      }
    }
  }
}

// The sums of channels that no kernel is for: nothing, as the form has it.
void FastEngine::FillIdle(const int32_t* window_sums, size_t count) {
  const bool turned = kernels_.form == Form::kUnsigned;
  for (size_t s = 0; s < 2; ++s) {
    for (size_t p = 0; p < count; ++p) {
      const int32_t sum = turned ? 128 * window_sums[p] : 0;
      std::fill_n(sums_.data() + (s * kChunk + p) * kLanes, kLanes, sum);
    }
  }
}

void FastEngine::ConvolveDepthwise(const ConvSpec& conv,
                                   const OutputSpec& output,
                                   const Target& target, Access& access) {
  // What ow adds goes into the weights: each window is summed only once.
  for (size_t i = 0; i < depthwise_.size(); ++i) {
    depthwise_[i] +=
        plan_.OwOf(i / (conv.taps() * kLanes) * kLanes + i % kLanes);
  }
  plan_.ForgetOw();
  DepthwiseJob job;
  job.pixels = windows_.data();
  job.taps = conv.taps();
  job.sums = sums_.data();
  const size_t pixels = size_t{conv.width} * conv.height;
  for (uint32_t s = 0; s < conv.channels / kAtom; ++s) {
    const bool there = s < conv.feature_surfaces();
    offsets_.clear();
    for (uint32_t j = 0; there && j < conv.kernel_height; ++j) {
      for (uint32_t i = 0; i < conv.kernel_width; ++i) {
        offsets_.push_back(band_.OffsetOf(j, i, s));
      }
    }
    job.offsets = offsets_.data();
    job.weights = depthwise_.data() + size_t{s} * job.taps * kLanes;
    if (!there) std::fill(sums_.begin(), sums_.end(), 0);
    for (size_t first = 0; first < pixels; first += kChunk) {
      if (!access.GoesOn()) return;
      job.count = std::min(kChunk, pixels - first);
      for (size_t i = 0; i < job.count; ++i) {
        const auto n = static_cast<uint32_t>(first + i);
        windows_[i] = band_.Window(n / conv.width, n % conv.width);
      }
      if (there) kernels_.depthwise(job);
      Deliver(conv, output, target, s, first, job.count, sums_.data(), nullptr);
    }
  }
}

// Pixels `first` on of one surface, through the output stages into memory.
void FastEngine::Deliver(const ConvSpec& conv, const OutputSpec& output,
                         const Target& target, uint32_t surface, size_t first,
                         size_t count, const int32_t* sums,
                         const int32_t* window_sums) {
  const auto place = [&](size_t i, uint32_t& y, uint32_t& x) {
    y = static_cast<uint32_t>((first + i) / conv.width);
    x = static_cast<uint32_t>((first + i) % conv.width);
  };
  const bool together = !output.by_lines &&
                        output.writer.line_step == int64_t{kAtom} * conv.width;
  StageJob job;
  job.count = count;
  job.sums = sums;
  job.window_sums = window_sums == nullptr ? nullptr : window_sums + first;
  uint32_t y = 0, x = 0;
  if (output.ew.operand != Operand::kNone) {
    for (size_t i = 0; i < count; ++i) {
      place(i, y, x);
      std::memcpy(operands_.data() + i * kLanes,
                  target.OperandsOf(output.ew, surface, y, x), kLanes);
    }
    job.operands = operands_.data();
  }
  place(0, y, x);
  std::byte* const at = target.out + Target::OffsetOf(output, surface, y, x);
  job.out = together ? reinterpret_cast<int8_t*>(at) : results_.data();
  plan_.Run(surface, job);
  if (together) return;
  for (size_t i = 0; i < count; ++i) {
    place(i, y, x);
    std::memcpy(target.out + Target::OffsetOf(output, surface, y, x),
                results_.data() + i * kLanes, kLanes);
  }
}

}  // namespace rknnd::rknpu::fast
