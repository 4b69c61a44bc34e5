// From sums to C: zero points, scales, the type and the layout that C has.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "base/values/half.h"
#include "driver/soft/matmul/matmul_kernel.h"
#include "driver/soft/matmul/run_state.h"

namespace rknnd::soft {
namespace {

using matmul::Element;

uint16_t ToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

void MatmulKernel::FinishBytes(const Numbers& numbers, const Room& room,
                               uint32_t more, int64_t row, int64_t count,
                               int64_t column, int64_t columns,
                               std::byte* c) const {
  const auto* const sums = reinterpret_cast<const uint32_t*>(room.sums);
  const auto here = static_cast<size_t>(columns);
  OfColumns<uint32_t> subtract{}, zero{};
  OfColumns<double> scale{};
  const auto k = static_cast<uint32_t>(shape_.k);
  for (size_t i = 0; i < here; ++i) {
    const int64_t n = column + static_cast<int64_t>(i);
    if (more != 0) {
      subtract[i] = more * sums[static_cast<size_t>(count) * kColumns + i];
    }
    zero[i] = static_cast<uint32_t>(numbers.ZeroOfColumn(n));
    subtract[i] -= k * static_cast<uint32_t>(numbers.a_zero) * zero[i];
    scale[i] = double{numbers.header.a_scale} * double{numbers.ScaleOf(n)};
    if (elements_.c == Element::kInt8) {
      scale[i] /= double{numbers.header.c_scale};
    }
  }
  for (int64_t r = 0; r < count; ++r) {
    const uint32_t of_row = numbers.has_b_zeros ? room.row_sums[r] : 0;
    OfColumns<int32_t> exact;
    for (size_t i = 0; i < kColumns; ++i) {
      exact[i] =
          static_cast<int32_t>(sums[static_cast<size_t>(r) * kColumns + i] -
                               subtract[i] - zero[i] * of_row);
    }
    switch (elements_.c) {
      case Element::kInt32:
        StoreRow(exact.data(), row + r, column, columns, c);
        break;
      case Element::kInt16: {
        OfColumns<int16_t> shorts;
        for (size_t i = 0; i < kColumns; ++i) {
          shorts[i] = static_cast<int16_t>(std::clamp(exact[i], -32768, 32767));
        }
        StoreRow(shorts.data(), row + r, column, columns, c);
        break;
      }
      case Element::kInt8: {
        OfColumns<int8_t> bytes{};
        for (size_t i = 0; i < here; ++i) {
          const double steps =
              std::nearbyint(static_cast<double>(exact[i]) * scale[i]) +
              numbers.c_zero;
          bytes[i] = static_cast<int8_t>(
              steps >= -128.0 ? std::min(steps, 127.0) : -128.0);
        }
        StoreRow(bytes.data(), row + r, column, columns, c);
        break;
      }
      default: {
        OfColumns<float> values;
        for (size_t i = 0; i < kColumns; ++i) {
          values[i] =
              static_cast<float>(static_cast<double>(exact[i]) * scale[i]);
        }
        StoreFloats(values.data(), row + r, column, columns, c);
        break;
      }
    }
  }
}

void MatmulKernel::FinishFloats(const Numbers& numbers, const Room& room,
                                int64_t row, int64_t count, int64_t column,
                                int64_t columns, std::byte* c) const {
  auto* const sums = reinterpret_cast<float*>(room.sums);
  if (elements_.b != Element::kFloat16) {
    const float a_scale =
        elements_.a == Element::kFloat16 ? 1.0F : numbers.header.a_scale;
    OfColumns<float> scale{};
    for (size_t i = 0; i < static_cast<size_t>(columns); ++i) {
      const int64_t n = column + static_cast<int64_t>(i);
      scale[i] = a_scale * (scales_late_ ? numbers.ScaleOf(n) : 1.0F);
    }
    for (int64_t r = 0; r < count; ++r) {
      for (size_t i = 0; i < kColumns; ++i) {
        sums[static_cast<size_t>(r) * kColumns + i] *= scale[i];
      }
    }
  }
  for (int64_t r = 0; r < count; ++r) {
    StoreFloats(sums + static_cast<size_t>(r) * kColumns, row + r, column,
                columns, c);
  }
}

void MatmulKernel::StoreFloats(const float* values, int64_t row, int64_t column,
                               int64_t columns, std::byte* c) const {
  OfColumns<uint16_t> halves{};
  switch (elements_.c) {
    case Element::kFloat16:
      base::FloatToHalf(std::span(values, kColumns), halves);
      return StoreRow(halves.data(), row, column, columns, c);
    case Element::kBfloat16:
      for (size_t i = 0; i < kColumns; ++i) halves[i] = ToBfloat16(values[i]);
      return StoreRow(halves.data(), row, column, columns, c);
    default:
      return StoreRow(values, row, column, columns, c);
  }
}

void MatmulKernel::StoreRow(const void* numbers, int64_t row, int64_t column,
                            int64_t columns, std::byte* c) const {
  const size_t size = matmul::BitsOf(elements_.c) / 8;
  const auto* from = static_cast<const std::byte*>(numbers);
  if (!spec_.native_ac) {
    std::memcpy(c + static_cast<size_t>(row * shape_.n + column) * size, from,
                static_cast<size_t>(columns) * size);
    return;
  }
  const int64_t block = blocks_.c_n;
  for (int64_t n = column; n < column + columns; n += block) {
    std::memcpy(
        c + static_cast<size_t>((n / block * shape_.m + row) * block) * size,
        from, static_cast<size_t>(block) * size);
    from += static_cast<size_t>(block) * size;
  }
}

}  // namespace rknnd::soft
