// How kernels walk tensors: strided loops over several operands at once, with
// neighbouring axes merged so that the innermost run is as long as it can be.
// Built while loading; Run allocates nothing and may be called by many threads.

#ifndef DRIVER_SOFT_KERNELS_LOOPS_H_
#define DRIVER_SOFT_KERNELS_LOOPS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/kernels/stop.h"
#include "driver/soft/kernels/work.h"

namespace rknnd::soft {

using Inputs = std::span<const std::byte* const>;
using Outputs = std::span<std::byte* const>;

// A kernel made of one callable: void(Inputs, Outputs, std::byte* scratch).
template <class F>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(F function, size_t scratch)
      : function_(std::move(function)), scratch_(scratch) {}
  [[nodiscard]] size_t scratch_size() const override { return scratch_; }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    function_(inputs, outputs, scratch);
    return absl::OkStatus();
  }

 private:
  F function_;
  size_t scratch_;
};

using MadeKernel = absl::StatusOr<std::unique_ptr<Kernel>>;

template <class F>
std::unique_ptr<Kernel> MakeKernel(F function, size_t scratch = 0) {
  return std::make_unique<FunctionKernel<F>>(std::move(function), scratch);
}

template <class T>
const T* As(const std::byte* data) {
  return reinterpret_cast<const T*>(data);
}
template <class T>
T* As(std::byte* data) {
  return reinterpret_cast<T*>(data);
}

// A value out of memory that a client may change meanwhile: what was checked is
// what is used, whatever the memory says by then.
template <class T>
T Once(T value) {
  volatile T kept = value;
  return kept;
}

// A kernel whose work the cores of a gang share out: one callable,
// void(Inputs, Outputs, Part), that can be cut into `pieces` parts at most.
template <class F>
class SharedKernel final : public Kernel {
 public:
  SharedKernel(const Work& work, int64_t pieces, F function)
      : function_(std::move(function)), work_(work), pieces_(pieces) {}
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart(Part{}, inputs, outputs, scratch);
  }
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    return PartsOf(work_, pieces_, cores);
  }
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte*) const override {
    const uint32_t stretches = StretchesOf(work_, pieces_, part.count);
    for (uint32_t i = 0; i < stretches; ++i) {
      StopPoint();
      function_(inputs, outputs,
                Part{part.index * stretches + i, part.count * stretches});
    }
    return absl::OkStatus();
  }

 private:
  F function_;
  Work work_;
  int64_t pieces_;
};

template <class F>
std::unique_ptr<Kernel> MakeSharedKernel(const Work& work, int64_t pieces,
                                         F function) {
  return std::make_unique<SharedKernel<F>>(work, pieces, std::move(function));
}
// Of a request's tensors, cut between any elements.
template <class F>
std::unique_ptr<Kernel> MakeSharedKernel(const KernelRequest& request,
                                         F function, int64_t operations = 1) {
  return MakeSharedKernel(WorkOf(request, operations),
                          request.outputs[0].elements(), std::move(function));
}

// Axes as they lie in memory: a blocked tensor is a dense one with one more
// axis (N, C/b, H, W, b).
Shape PhysicalShape(const TensorSpec& spec);
// Elements of that, with padding.
int64_t PhysicalElements(const TensorSpec& spec);
// Sets the channels that only fill up the last block to zero: consumers rely
// on it. Does nothing for dense tensors.
void ClearPadding(const TensorSpec& spec, float* data);
// Only where that lies among these physical elements.
void ClearPadding(const TensorSpec& spec, float* data, Range elements);

// Row-major strides in elements.
Shape DenseStrides(const Shape& shape);
// Strides with which `shape` is read as if it had the shape `to`.
Shape BroadcastStrides(const Shape& shape, const Shape& to);

template <size_t K>
class StridedLoop {
 public:
  using Offsets = std::array<int64_t, K>;

  StridedLoop() = default;
  // `strides[k][d]`: how far operand k moves along axis d, in its own unit.
  StridedLoop(const Shape& dims, const std::array<Shape, K>& strides) {
    elements_ = ProductOf(dims, 0, dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == 1) continue;
      bool merges = !dims_.empty();
      for (size_t k = 0; k < K && merges; ++k) {
        merges = strides_[k].back() == strides[k][d] * dims[d];
      }
      if (merges) {
        dims_.back() *= dims[d];
        for (size_t k = 0; k < K; ++k) strides_[k].back() = strides[k][d];
      } else {
        dims_.push_back(dims[d]);
        for (size_t k = 0; k < K; ++k) strides_[k].push_back(strides[k][d]);
      }
    }
    if (dims_.empty()) {
      dims_.push_back(1);
      for (size_t k = 0; k < K; ++k) strides_[k].push_back(1);
    }
    for (size_t k = 0; k < K; ++k) inner_[k] = strides_[k].back();
  }

  [[nodiscard]] const Offsets& inner_strides() const { return inner_; }
  [[nodiscard]] int64_t elements() const { return elements_; }

  // Calls f(offsets, n) for each innermost run of n elements, a very long one
  // in several; in between are StopPoints.
  template <class F>
  void Run(F&& f) const {
    Run({0, elements_}, std::forward<F>(f));
  }
  // Of some of the elements, in the order of the axes: the first run and the
  // last may be parts of runs.
  template <class F>
  void Run(Range elements, F&& f) const {
    if (elements.size() <= 0) return;
    Cursor cursor;
    cursor.run = dims_.back();
    if (elements.begin > 0) Go(cursor, elements.begin);
    for (int64_t left = elements.size();;) {
      const int64_t n = std::min({cursor.run, left, kLongestRun});
      f(std::as_const(cursor.offsets), n);
      left -= n;
      if (left == 0) return;
      Next(cursor, n);
    }
  }

 private:
  struct Cursor {
    Offsets offsets{};
    std::array<int64_t, 2 * kMaxRank> index{};  // Tile doubles the axes
    int64_t run = 0;                            // what is left of this one
  };
  static constexpr int64_t kLongestRun = 1 << 20;

  // To an element, and past n elements of a run. Out of line: there are
  // hundreds of loops.
  void Go(Cursor& cursor, int64_t element) const;
  void Next(Cursor& cursor, int64_t n) const;

  int64_t elements_ = 0;
  Shape dims_;
  std::array<Shape, K> strides_;
  Offsets inner_{};
};

// Copies elements of any type between two strided views.
class StridedCopy {
 public:
  StridedCopy() = default;
  StridedCopy(const Shape& dims, const Shape& from_strides,
              const Shape& to_strides, size_t element_size)
      : loop_(dims, {from_strides, to_strides}), size_(element_size) {}

  [[nodiscard]] int64_t elements() const { return loop_.elements(); }
  void Run(const std::byte* from, std::byte* to) const {
    Run(from, to, {0, elements()});
  }
  void Run(const std::byte* from, std::byte* to, Range elements) const;

 private:
  StridedLoop<2> loop_;
  size_t size_ = 1;
};

// Calls f(std::type_identity<T>) for the C++ type of `type`. Booleans are
// uint8_t: a byte that a client wrote need not be 0 or 1.
template <class F>
decltype(auto) VisitType(DataType type, F&& f) {
  switch (type) {
    case DataType::kInt8:
      return f(std::type_identity<int8_t>());
    case DataType::kUint8:
    case DataType::kBool:
      return f(std::type_identity<uint8_t>());
    case DataType::kInt16:
      return f(std::type_identity<int16_t>());
    case DataType::kUint16:
      return f(std::type_identity<uint16_t>());
    case DataType::kInt32:
      return f(std::type_identity<int32_t>());
    case DataType::kUint32:
      return f(std::type_identity<uint32_t>());
    case DataType::kInt64:
      return f(std::type_identity<int64_t>());
    case DataType::kUint64:
      return f(std::type_identity<uint64_t>());
    case DataType::kFloat64:
      return f(std::type_identity<double>());
    case DataType::kFloat32:
      break;
  }
  return f(std::type_identity<float>());
}

// Element i of a tensor of any type, as the nearest double: where the type
// matters less than the amount of code.
using NumberReader = double (*)(const std::byte* data, int64_t i);
NumberReader ReaderOf(DataType type);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_LOOPS_H_
