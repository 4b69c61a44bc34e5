// The loop behind all operators of two inputs that broadcast as numpy does.
//
// Thread: made by the loading thread, run by any worker.

#ifndef DRIVER_SOFT_KERNELS_ELEMENTWISE_BROADCAST_H_
#define DRIVER_SOFT_KERNELS_ELEMENTWISE_BROADCAST_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/kernels/stop.h"

namespace rknnd::soft {

// The shapes of two inputs as they broadcast: before opset 7 the second one's
// axes lay where `axis` said, from then on at the end.
struct OperandShapes {
  Shape a, b, output;
};
absl::StatusOr<OperandShapes> BroadcastOperands(const NodeView& node);

// Blocked when each input is blocked alike or is a single number.
bool MayBlockBroadcast(const NodeView& node, size_t i, int block);

// The loop over the request's two inputs and its output, blocked or dense.
absl::StatusOr<StridedLoop<3>> LoopOver(const KernelRequest& request);

// Two inputs in blocks of channels of which one has a single pixel: the gate of
// a squeeze-and-excite layer, or a bias. Each block of it meets all pixels of
// the other's.
struct ChannelGate {
  size_t input = 1;    // which of the two it is
  int64_t block = 16;  // channels: 8 or 16
  int64_t blocks = 1;  // of it, those of all its images
  int64_t pixels = 1;  // of the other input
};
// Empty: they do not broadcast so.
std::optional<ChannelGate> FindChannelGate(const KernelRequest& request);

// to = function(x, the gate's number) for some elements of x, which begin at a
// multiple of the block.
template <int64_t kBlock, class F>
void RunGate(const ChannelGate& gate, Range elements, const float* x,
             const float* gates, float* to, F function) {
  const int64_t in_block = gate.pixels * kBlock;
  for (int64_t i = elements.begin; i < elements.end;) {
    StopPoint();
    const int64_t block = i / in_block;
    std::array<float, kBlock> numbers;
    std::memcpy(numbers.data(), gates + block % gate.blocks * kBlock,
                sizeof numbers);
    const int64_t end = std::min((block + 1) * in_block, elements.end);
    for (; i < end; i += kBlock) {
      // `to` may be `x`, which compilers must not have to think about.
      std::array<float, kBlock> results;
      for (size_t c = 0; c < kBlock; ++c) {
        results[c] = function(x[static_cast<size_t>(i) + c], numbers[c]);
      }
      std::memcpy(to + i, results.data(), sizeof results);
    }
  }
}

// One run of n elements, each operand by its step. What networks are made of is
// spelt out so that compilers turn it into vectors.
template <class T, class R, class F>
void RunBinaryRun(const std::array<int64_t, 3>& step, const T* x, const T* y,
                  R* to, int64_t n, F function) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int32_t>) {
    if (step[0] == 1 && step[1] == 1 && step[2] == 1) {
      constexpr int64_t kBlock = 16;  // of channels: a run of its own, often
      if (n == kBlock) {
        std::array<R, kBlock> results;
        for (size_t i = 0; i < kBlock; ++i) results[i] = function(x[i], y[i]);
        std::memcpy(to, results.data(), sizeof results);
        return;
      }
      for (int64_t i = 0; i < n; ++i) to[i] = function(x[i], y[i]);
      return;
    }
    // The one number might be overwritten by the output, to a compiler.
    if (step[0] == 1 && step[1] == 0 && step[2] == 1) {
      const T one = *y;
      for (int64_t i = 0; i < n; ++i) to[i] = function(x[i], one);
      return;
    }
    if (step[0] == 0 && step[1] == 1 && step[2] == 1) {
      const T one = *x;
      for (int64_t i = 0; i < n; ++i) to[i] = function(one, y[i]);
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    to[i * step[2]] = function(x[i * step[0]], y[i * step[1]]);
  }
}

// out = function(a, b) over a loop of LoopOver, or some of its elements.
template <class T, class R, class F>
void RunBinary(const StridedLoop<3>& loop, Range elements, const T* a,
               const T* b, R* out, F function) {
  const auto& step = loop.inner_strides();
  loop.Run(elements, [&](const auto& at, int64_t n) {
    RunBinaryRun(step, a + at[0], b + at[1], out + at[2], n, function);
  });
}

template <class T, class R, class F>
void RunBinary(const StridedLoop<3>& loop, const T* a, const T* b, R* out,
               F function) {
  RunBinary(loop, Range{0, loop.elements()}, a, b, out, function);
}

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_ELEMENTWISE_BROADCAST_H_
