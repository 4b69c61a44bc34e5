// See loops.h.

#include "driver/soft/kernels/loops.h"

#include <algorithm>

namespace rknnd::soft {
namespace {

template <class T>
void CopyRun(const std::byte* from, std::byte* to, int64_t n, int64_t from_step,
             int64_t to_step) {
  const T* source = As<T>(from);
  T* target = As<T>(to);
  if (from_step == 0 && to_step == 1) {
    std::fill_n(target, n, *source);
  } else if (to_step == 1) {
    for (int64_t i = 0; i < n; ++i) target[i] = source[i * from_step];
  } else {
    for (int64_t i = 0; i < n; ++i) target[i * to_step] = source[i * from_step];
  }
}

}  // namespace

Shape PhysicalShape(const TensorSpec& spec) {
  Shape shape = spec.shape;
  if (spec.placement.block > 1 && shape.size() > 1) {
    shape[1] = (shape[1] + spec.placement.block - 1) / spec.placement.block;
    shape.push_back(spec.placement.block);
  }
  return shape;
}

int64_t PhysicalElements(const TensorSpec& spec) {
  const Shape shape = PhysicalShape(spec);
  return ProductOf(shape, 0, shape.size());
}

void ClearPadding(const TensorSpec& spec, float* data) {
  ClearPadding(spec, data, {0, PhysicalElements(spec)});
}

void ClearPadding(const TensorSpec& spec, float* data, Range elements) {
  const int64_t block = spec.placement.block;
  if (block <= 1 || spec.shape.size() < 2 || spec.elements() == 0) return;
  const int64_t used = spec.shape[1] % block;
  if (used == 0) return;
  const int64_t blocks = spec.shape[1] / block + 1;
  const int64_t pixels = ProductOf(spec.shape, 2, spec.shape.size());
  for (int64_t n = 0; n < spec.shape[0]; ++n) {
    const int64_t last = (n * blocks + blocks - 1) * pixels * block;
    const int64_t begin = std::max(elements.begin, last) - last;
    const int64_t end = std::min(elements.end, last + pixels * block) - last;
    for (int64_t p = begin / block; p * block < end; ++p) {
      const int64_t from = std::max(p * block + used, begin);
      const int64_t to = std::min((p + 1) * block, end);
      if (from < to) std::fill(data + last + from, data + last + to, 0.0F);
    }
  }
}

Shape DenseStrides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d > 1; --d) {
    strides[d - 2] = strides[d - 1] * shape[d - 1];
  }
  return strides;
}

Shape BroadcastStrides(const Shape& shape, const Shape& to) {
  const Shape dense = DenseStrides(shape);
  Shape strides(to.size(), 0);
  const size_t ahead = to.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) strides[ahead + d] = dense[d];
  }
  return strides;
}

template <size_t K>
void StridedLoop<K>::Go(Cursor& cursor, int64_t element) const {
  const int64_t in_run = element % dims_.back();
  cursor.run = dims_.back() - in_run;
  int64_t rest = element / dims_.back();
  for (size_t d = dims_.size() - 1; d > 0; --d) {
    cursor.index[d - 1] = rest % dims_[d - 1];
    rest /= dims_[d - 1];
  }
  for (size_t k = 0; k < K; ++k) {
    cursor.offsets[k] = in_run * inner_[k];
    for (size_t d = 0; d + 1 < dims_.size(); ++d) {
      cursor.offsets[k] += cursor.index[d] * strides_[k][d];
    }
  }
}

template <size_t K>
void StridedLoop<K>::Next(Cursor& cursor, int64_t n) const {
  StopPoint();
  if (n < cursor.run) {
    cursor.run -= n;
    for (size_t k = 0; k < K; ++k) cursor.offsets[k] += n * inner_[k];
    return;
  }
  if (const int64_t in_run = dims_.back() - cursor.run; in_run > 0) {
    for (size_t k = 0; k < K; ++k) cursor.offsets[k] -= in_run * inner_[k];
    cursor.run = dims_.back();
  }
  for (size_t d = dims_.size() - 1; d > 0; --d) {
    const size_t i = d - 1;
    if (++cursor.index[i] < dims_[i]) {
      for (size_t k = 0; k < K; ++k) cursor.offsets[k] += strides_[k][i];
      return;
    }
    cursor.index[i] = 0;
    for (size_t k = 0; k < K; ++k) {
      cursor.offsets[k] -= strides_[k][i] * (dims_[i] - 1);
    }
  }
}

template class StridedLoop<1>;
template class StridedLoop<2>;
template class StridedLoop<3>;
template class StridedLoop<4>;

NumberReader ReaderOf(DataType type) {
  return VisitType(type, []<class T>(std::type_identity<T>) -> NumberReader {
    return [](const std::byte* data, int64_t i) {
      return static_cast<double>(As<T>(data)[i]);
    };
  });
}

void StridedCopy::Run(const std::byte* from, std::byte* to,
                      Range elements) const {
  const auto size = static_cast<int64_t>(size_);
  const int64_t from_step = loop_.inner_strides()[0];
  const int64_t to_step = loop_.inner_strides()[1];
  if (from_step == 1 && to_step == 1) {
    loop_.Run(elements, [&](const auto& at, int64_t n) {
      std::memcpy(to + at[1] * size, from + at[0] * size,
                  static_cast<size_t>(n * size));
    });
    return;
  }
  loop_.Run(elements, [&](const auto& at, int64_t n) {
    const std::byte* source = from + at[0] * size;
    std::byte* target = to + at[1] * size;
    switch (size) {
      case 1:
        return CopyRun<uint8_t>(source, target, n, from_step, to_step);
      case 2:
        return CopyRun<uint16_t>(source, target, n, from_step, to_step);
      case 4:
        return CopyRun<uint32_t>(source, target, n, from_step, to_step);
      default:
        return CopyRun<uint64_t>(source, target, n, from_step, to_step);
    }
  });
}

}  // namespace rknnd::soft
