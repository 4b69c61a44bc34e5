#include "client/ctl/accuracy/accuracy_distance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/values/half.h"

namespace rknnd::client {
namespace {

template <class T>
double Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return static_cast<double>(value);
}

using Loader = double (*)(const std::byte* at);

double LoadHalf(const std::byte* at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return base::HalfToFloat(static_cast<base::Half>(bits));
}

Loader LoaderOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return Load<float>;
    case ElementType::kFloat16:
      return LoadHalf;
    case ElementType::kInt8:
      return Load<int8_t>;
    case ElementType::kUint8:
    case ElementType::kBool:
      return Load<uint8_t>;
    case ElementType::kInt16:
      return Load<int16_t>;
    case ElementType::kUint16:
      return Load<uint16_t>;
    case ElementType::kInt32:
      return Load<int32_t>;
    case ElementType::kUint32:
      return Load<uint32_t>;
    case ElementType::kInt64:
      return Load<int64_t>;
    case ElementType::kFloat64:
      return Load<double>;
    case ElementType::kUint64:
      return Load<uint64_t>;
  }
  return Load<float>;
}

}  // namespace

std::optional<Distance> DistanceOf(const Array& a, const Array& b) {
  if (a.shape != b.shape) return std::nullopt;
  const size_t a_size = ElementSize(a.type);
  const size_t b_size = ElementSize(b.type);
  const size_t count = a.bytes.size() / a_size;
  if (count != b.bytes.size() / b_size) return std::nullopt;
  const Loader load_a = LoaderOf(a.type);
  const Loader load_b = LoaderOf(b.type);
  // The largest number of either is 1 in the sums: the squares of floats and
  // of doubles alike stay in range.
  double unit = 0;
  for (size_t i = 0; i < count; ++i) {
    const double x = std::fabs(load_a(a.bytes.data() + i * a_size));
    const double y = std::fabs(load_b(b.bytes.data() + i * b_size));
    if (!std::isfinite(x) || !std::isfinite(y)) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      return Distance{nan, nan};
    }
    unit = std::max({unit, x, y});
  }
  if (unit == 0) return Distance{};
  double product = 0;
  double a_square = 0;
  double b_square = 0;
  double square = 0;
  for (size_t i = 0; i < count; ++i) {
    const double x = load_a(a.bytes.data() + i * a_size) / unit;
    const double y = load_b(b.bytes.data() + i * b_size) / unit;
    product += x * y;
    a_square += x * x;
    b_square += y * y;
    square += (x - y) * (x - y);
  }
  Distance distance;
  distance.euc = std::sqrt(square) * unit;
  if (square == 0) return distance;  // the same: no rounding says otherwise
  const double lengths = std::sqrt(a_square) * std::sqrt(b_square);
  distance.cos = lengths == 0 ? 0 : std::clamp(product / lengths, -1.0, 1.0);
  return distance;
}

bool HasInf(const Array& array) {
  const size_t size = ElementSize(array.type);
  const Loader load = LoaderOf(array.type);
  for (size_t at = 0; at + size <= array.bytes.size(); at += size) {
    if (!std::isfinite(load(array.bytes.data() + at))) return true;
  }
  return false;
}

}  // namespace rknnd::client
