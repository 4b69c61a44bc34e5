// ReduceSum, ReduceMean, ReduceMax and their kin; ArgMax and ArgMin.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

struct Params {
  std::vector<bool> reduced;  // per axis of the input
  Shape output;
};

Params Along(const Shape& shape, const std::vector<size_t>& axes, bool keep) {
  Params params;
  params.reduced.assign(shape.size(), false);
  for (const size_t axis : axes) params.reduced[axis] = true;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!params.reduced[d]) {
      params.output.push_back(shape[d]);
    } else if (keep) {
      params.output.push_back(1);
    }
  }
  return params;
}

// Axes: an attribute, or the second input of newer versions; none means all,
// or nothing at all where the node says so.
absl::StatusOr<Params> Parse(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 2}));
  if (node.type(0) == DataType::kBool) return CheckFloat(node, 0);
  const Shape& shape = node.shape(0);
  std::vector<int64_t> given = node.Ints("axes");
  if (node.has_input(1)) {
    RKNND_ASSIGN_OR_RETURN(given, node.ConstantInts(1));
  }
  RKNND_ASSIGN_OR_RETURN(std::vector<size_t> axes,
                         CheckAxes(node, given, shape.size()));
  if (axes.empty() && node.Int("noop_with_empty_axes", 0) == 0) {
    for (size_t d = 0; d < shape.size(); ++d) axes.push_back(d);
  }
  return Along(shape, axes, node.Int("keepdims", 1) != 0);
}

Inference InferReduce(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(node));
  return InferOne(node, node.type(0), params.output);
}

// Sums are kept wider than the elements: double for float, 64 bits that wrap
// for integers.
template <class T>
using Wide = std::conditional_t<
    std::is_floating_point_v<T>, double,
    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class W>
W WrapAdd(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) {
    return a + b;
  } else {
    return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
}
template <class W>
W WrapMul(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) {
    return a * b;
  } else {
    return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
}
template <class W>
W Magnitude(W a) {
  if constexpr (std::is_floating_point_v<W>) {
    return std::fabs(a);
  } else {
    return a < W{} ? WrapMul<W>(a, static_cast<W>(-1)) : a;
  }
}

// How one reduction starts, takes an element, and ends after `n` of them.
struct Sum {
  template <class W>
  static W Start() {
    return W{};
  }
  template <class W>
  static W Take(W sum, W x) {
    return WrapAdd(sum, x);
  }
  template <class W>
  static W End(W sum, int64_t) {
    return sum;
  }
};
struct Mean : Sum {
  template <class W>
  static W End(W sum, int64_t n) {
    if (n == 0) return std::is_floating_point_v<W> ? static_cast<W>(NAN) : W{};
    return sum / static_cast<W>(n);
  }
};
struct Product : Sum {
  template <class W>
  static W Start() {
    return W{1};
  }
  template <class W>
  static W Take(W product, W x) {
    return WrapMul(product, x);
  }
};
struct SumSquare : Sum {
  template <class W>
  static W Take(W sum, W x) {
    return WrapAdd(sum, WrapMul(x, x));
  }
};
struct L1 : Sum {
  template <class W>
  static W Take(W sum, W x) {
    return WrapAdd(sum, Magnitude(x));
  }
};
struct L2 : SumSquare {
  template <class W>
  static W End(W sum, int64_t) {
    return static_cast<W>(std::sqrt(static_cast<double>(sum)));
  }
};
struct LogSum : Sum {
  template <class W>
  static W End(W sum, int64_t) {
    return static_cast<W>(std::log(static_cast<double>(sum)));
  }
};
struct Max : Sum {
  template <class W>
  static W Start() {
    if constexpr (std::is_floating_point_v<W>) {
      return -std::numeric_limits<W>::infinity();
    } else {
      return std::numeric_limits<W>::lowest();
    }
  }
  template <class W>
  static W Take(W most, W x) {
    return x > most ? x : most;
  }
};
struct Min : Sum {
  template <class W>
  static W Start() {
    if constexpr (std::is_floating_point_v<W>) {
      return std::numeric_limits<W>::infinity();
    } else {
      return std::numeric_limits<W>::max();
    }
  }
  template <class W>
  static W Take(W least, W x) {
    return x < least ? x : least;
  }
};

// Loops over what stays (offsets in input and output) and over what goes.
struct Loops {
  StridedLoop<2> kept;
  StridedLoop<1> gone;
  int64_t count = 1;  // elements that become one
};

Loops LoopsOver(const Shape& shape, const Params& params) {
  const Shape strides = DenseStrides(shape);
  Shape kept, kept_from, gone, gone_from;
  Loops loops;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (params.reduced[d]) {
      gone.push_back(shape[d]);
      gone_from.push_back(strides[d]);
      loops.count *= shape[d];
    } else {
      kept.push_back(shape[d]);
      kept_from.push_back(strides[d]);
    }
  }
  loops.kept = StridedLoop<2>(kept, {kept_from, DenseStrides(kept)});
  loops.gone = StridedLoop<1>(gone, {gone_from});
  return loops;
}

// A chain of sums, which no compiler may make vectors of.
Work WorkOf(const Loops& loops) {
  constexpr int64_t kChain = 32;
  return {.operations = loops.kept.elements() * loops.count * kChain};
}

// One reduction of one type, of one part of what stays. A function, and one
// kernel for all of them: compilers take seconds for a kernel of each.
using Reduction = void (*)(const Loops& loops, Inputs inputs, Outputs outputs,
                           Part part);

template <class F, class T>
void Reduce(const Loops& loops, Inputs inputs, Outputs outputs, Part part) {
  using W = Wide<T>;
  const T* in = As<T>(inputs[0]);
  T* out = As<T>(outputs[0]);
  const auto& step = loops.kept.inner_strides();
  const int64_t gone_step = loops.gone.inner_strides()[0];
  const Range share = ShareOf(part, loops.kept.elements());
  loops.kept.Run(share, [&](const auto& at, int64_t n) {
    int64_t i = 0;
    // Columns side by side.
    constexpr int64_t kColumns = 16;
    for (; step[0] == 1 && i + kColumns <= n; i += kColumns) {
      std::array<W, kColumns> states;
      states.fill(F::template Start<W>());
      loops.gone.Run([&](const auto& offset, int64_t m) {
        const T* run = in + at[0] + i + offset[0];
        for (int64_t k = 0; k < m; ++k, run += gone_step) {
          for (size_t c = 0; c < kColumns; ++c) {
            states[c] = F::Take(states[c], static_cast<W>(run[c]));
          }
        }
      });
      T* to = out + at[1] + i * step[1];
      for (size_t c = 0; c < kColumns; ++c, to += step[1]) {
        *to = static_cast<T>(F::End(states[c], loops.count));
      }
    }
    for (; i < n; ++i) {
      const T* from = in + at[0] + i * step[0];
      W state = F::template Start<W>();
      loops.gone.Run([&](const auto& offset, int64_t m) {
        const T* run = from + offset[0];
        for (int64_t k = 0; k < m; ++k) {
          state = F::Take(state, static_cast<W>(run[k * gone_step]));
        }
      });
      out[at[1] + i * step[1]] = static_cast<T>(F::End(state, loops.count));
    }
  });
}

MadeKernel MakeReduction(const KernelRequest& request, Reduction reduction) {
  RKNND_ASSIGN_OR_RETURN(const Params params, Parse(request.node));
  Loops loops = LoopsOver(request.inputs[0].shape, params);
  const Work work = WorkOf(loops);
  const int64_t pieces = loops.kept.elements();
  return MakeSharedKernel(work, pieces,
                          [loops = std::move(loops), reduction](
                              Inputs inputs, Outputs outputs, Part part) {
                            reduction(loops, inputs, outputs, part);
                          });
}

template <class F>
MadeKernel MakeReduce(const KernelRequest& request) {
  return MakeReduction(
      request, VisitType(request.inputs[0].type,
                         []<class T>(std::type_identity<T>) -> Reduction {
                           return Reduce<F, T>;
                         }));
}

Inference InferLogSumExp(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 2}));
  RKNND_RETURN_IF_ERROR(
      CheckType(node, 0, {DataType::kFloat32, DataType::kFloat64}));
  return InferReduce(node);
}

// The largest element is taken out first, so that no exponential overflows.
template <class T>
void LogSumExp(const Loops& loops, Inputs inputs, Outputs outputs, Part part) {
  const T* in = As<T>(inputs[0]);
  T* out = As<T>(outputs[0]);
  const auto& step = loops.kept.inner_strides();
  const int64_t gone_step = loops.gone.inner_strides()[0];
  const Range share = ShareOf(part, loops.kept.elements());
  loops.kept.Run(share, [&](const auto& at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const T* from = in + at[0] + i * step[0];
      T most = -std::numeric_limits<T>::infinity();
      loops.gone.Run([&](const auto& offset, int64_t m) {
        for (int64_t k = 0; k < m; ++k) {
          most = std::max(most, from[offset[0] + k * gone_step]);
        }
      });
      if (!std::isfinite(most)) most = 0;
      double sum = 0.0;
      loops.gone.Run([&](const auto& offset, int64_t m) {
        for (int64_t k = 0; k < m; ++k) {
          sum += std::exp(double{from[offset[0] + k * gone_step]} - most);
        }
      });
      out[at[1] + i * step[1]] = static_cast<T>(most + std::log(sum));
    }
  });
}

MadeKernel MakeLogSumExp(const KernelRequest& request) {
  return MakeReduction(request, request.inputs[0].type == DataType::kFloat64
                                    ? LogSumExp<double>
                                    : LogSumExp<float>);
}

absl::StatusOr<size_t> ArgAxis(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_ASSIGN_OR_RETURN(const size_t axis, CheckAxis(node, node.Int("axis", 0),
                                                      node.shape(0).size()));
  if (node.shape(0)[axis] == 0) return node.Error("looks for one of nothing");
  return axis;
}

Inference InferArg(const NodeView& node) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, ArgAxis(node));
  return InferOne(
      node, DataType::kInt64,
      Along(node.shape(0), {axis}, node.Int("keepdims", 1) != 0).output);
}

struct ArgLoops {
  Loops loops;
  int64_t size, stride;  // of what is looked through
  bool last;
};

template <bool kMaximum, class T>
void FindArg(const ArgLoops& arg, Inputs inputs, Outputs outputs, Part part) {
  const T* in = As<T>(inputs[0]);
  auto* out = As<int64_t>(outputs[0]);
  const auto& step = arg.loops.kept.inner_strides();
  const Range share = ShareOf(part, arg.loops.kept.elements());
  arg.loops.kept.Run(share, [&](const auto& at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const T* from = in + at[0] + i * step[0];
      int64_t best = 0;
      for (int64_t k = 1; k < arg.size; ++k) {
        const T x = from[k * arg.stride], y = from[best * arg.stride];
        if ((kMaximum ? x > y : x < y) || (arg.last && x == y)) best = k;
      }
      out[at[1] + i * step[1]] = best;
    }
  });
}

template <bool kMaximum>
MadeKernel MakeArg(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, ArgAxis(request.node));
  const Shape& shape = request.inputs[0].shape;
  const ArgLoops arg = {LoopsOver(shape, Along(shape, {axis}, false)),
                        shape[axis], DenseStrides(shape)[axis],
                        request.node.Int("select_last_index", 0) != 0};
  using Find = void (*)(const ArgLoops&, Inputs, Outputs, Part);
  const Find find = VisitType(request.inputs[0].type,
                              []<class T>(std::type_identity<T>) -> Find {
                                return FindArg<kMaximum, T>;
                              });
  return MakeSharedKernel(
      WorkOf(arg.loops), arg.loops.kept.elements(),
      [arg, find](Inputs inputs, Outputs outputs, Part part) {
        find(arg, inputs, outputs, part);
      });
}

struct Row {
  const char* type;
  absl::StatusOr<std::unique_ptr<Kernel>> (*make)(const KernelRequest&);
};

}  // namespace

void RegisterReduce(OperatorTable& table) {
  const Row rows[] = {
      {"ReduceSum", MakeReduce<Sum>},
      {"ReduceMean", MakeReduce<Mean>},
      {"ReduceProd", MakeReduce<Product>},
      {"ReduceSumSquare", MakeReduce<SumSquare>},
      {"ReduceL1", MakeReduce<L1>},
      {"ReduceL2", MakeReduce<L2>},
      {"ReduceLogSum", MakeReduce<LogSum>},
      {"ReduceMax", MakeReduce<Max>},
      {"ReduceMin", MakeReduce<Min>},
  };
  for (const Row& row : rows) {
    table.Add({.type = row.type, .infer = InferReduce, .make = row.make});
  }
  table.Add({.type = "ReduceLogSumExp",
             .infer = InferLogSumExp,
             .make = MakeLogSumExp});
  table.Add({.type = "ArgMax", .infer = InferArg, .make = MakeArg<true>});
  table.Add({.type = "ArgMin", .infer = InferArg, .make = MakeArg<false>});
}

}  // namespace rknnd::soft
