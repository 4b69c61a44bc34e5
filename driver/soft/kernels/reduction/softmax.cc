// Softmax, LogSoftmax and Hardmax. Before opset 13 the input is taken as a
// matrix, cut before `axis`; from then on the one axis counts.

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/elementwise/activation.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

// `rows` x `size` x `inner`: what is normalised lies `inner` apart.
struct Rows {
  int64_t rows = 0, size = 0, inner = 1;
};

absl::StatusOr<Rows> Parse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_RETURN_IF_ERROR(CheckFloat(node, 0));
  const Shape& shape = node.shape(0);
  const bool flattens = node.node().opset < 13;
  if (shape.empty()) return Rows{1, 1, 1};
  RKNND_ASSIGN_OR_RETURN(
      const size_t axis,
      CheckAxis(node, node.Int("axis", flattens && shape.size() > 1 ? 1 : -1),
                shape.size()));
  const size_t end = flattens ? shape.size() : axis + 1;
  return Rows{ProductOf(shape, 0, axis), ProductOf(shape, axis, end),
              ProductOf(shape, end, shape.size())};
}

Inference InferSoftmax(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(Parse(node).status());
  return InferOne(node, node.type(0), node.shape(0));
}

// Reductions in lanes, which the compiler turns into vectors: it may not
// reorder a single chain of floats by itself.
constexpr int64_t kLanes = 16;

float LargestOf(const float* in, int64_t n) {
  std::array<float, kLanes> lanes;
  lanes.fill(in[0]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      lanes[k] = lanes[k] < in[i + int64_t(k)] ? in[i + int64_t(k)] : lanes[k];
    }
  }
  for (; i < n; ++i) lanes[0] = std::max(lanes[0], in[i]);
  return *std::max_element(lanes.begin(), lanes.end());
}

double SumOf(const float* in, int64_t n) {
  std::array<double, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) lanes[k] += in[i + int64_t(k)];
  }
  for (; i < n; ++i) lanes[0] += in[i];
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

// `rows` rows whose elements lie side by side: those of a few elements are
// many, and exponentials are quick in long runs only.
int64_t RowsAtOnce(int64_t n) {
  constexpr int64_t kRun = 1024;
  return std::max<int64_t>(kRun / n, 1);
}

void Contiguous(const float* in, float* out, int64_t rows, int64_t n,
                FloatLoop exp, bool logarithm) {
  const int64_t at_once = RowsAtOnce(n);
  for (int64_t r = 0; r < rows; r += at_once) {
    const int64_t count = std::min(at_once, rows - r);
    float* const first = out + r * n;
    for (int64_t i = 0; i < count; ++i) {
      const float* const from = in + (r + i) * n;
      float* const to = first + i * n;
      const float most = LargestOf(from, n);
      for (int64_t k = 0; k < n; ++k) to[k] = from[k] - most;
    }
    if (!logarithm) exp(first, first, count * n, 0.0F, 0.0F);
    for (int64_t i = 0; i < count; ++i) {
      float* const row = first + i * n;
      if (logarithm) {
        double sum = 0.0;
        for (int64_t k = 0; k < n; ++k) sum += std::exp(row[k]);
        const auto log = static_cast<float>(std::log(sum));
        for (int64_t k = 0; k < n; ++k) row[k] -= log;
      } else {
        const auto scale = static_cast<float>(1.0 / SumOf(row, n));
        for (int64_t k = 0; k < n; ++k) row[k] *= scale;
      }
    }
  }
}

// Rows whose elements lie `step` apart, `step` of them side by side.
void Strided(const float* in, float* out, Range columns, int64_t n,
             int64_t step, FloatLoop exp, bool logarithm) {
  constexpr int64_t kRows = 64;
  std::array<float, kRows> most, power;
  std::array<double, kRows> sum;
  for (int64_t first = columns.begin; first < columns.end; first += kRows) {
    const int64_t count = std::min(kRows, columns.end - first);
    const float* const from = in + first;
    float* const to = out + first;
    std::copy_n(from, count, most.begin());
    for (int64_t k = 1; k < n; ++k) {
      for (int64_t i = 0; i < count; ++i) {
        float& m = most[static_cast<size_t>(i)];
        m = m < from[k * step + i] ? from[k * step + i] : m;
      }
    }
    sum.fill(0.0);
    for (int64_t k = 0; k < n; ++k) {
      float* const row = to + k * step;
      for (int64_t i = 0; i < count; ++i) {
        row[i] = from[k * step + i] - most[static_cast<size_t>(i)];
      }
      exp(row, power.data(), count, 0.0F, 0.0F);
      for (int64_t i = 0; i < count; ++i) {
        sum[static_cast<size_t>(i)] += power[static_cast<size_t>(i)];
      }
      if (!logarithm) std::copy_n(power.begin(), count, row);
    }
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      power[at] =
          static_cast<float>(logarithm ? std::log(sum[at]) : 1.0 / sum[at]);
    }
    for (int64_t k = 0; k < n; ++k) {
      float* const row = to + k * step;
      for (int64_t i = 0; i < count; ++i) {
        const float p = power[static_cast<size_t>(i)];
        row[i] = logarithm ? row[i] - p : row[i] * p;
      }
    }
  }
}

template <bool kLogarithm>
MadeKernel MakeSoftmax(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Rows rows, Parse(request.node));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  const FloatLoop exp = ExpLoop();
  return MakeSharedKernel(
      WorkOf(request, kFunction), rows.rows * rows.inner,
      [rows, exp](Inputs inputs, Outputs outputs, Part part) {
        const float* in = As<float>(inputs[0]);
        float* out = As<float>(outputs[0]);
        if (rows.inner == 1) {
          const Range share = ShareOf(part, rows.rows, RowsAtOnce(rows.size));
          const int64_t at = share.begin * rows.size;
          Contiguous(in + at, out + at, share.size(), rows.size, exp,
                     kLogarithm);
          return;
        }
        // Slabs where there are several, else columns of the one.
        const int64_t slab = rows.size * rows.inner;
        const bool one = rows.rows == 1;
        const Range slabs = one ? Range{0, 1} : ShareOf(part, rows.rows);
        const Range columns = one ? ShareOf(part, rows.inner, kElementUnit)
                                  : Range{0, rows.inner};
        for (int64_t r = slabs.begin; r < slabs.end; ++r) {
          Strided(in + r * slab, out + r * slab, columns, rows.size, rows.inner,
                  exp, kLogarithm);
        }
      });
}

// 1 at the first of the largest, 0 elsewhere.
MadeKernel MakeHardmax(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Rows rows, Parse(request.node));
  if (request.outputs[0].elements() == 0) {
    return MakeKernel([](Inputs, Outputs, std::byte*) {});
  }
  return MakeKernel([rows](Inputs inputs, Outputs outputs, std::byte*) {
    for (int64_t r = 0; r < rows.rows * rows.inner; ++r) {
      StopPoint();
      const int64_t at =
          r / rows.inner * rows.size * rows.inner + r % rows.inner;
      const float* in = As<float>(inputs[0]) + at;
      float* out = As<float>(outputs[0]) + at;
      int64_t best = 0;
      for (int64_t i = 1; i < rows.size; ++i) {
        if (in[i * rows.inner] > in[best * rows.inner]) best = i;
      }
      for (int64_t i = 0; i < rows.size; ++i) {
        out[i * rows.inner] = i == best ? 1.0F : 0.0F;
      }
    }
  });
}

}  // namespace

void RegisterSoftmax(OperatorTable& table) {
  table.Add(
      {.type = "Softmax", .infer = InferSoftmax, .make = MakeSoftmax<false>});
  table.Add(
      {.type = "LogSoftmax", .infer = InferSoftmax, .make = MakeSoftmax<true>});
  table.Add({.type = "Hardmax", .infer = InferSoftmax, .make = MakeHardmax});
}

}  // namespace rknnd::soft
