// ScatterND, ScatterElements, and Scatter, as the latter was called once: a
// tensor with some elements replaced, or joined by a sum, product, least or
// largest. Updates are made in their order, and each core of a gang makes those
// of its own stretch of the output.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/index/indices.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

enum class Join : uint8_t { kReplace, kAdd, kMultiply, kLeast, kLargest };

absl::StatusOr<Join> JoinOf(const NodeView& node) {
  const std::string name = node.String("reduction", "none");
  const std::pair<const char*, Join> known[] = {{"none", Join::kReplace},
                                                {"add", Join::kAdd},
                                                {"mul", Join::kMultiply},
                                                {"min", Join::kLeast},
                                                {"max", Join::kLargest}};
  for (const auto& [text, join] : known) {
    if (name == text) {
      if (join != Join::kReplace && node.type(0) == DataType::kBool) {
        return node.Error("joins booleans");
      }
      return join;
    }
  }
  return node.Error("reduction '" + name +
                    "', known are none, add, mul, min and max");
}

template <class T>
T Joined(Join join, T a, T b) {
  switch (join) {
    case Join::kReplace:
      return b;
    case Join::kAdd:
      if constexpr (std::is_floating_point_v<T>) return a + b;
      return static_cast<T>(static_cast<uint64_t>(a) +
                            static_cast<uint64_t>(b));
    case Join::kMultiply:
      if constexpr (std::is_floating_point_v<T>) return a * b;
      return static_cast<T>(static_cast<uint64_t>(a) *
                            static_cast<uint64_t>(b));
    case Join::kLeast:
      return b < a ? b : a;
    case Join::kLargest:
      break;
  }
  return a < b ? b : a;
}

// One run of elements, of both tensors.
using JoinRun = void (*)(Join join, const std::byte* from, std::byte* to,
                         int64_t n);
JoinRun JoinOfType(DataType type) {
  return VisitType(type, [](auto identity) -> JoinRun {
    using T = typename decltype(identity)::type;
    return [](Join join, const std::byte* from, std::byte* to, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        As<T>(to)[i] = Joined(join, As<T>(to)[i], As<T>(from)[i]);
      }
    };
  });
}

// What both kinds have in common: f finds, for the `row`th of `rows` runs of
// updates, where it goes, -1 when out of range.
template <class Find>
class ScatterKernel final : public Kernel {
 public:
  ScatterKernel(const KernelRequest& request, Join join, int64_t rows,
                int64_t run, Find find)
      : out_of_range_(
            request.node.Error("an index is out of range of its data " +
                               ShapeText(request.inputs[0].shape))),
        join_(join),
        join_run_(JoinOfType(request.outputs[0].type)),
        rows_(rows),
        run_(run),
        elements_(request.outputs[0].elements()),
        size_(SizeOf(request.outputs[0].type)),
        find_(std::move(find)),
        work_(WorkOf(request)) {}

  // Each part looks at all indices.
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    return run_ > 1 || elements_ > 8 * rows_ ? PartsOf(work_, elements_, cores)
                                             : 1;
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart(Part{}, inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* /*scratch*/) const override {
    constexpr int64_t kRowsAtOnce = 4096;
    const Range own = ShareOf(part, elements_, kElementUnit);
    const auto bytes = [&](int64_t n) {
      return static_cast<size_t>(n) * size_;
    };
    if (inputs[0] != outputs[0] && own.size() > 0) {
      std::memcpy(outputs[0] + bytes(own.begin), inputs[0] + bytes(own.begin),
                  bytes(own.size()));
    }
    for (int64_t row = 0; row < rows_; ++row) {
      if (row % kRowsAtOnce == 0 || run_ > kRowsAtOnce) StopPoint();
      const int64_t at = find_(inputs[1], row);
      if (at < 0) return out_of_range_;
      const int64_t begin = std::max(at, own.begin);
      const int64_t end = std::min(at + run_, own.end);
      if (begin >= end) continue;
      const std::byte* const from = inputs[2] + bytes(row * run_ + begin - at);
      if (join_ == Join::kReplace) {
        std::memcpy(outputs[0] + bytes(begin), from, bytes(end - begin));
      } else {
        join_run_(join_, from, outputs[0] + bytes(begin), end - begin);
      }
    }
    return absl::OkStatus();
  }

 private:
  const absl::Status out_of_range_;
  const Join join_;
  const JoinRun join_run_;
  const int64_t rows_, run_, elements_;
  const size_t size_;
  const Find find_;
  const Work work_;
};

template <class Find>
MadeKernel MakeScatter(const KernelRequest& request, int64_t rows, int64_t run,
                       Find find) {
  RKNND_ASSIGN_OR_RETURN(const Join join, JoinOf(request.node));
  return std::make_unique<ScatterKernel<Find>>(request, join, rows, run,
                                               std::move(find));
}

absl::Status CheckScatter(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {3, 3}));
  RKNND_RETURN_IF_ERROR(
      CheckType(node, 1, {DataType::kInt32, DataType::kInt64}));
  if (node.type(0) != node.type(2)) {
    return node.Error(absl::StrCat("data of ", DataTypeName(node.type(0)),
                                   ", updates of ",
                                   DataTypeName(node.type(2))));
  }
  return JoinOf(node).status();
}

absl::StatusOr<IndexTuples> ParseNd(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckScatter(node));
  RKNND_ASSIGN_OR_RETURN(IndexTuples tuples, ParseTuples(node, 0));
  const Shape& data = node.shape(0);
  Shape wanted(node.shape(1).begin(), node.shape(1).end() - 1);
  wanted.insert(wanted.end(),
                data.begin() + static_cast<ptrdiff_t>(tuples.width),
                data.end());
  if (node.shape(2) != wanted) {
    return node.Error(absl::StrCat("updates are ", ShapeText(node.shape(2)),
                                   ", they must be ", ShapeText(wanted)));
  }
  return tuples;
}

Inference InferNd(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(ParseNd(node).status());
  return InferOne(node, node.type(0), node.shape(0));
}

MadeKernel MakeNd(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(IndexTuples tuples, ParseNd(request.node));
  const Shape& data = request.inputs[0].shape;
  const Shape& indices = request.inputs[1].shape;
  const int64_t rows = ProductOf(indices, 0, indices.size() - 1);
  const int64_t run = ProductOf(data, tuples.width, data.size());
  return MakeScatter(
      request, rows, run,
      [tuples = std::move(tuples)](const std::byte* given, int64_t row) {
        return tuples.At(given, row);
      });
}

absl::StatusOr<size_t> ParseElements(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckScatter(node));
  const Shape& data = node.shape(0);
  const Shape& indices = node.shape(1);
  RKNND_ASSIGN_OR_RETURN(const size_t axis,
                         CheckAxis(node, node.Int("axis", 0), data.size()));
  bool fits = indices.size() == data.size() && indices == node.shape(2);
  for (size_t d = 0; fits && d < data.size(); ++d) {
    fits = d == axis || indices[d] <= data[d];
  }
  if (!fits) {
    return node.Error(absl::StrCat("data ", ShapeText(data), ", indices ",
                                   ShapeText(indices), ", updates ",
                                   ShapeText(node.shape(2))));
  }
  RKNND_RETURN_IF_ERROR(CheckKnownIndices(node, axis));
  return axis;
}

Inference InferElements(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(ParseElements(node).status());
  return InferOne(node, node.type(0), node.shape(0));
}

MadeKernel MakeElements(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const size_t axis, ParseElements(request.node));
  const Shape& indices = request.inputs[1].shape;
  Shape strides = DenseStrides(request.inputs[0].shape);
  const int64_t step = std::exchange(strides[axis], 0);
  const int64_t size = request.inputs[0].shape[axis];
  const bool wide = request.inputs[1].type == DataType::kInt64;
  return MakeScatter(request, request.inputs[1].elements(), 1,
                     [=](const std::byte* data, int64_t i) -> int64_t {
                       const int64_t index = IndexAt(data, wide, i, size);
                       if (index < 0) return -1;
                       int64_t at = index * step;
                       for (size_t d = indices.size(); d-- > 0;) {
                         at += i % indices[d] * strides[d];
                         i /= indices[d];
                       }
                       return at;
                     });
}

}  // namespace

void RegisterScatter(OperatorTable& table) {
  table.Add({.type = "ScatterND",
             .infer = InferNd,
             .make = MakeNd,
             .overwrites = Overwrite::kFirst});
  for (const char* type : {"ScatterElements", "Scatter"}) {
    table.Add({.type = type,
               .infer = InferElements,
               .make = MakeElements,
               .overwrites = Overwrite::kFirst});
  }
}

}  // namespace rknnd::soft
