// See stages.h.

#include "driver/rknpu/emulator/plain/stages.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/status/status.h"

namespace rknnd::rknpu {
namespace {

constexpr uint16_t kBsBase = 0x5020, kBnBase = 0x502c, kOperandBase = 0x5038,
                   kTarget = 0x4020, kElementWise = 0x4070;
constexpr int64_t kTableEnd = 16384;
constexpr size_t kLast = Tables::kEntries - 1;

int64_t Rounded(int64_t v, uint32_t n) {
  return n == 0 ? v : (v + (int64_t{1} << (n - 1))) >> n;
}

}  // namespace

int64_t TableAt(const Tables& tables, const SlopeSpec& slopes, int64_t v) {
  const auto& le = tables.entries[0];
  const auto& lo = tables.entries[1];
  if (v < -kTableEnd) {
    return le[0] + (((v + kTableEnd) * slopes.below) >> slopes.below_shift);
  }
  if (v > kTableEnd) {
    return lo[kLast] + (((v - kTableEnd) * slopes.above) >> slopes.above_shift);
  }
  const auto& table = v < 0 ? le : lo;
  const int64_t p = v < 0 ? v + kTableEnd : v;
  const auto i = static_cast<size_t>(std::min<int64_t>(p >> 5, 511));
  const int64_t rise = table[i + 1] - table[i];
  return table[i] + Rounded(rise * (p - 32 * static_cast<int64_t>(i)), 5);
}

PlainStages::PlainStages(const OutputSpec& spec, uint32_t channels,
                         const Tables& tables, Access& access)
    : spec_(spec),
      tables_(tables),
      access_(access),
      bs_(ReadCoefficients(spec.bs.memory, channels, kBsBase, access)),
      bn_(ReadCoefficients(spec.bn.memory, channels, kBnBase, access)) {
  if (spec.ew.table && !tables.complete()) {
    access.Fail(absl::UnimplementedError(
        NameOf(kElementWise) +
        " uses tables that the job has not loaded whole"));
  }
}

int64_t PlainStages::Add(int64_t a, int64_t b) {
  int64_t sum = 0;
  outgrown_ |= __builtin_add_overflow(a, b, &sum);
  return sum;
}

int64_t PlainStages::Mul(int64_t a, int64_t b) {
  int64_t product = 0;
  outgrown_ |= __builtin_mul_overflow(a, b, &product);
  return product;
}

int64_t PlainStages::Shift(int64_t v, uint32_t n) {
  return n == 0 ? v : Add(v, int64_t{1} << (n - 1)) >> n;
}

int64_t PlainStages::Stage(const StageSpec& spec, const Coefficients& memory,
                           bool add_first, size_t channel, int64_t v) {
  const auto add = [&] {
    if (!spec.add) return;
    v = Add(v, spec.add_from_memory ? memory.bias[channel] : spec.addend);
  };
  if (add_first) add();
  if (spec.mul) {
    v = Mul(v, spec.mul_from_memory ? memory.mul[channel] : spec.factor);
    v = Shift(v, spec.shift);
  }
  if (!add_first) add();
  if (spec.relu) v = std::max<int64_t>(v, 0);
  if (spec.limit) v = std::min<int64_t>(v, spec.most);
  return v;
}

int64_t PlainStages::ElementWise(int64_t v, int8_t operand) {
  const ElementWiseSpec& ew = spec_.ew;
  if (ew.operand != Operand::kNone) {
    int64_t e = operand;
    if (ew.convert) e = Shift(Mul(Add(e, ew.offset), ew.factor), ew.shift);
    switch (ew.operation) {
      case Operation::kMax:
        v = std::max(v, e);
        break;
      case Operation::kMin:
        v = std::min(v, e);
        break;
      case Operation::kAdd:
        v = Add(v, e);
        break;
      case Operation::kMul:
        v = Mul(v, e);
        break;
    }
  }
  if (ew.table) {
    // Beyond the table a slope of 16 bits multiplies.
    outgrown_ |= std::abs(v >> 1) > (int64_t{1} << 46);
    if (!outgrown_) v = TableAt(tables_, spec_.slopes, v);
  }
  return ew.relu ? std::max<int64_t>(v, 0) : v;
}

int8_t PlainStages::Convert(int64_t v) {
  v = Add(Shift(Mul(v, spec_.convert.scale), spec_.convert.shift),
          spec_.convert.offset);
  return static_cast<int8_t>(std::clamp<int64_t>(v, -128, 127));
}

bool PlainStages::Put(uint32_t s, uint32_t y, uint32_t x, const int64_t* values,
                      const int64_t* window_sums) {
  if (!access_.GoesOn()) return false;
  const ElementWiseSpec& ew = spec_.ew;
  const std::byte* operands = nullptr;
  if (ew.operand != Operand::kNone) {
    int64_t offset = (s / 2) * ew.pair_step + y * ew.line_step;
    if (ew.operand == Operand::kPixel) offset += int64_t{x} * kAtom;
    operands = access_.Read(ew.base[s % 2] + static_cast<uint64_t>(offset),
                            kAtom, kOperandBase);
    if (operands == nullptr) return false;
  }
  int8_t atom[kAtom];
  for (uint32_t i = 0; i < kAtom; ++i) {
    const size_t channel = size_t{s} * kAtom + i;
    int64_t v = values[i];
    if (spec_.ow) {
      const int64_t ow =
          spec_.ow_from_memory ? bs_.ow[channel] : spec_.ow_value;
      v = Add(v, Mul(ow, window_sums[i]));
    }
    v = Stage(spec_.bs, bs_, true, channel, v);
    v = Stage(spec_.bn, bn_, false, channel, v);
    v = ElementWise(
        v, operands == nullptr ? int8_t{0} : static_cast<int8_t>(operands[i]));
    atom[i] = Convert(v);
  }
  if (outgrown_) {
    access_.Fail(absl::UnimplementedError(
        "the DPU's stages: a value needs more than 64 bits"));
    return false;
  }
  std::byte* const to = access_.Write(PlaceOf(spec_, s, y, x), kAtom, kTarget);
  if (to == nullptr) return false;
  std::memcpy(to, atom, kAtom);
  return true;
}

bool PlainStages::PutHalf(uint32_t s, uint32_t y, uint32_t x,
                          const double* values) {
  if (!access_.GoesOn()) return false;
  uint16_t atom[kAtom / 2];
  for (uint32_t i = 0; i < kAtom / 2; ++i) atom[i] = ToHalf(values[i]);
  std::byte* const to = access_.Write(PlaceOf(spec_, s, y, x), kAtom, kTarget);
  if (to == nullptr) return false;
  std::memcpy(to, atom, kAtom);
  return true;
}

uint16_t ToHalf(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return sign | 0x7e00;
  const double size = std::fabs(value);
  if (size >= 65520.0) return sign | 0x7c00;  // half a unit above the largest
  int exponent = 0;
  std::frexp(size, &exponent);
  // Of the last digit: normal numbers have eleven.
  const int unit = std::max(exponent - 11, -24);
  const auto digits =
      static_cast<uint16_t>(std::nearbyint(std::ldexp(size, -unit)));
  // Digits that carry over raise the exponent by themselves.
  if (unit == -24) return sign | digits;
  return static_cast<uint16_t>(sign | (((unit + 24) << 10) + digits));
}

double FromHalf(uint16_t half) {
  const int exponent = (half >> 10) & 0x1f;
  const int digits = half & 0x3ff;
  double size = 0.0;
  if (exponent == 31) {
    size = digits == 0 ? HUGE_VAL : std::nan("");
  } else {
    size = exponent == 0 ? std::ldexp(digits, -24)
                         : std::ldexp(digits + 1024, exponent - 25);
  }
  return (half & 0x8000) != 0 ? -size : size;
}

}  // namespace rknnd::rknpu
