// The loops of kernels.h as templates: each kernels_<level>.cc is compiled for
// its CPU and includes this once. `L` says how that CPU multiplies:
//
//   kForm, kBlock, kVectors   a block's kernels fill so many vectors of sums
//   kPixels                   pixels at a time, as many as registers hold
//   Sum, Weights, Values      Zero(), LoadWeights(at, vector), Broadcast(at),
//                             Dot(sum, weights, values), Store(sum, to)
//
// L lives in an unnamed namespace, so that no instance is shared with a file
// that was compiled for another CPU. For the same reason nothing here that is
// compiled may be outside of a template over L; likewise in vectors_*.h, which
// have what levels of one width share.

#ifndef DRIVER_RKNPU_EMULATOR_KERNELS_LOOPS_H_
#define DRIVER_RKNPU_EMULATOR_KERNELS_LOOPS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "driver/rknpu/emulator/kernels/kernels.h"

namespace rknnd::rknpu::fast {

template <class L>
struct Loops {
  static constexpr size_t kAtom = AtomBytes(L::kForm);
  static constexpr size_t kCells = kAtom / 4;
  static constexpr size_t kCellWeights = L::kBlock * 4;

  template <size_t P>
  static void Pixels(const TileJob& job, size_t first) {
    typename L::Sum sums[P][L::kVectors];
    const std::byte* at[P];
    for (size_t p = 0; p < P; ++p) {
      at[p] = job.pixels[first + p];
      for (size_t v = 0; v < L::kVectors; ++v) sums[p][v] = L::Zero();
    }
    const std::byte* weights = job.weights;
    for (size_t r = 0; r < job.runs; ++r) {
      const ptrdiff_t offset = job.offsets[r];
      for (size_t cell = 0; cell < kCells; ++cell) {
        typename L::Weights w[L::kVectors];
#pragma GCC unroll 4
        for (size_t v = 0; v < L::kVectors; ++v) {
          w[v] = L::LoadWeights(weights, v);
        }
        weights += kCellWeights;
#pragma GCC unroll 16
        for (size_t p = 0; p < P; ++p) {
          const typename L::Values values =
              L::Broadcast(at[p] + offset + cell * 4);
#pragma GCC unroll 4
          for (size_t v = 0; v < L::kVectors; ++v) {
            sums[p][v] = L::Dot(sums[p][v], w[v], values);
          }
        }
      }
    }
    constexpr size_t kEach = L::kBlock / L::kVectors;
    for (size_t p = 0; p < P; ++p) {
      for (size_t v = 0; v < L::kVectors; ++v) {
        const size_t k = v * kEach;
        L::Store(sums[p][v], job.sums + k / kLanes * job.surface_step +
                                 (first + p) * kLanes + k % kLanes);
      }
    }
  }

  static void Tile(const TileJob& job) {
    size_t p = 0;
    for (; p + L::kPixels <= job.count; p += L::kPixels) {
      Pixels<L::kPixels>(job, p);
    }
    if constexpr (L::kPixels > 4) {
      for (; p + 4 <= job.count; p += 4) Pixels<4>(job, p);
    }
    for (; p < job.count; ++p) Pixels<1>(job, p);
  }

  static void Depthwise(const DepthwiseJob& job) {
    for (size_t p = 0; p < job.count; ++p) {
      int32_t sums[kLanes] = {};
      for (size_t t = 0; t < job.taps; ++t) {
        int8_t values[kLanes];
        std::memcpy(values, job.pixels[p] + job.offsets[t], kLanes);
        const int32_t* const weights = job.weights + t * kLanes;
        for (size_t i = 0; i < kLanes; ++i) {
          sums[i] += int32_t{values[i]} * weights[i];
        }
      }
      std::memcpy(job.sums + p * kLanes, sums, sizeof(sums));
    }
  }

  // Of one pixel.
  static void Front(const StageJob& job, size_t p, double* v) {
    uint32_t sums[kLanes];
    if (job.sums != nullptr) {
      std::memcpy(sums, job.sums + p * kLanes, sizeof(sums));
    } else {
      for (size_t i = 0; i < kLanes; ++i) {
        sums[i] = static_cast<uint32_t>(
            static_cast<int32_t>(job.values[p * kLanes + i]));
      }
    }
    const uint32_t window = job.window_sums == nullptr
                                ? 0
                                : static_cast<uint32_t>(job.window_sums[p]);
    for (size_t i = 0; i < kLanes; ++i) {
      double x =
          static_cast<int32_t>(sums[i] + job.ow[i] * window + job.bias[i]);
      x = __builtin_floor(x * job.bs_factor[i] + job.bs_half);
      x = x < job.bs.low ? job.bs.low : x;
      x = x > job.bs.high ? job.bs.high : x;
      x = __builtin_floor(x * job.bn_factor[i] + job.bn_half) +
          job.bn_addend[i];
      x = x < job.bn.low ? job.bn.low : x;
      v[i] = x > job.bn.high ? job.bn.high : x;
    }
  }

  static void Back(const double* v, size_t count, const ByteConversion& convert,
                   int8_t* out) {
    const ByteConversion by = convert;
    for (size_t i = 0; i < count; ++i) {
      double x =
          __builtin_floor(v[i] * by.scale.factor + by.scale.half) + by.offset;
      x = x < by.bounds.low ? by.bounds.low : x;
      x = x > by.bounds.high ? by.bounds.high : x;
      out[i] = static_cast<int8_t>(static_cast<int32_t>(x));
    }
  }

  static void Beyond(const double* values, size_t count, const TableEnds& ends,
                     const ByteConversion& convert, int8_t* out) {
    const TableEnds at = ends;
    constexpr size_t kTogether = 16 * kLanes;
    for (size_t first = 0; first < count; first += kTogether) {
      const size_t left = count - first;
      const size_t some = left < kTogether ? left : kTogether;
      const double* const v = values + first;
      double y[kTogether];
      int8_t bytes[kTogether];
      for (size_t i = 0; i < some; ++i) {
        const double low =
            at.below_edge + __builtin_floor((v[i] + at.end) * at.below_slope);
        const double high =
            at.above_edge + __builtin_floor((v[i] - at.end) * at.above_slope);
        y[i] = v[i] < 0.0 ? low : high;
      }
      Back(y, some, convert, bytes);
      for (size_t i = 0; i < some; ++i) {
        const bool inside = v[i] >= -at.end && v[i] <= at.end;
        out[first + i] = inside ? out[first + i] : bytes[i];
      }
    }
  }

  template <StageJob::Operation O>
  static void Combine(const StageJob& job, const int8_t* operands, size_t count,
                      double* v) {
    const double offset = job.operand_offset, low = job.ew.low;
    const Scale scale = job.operand;
    for (size_t i = 0; i < count; ++i) {
      const double e =
          __builtin_floor((operands[i] + offset) * scale.factor + scale.half);
      double x = v[i];
      if constexpr (O == StageJob::Operation::kAdd) x = x + e;
      if constexpr (O == StageJob::Operation::kMul) x = x * e;
      if constexpr (O == StageJob::Operation::kMax) x = x > e ? x : e;
      if constexpr (O == StageJob::Operation::kMin) x = x < e ? x : e;
      v[i] = x < low ? low : x;
    }
  }

  template <StageJob::Operation O>
  static void AllStages(const StageJob& job) {
    // Pixels at a time: loops over so many values become vectors of any width.
    constexpr size_t kTogether = 16;
    double v[kTogether * kLanes];
    for (size_t first = 0; first < job.count; first += kTogether) {
      const size_t left = job.count - first;
      const size_t count = left < kTogether ? left : kTogether;
      for (size_t p = 0; p < count; ++p) Front(job, first + p, v + p * kLanes);
      if constexpr (O != StageJob::Operation::kNone) {
        Combine<O>(job, job.operands + first * kLanes, count * kLanes, v);
      }
      Back(v, count * kLanes, job.convert, job.out + first * kLanes);
    }
  }

  static void Stages(const StageJob& job) {
    using Operation = StageJob::Operation;
    switch (job.operation) {
      case Operation::kNone:
        return AllStages<Operation::kNone>(job);
      case Operation::kAdd:
        return AllStages<Operation::kAdd>(job);
      case Operation::kMul:
        return AllStages<Operation::kMul>(job);
      case Operation::kMax:
        return AllStages<Operation::kMax>(job);
      case Operation::kMin:
        return AllStages<Operation::kMin>(job);
    }
  }

  static bool FrontOnly(const StageJob& job, const TableEnds& ends,
                        double* values, int32_t* places) {
    const double low = -ends.end, high = ends.end;
    double excess[kLanes] = {};
    for (size_t p = 0; p < job.count; ++p) {
      double v[kLanes];
      Front(job, p, v);
      for (size_t i = 0; i < kLanes; ++i) {
        double x = v[i] < low ? low : v[i];
        x = x > high ? high : x;
        excess[i] += __builtin_fabs(v[i] - x);
        places[p * kLanes + i] = static_cast<int32_t>(x + high);
        values[p * kLanes + i] = v[i];
      }
    }
    double all = 0.0;
    for (size_t i = 0; i < kLanes; ++i) all += excess[i];
    return all != 0.0;
  }

  static void ChannelSums(const std::byte* atoms, size_t count, size_t planes,
                          size_t plane, int16_t* partial, int32_t* sums) {
    // So many int8 add up in 16 bits.
    constexpr size_t kMost = 255;
    for (size_t first = 0; first < planes; first += kMost) {
      const size_t last = first + kMost < planes ? first + kMost : planes;
      std::memset(partial, 0, count * kLanes * sizeof(int16_t));
      for (size_t s = first; s < last; ++s) {
        const std::byte* const from = atoms + s * plane;
        if constexpr (L::kForm == Form::kWide) {
          const auto* values = reinterpret_cast<const int16_t*>(from);
          for (size_t i = 0; i < count * kLanes; ++i) {
            partial[i] = static_cast<int16_t>(partial[i] + values[i]);
          }
        } else {
          const auto* values = reinterpret_cast<const int8_t*>(from);
          for (size_t i = 0; i < count * kLanes; ++i) {
            partial[i] = static_cast<int16_t>(partial[i] + values[i]);
          }
        }
      }
      for (size_t p = 0; p < count; ++p) {
        int32_t sum = 0;
        for (size_t i = 0; i < kLanes; ++i) sum += partial[p * kLanes + i];
        sums[p] += sum;
      }
    }
  }

  static void Load(const std::byte* from, size_t count, std::byte* to) {
    if constexpr (L::kForm == Form::kWide) {
      auto* values = reinterpret_cast<int16_t*>(to);
      const auto* bytes = reinterpret_cast<const int8_t*>(from);
      for (size_t i = 0; i < count; ++i) values[i] = bytes[i];
    } else {
      std::memcpy(to, from, count);
    }
  }

  static constexpr Kernels All(const char* name) {
    return {name,       L::kForm, L::kBlock, &Tile,        &Depthwise, &Stages,
            &FrontOnly, &Beyond,  &Back,     &ChannelSums, &Load};
  }
};

}  // namespace rknnd::rknpu::fast

#endif  // DRIVER_RKNPU_EMULATOR_KERNELS_LOOPS_H_
