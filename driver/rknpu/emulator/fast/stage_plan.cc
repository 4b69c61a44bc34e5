// See stage_plan.h.

#include "driver/rknpu/emulator/fast/stage_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "driver/rknpu/emulator/coefficients.h"

namespace rknnd::rknpu::fast {
namespace {

// Values, products and what is added to them stay below this: doubles hold
// them, and halves of units, exactly.
constexpr uint64_t kExact = uint64_t{1} << 51;
constexpr uint32_t kMostShift = 50;

Scale ScaleOf(int32_t factor, uint32_t shift) {
  return {std::ldexp(static_cast<double>(factor), -static_cast<int>(shift)),
          shift == 0 ? 0.0 : 0.5};
}

ByteConversion ConversionOf(const ConvertSpec& spec) {
  ByteConversion convert;
  convert.scale = ScaleOf(spec.scale, spec.shift);
  convert.offset = spec.offset;
  return convert;
}

template <class T>
uint64_t Largest(const std::vector<T>& values) {
  uint64_t largest = 0;
  for (const T value : values) {
    largest = std::max<uint64_t>(
        largest, static_cast<uint64_t>(std::abs(int64_t{value})));
  }
  return largest;
}

uint64_t Magnitude(int64_t value) {
  return static_cast<uint64_t>(std::abs(value));
}

// Follows the largest magnitude through the stages.
class Proof {
 public:
  explicit Proof(uint64_t value) : value_(value) {}
  void Add(uint64_t other) { Set(value_ + other); }
  void Mul(uint64_t factor, uint32_t shift) {
    if (factor != 0 && value_ > kExact / factor) holds_ = false;
    if (shift > kMostShift) holds_ = false;
    if (holds_) Set(((value_ * factor) >> shift) + 1);
  }
  void AtLeast(uint64_t other) { Set(std::max(value_, other)); }
  [[nodiscard]] uint64_t value() const { return value_; }
  [[nodiscard]] bool holds() const { return holds_; }

 private:
  void Set(uint64_t value) {
    value_ = value;
    holds_ = holds_ && value_ < kExact;
  }
  uint64_t value_;
  bool holds_ = true;
};

Bounds BoundsOf(const StageSpec& spec) {
  Bounds bounds;
  if (spec.relu) bounds.low = 0.0;
  if (spec.limit) bounds.high = spec.most;
  return bounds;
}

bool WholeCoefficients(const CoefficientSpec& spec, uint32_t channels,
                       const Access& access) {
  const uint64_t size = uint64_t{spec.record_bytes()} * ((channels + 7) / 8);
  return size == 0 ||
         access.Whole(static_cast<int64_t>(spec.base), size, false) != nullptr;
}

}  // namespace

const int8_t* TableBytes::Of(const Tables& tables, const ConvertSpec& convert,
                             const Kernels& kernels) {
  const bool same = !bytes_.empty() && version_ == tables.version &&
                    convert_.offset == convert.offset &&
                    convert_.scale == convert.scale &&
                    convert_.shift == convert.shift;
  if (same) return bytes_.data();
  constexpr int32_t kSteps = 32, kSegments = kEnd / kSteps;
  std::vector<double> values(2 * kEnd + 1);
  for (int32_t half = 0; half < 2; ++half) {
    const auto& entries = tables.entries[static_cast<size_t>(half)];
    double* to = values.data() + half * kEnd;
    for (int32_t i = 0; i < kSegments; ++i) {
      const int32_t from = entries[static_cast<size_t>(i)];
      const int32_t rise = entries[static_cast<size_t>(i) + 1] - from;
      for (int32_t k = 0; k < kSteps; ++k) {
        to[i * kSteps + k] = from + ((rise * k + 16) >> 5);
      }
    }
  }
  values[2 * kEnd] = tables.entries[1][kSegments];
  bytes_.resize(values.size());
  kernels.convert(values.data(), values.size(), ConversionOf(convert),
                  bytes_.data());
  version_ = tables.version;
  convert_ = convert;
  return bytes_.data();
}

bool StagePlan::Make(const OutputSpec& spec, uint32_t channels,
                     const SumBounds& bounds, int32_t ow_offset,
                     const Tables& tables, TableBytes& table_bytes,
                     const Kernels& kernels, Access& access) {
  const ElementWiseSpec& ew = spec.ew;
  if (spec.precision != Precision::kInt8 ||
      (ew.table &&
       (ew.operand != Operand::kNone || ew.relu || !tables.complete())) ||
      !WholeCoefficients(spec.bs.memory, channels, access) ||
      !WholeCoefficients(spec.bn.memory, channels, access)) {
    return false;
  }
  const Coefficients bs =
      ReadCoefficients(spec.bs.memory, channels, 0x5020, access);
  const Coefficients bn =
      ReadCoefficients(spec.bn.memory, channels, 0x502c, access);
  kernels_ = &kernels;
  common_ = StageJob();
  uses_window_sums_ = spec.ow || ow_offset != 0;
  ow_.assign(channels, static_cast<uint32_t>(ow_offset));
  bias_.assign(channels, 0);
  bs_factor_.assign(channels, 1.0);
  bn_factor_.assign(channels, 1.0);
  bn_addend_.assign(channels, 0.0);

  // As doubles, and the largest of each for the proof.
  std::vector<int32_t> ow(channels), bias(channels), bn_addend(channels);
  std::vector<int32_t> bs_mul(channels, 1), bn_mul(channels, 1);
  for (size_t c = 0; c < channels; ++c) {
    if (spec.ow) ow[c] = spec.ow_from_memory ? bs.ow[c] : spec.ow_value;
    if (spec.bs.add) {
      bias[c] = spec.bs.add_from_memory ? bs.bias[c] : spec.bs.addend;
    }
    if (spec.bs.mul) {
      bs_mul[c] = spec.bs.mul_from_memory ? bs.mul[c] : spec.bs.factor;
    }
    if (spec.bn.mul) {
      bn_mul[c] = spec.bn.mul_from_memory ? bn.mul[c] : spec.bn.factor;
    }
    if (spec.bn.add) {
      bn_addend[c] = spec.bn.add_from_memory ? bn.bias[c] : spec.bn.addend;
    }
    ow_[c] += static_cast<uint32_t>(ow[c]);
    bias_[c] = static_cast<uint32_t>(bias[c]);
    bs_factor_[c] = ScaleOf(bs_mul[c], spec.bs.mul ? spec.bs.shift : 0).factor;
    bn_factor_[c] = ScaleOf(bn_mul[c], spec.bn.mul ? spec.bn.shift : 0).factor;
    bn_addend_[c] = bn_addend[c];
  }
  const bool from_memory = (spec.bs.add && spec.bs.add_from_memory) ||
                           (spec.bs.mul && spec.bs.mul_from_memory) ||
                           (spec.bn.add && spec.bn.add_from_memory) ||
                           (spec.bn.mul && spec.bn.mul_from_memory) || spec.ow;
  uniform_ = !from_memory && ew.operand == Operand::kNone;

  // The first sum is one of 32 bits.
  const uint64_t first =
      bounds.sum + Largest(ow) * bounds.window_sum + Largest(bias);
  if (first > INT32_MAX) return false;
  Proof proof(first);
  proof.Mul(Largest(bs_mul), spec.bs.mul ? spec.bs.shift : 0);
  proof.AtLeast(spec.bs.limit ? Magnitude(spec.bs.most) : 0);
  proof.Mul(Largest(bn_mul), spec.bn.mul ? spec.bn.shift : 0);
  proof.Add(Largest(bn_addend));
  proof.AtLeast(spec.bn.limit ? Magnitude(spec.bn.most) : 0);

  common_.bs_half = ScaleOf(1, spec.bs.mul ? spec.bs.shift : 0).half;
  common_.bn_half = ScaleOf(1, spec.bn.mul ? spec.bn.shift : 0).half;
  common_.bs = BoundsOf(spec.bs);
  common_.bn = BoundsOf(spec.bn);
  if (ew.relu) common_.ew.low = 0.0;
  table_ = nullptr;
  if (ew.operand != Operand::kNone) {
    const int32_t factor = ew.convert ? ew.factor : 1;
    const uint32_t shift = ew.convert ? ew.shift : 0;
    const int32_t offset = ew.convert ? ew.offset : 0;
    Proof operand(128 + Magnitude(offset));
    operand.Mul(Magnitude(factor), shift);
    if (!operand.holds()) return false;
    common_.operand = ScaleOf(factor, shift);
    common_.operand_offset = offset;
    switch (ew.operation) {
      case Operation::kAdd:
        common_.operation = StageJob::Operation::kAdd;
        proof.Add(operand.value());
        break;
      case Operation::kMul:
        common_.operation = StageJob::Operation::kMul;
        proof.Mul(operand.value(), 0);
        break;
      case Operation::kMax:
        common_.operation = StageJob::Operation::kMax;
        proof.AtLeast(operand.value());
        break;
      case Operation::kMin:
        common_.operation = StageJob::Operation::kMin;
        proof.AtLeast(operand.value());
        break;
    }
  } else if (ew.relu) {
    // The loops bound after an operand only: add nothing.
    return false;
  }
  if (ew.table) {
    proof.Add(TableBytes::kEnd);
    Proof below = proof, above = proof;
    below.Mul(Magnitude(spec.slopes.below), spec.slopes.below_shift);
    above.Mul(Magnitude(spec.slopes.above), spec.slopes.above_shift);
    if (!below.holds() || !above.holds()) return false;
    proof = Proof(std::max(below.value(), above.value()));
    proof.Add(32768);
    const auto slope = [](int16_t factor, uint32_t shift) {
      return std::ldexp(factor, -static_cast<int>(shift));
    };
    ends_.end = TableBytes::kEnd;
    ends_.below_edge = tables.entries[0].front();
    ends_.below_slope = slope(spec.slopes.below, spec.slopes.below_shift);
    ends_.above_edge = tables.entries[1].back();
    ends_.above_slope = slope(spec.slopes.above, spec.slopes.above_shift);
  }
  proof.Mul(spec.convert.scale, spec.convert.shift);
  if (!proof.holds()) return false;
  common_.convert = ConversionOf(spec.convert);
  if (ew.table) table_ = table_bytes.Of(tables, spec.convert, kernels);
  return access.ok();
}

void StagePlan::ForgetOw() {
  std::fill(ow_.begin(), ow_.end(), 0);
  uses_window_sums_ = false;
}

void StagePlan::Run(uint32_t s, StageJob job) {
  const size_t first = size_t{s} * kLanes;
  StageJob all = common_;
  all.count = job.count;
  all.sums = job.sums;
  all.values = job.values;
  all.window_sums = uses_window_sums_ ? job.window_sums : nullptr;
  all.ow = ow_.data() + first;
  all.bias = bias_.data() + first;
  all.bs_factor = bs_factor_.data() + first;
  all.bn_factor = bn_factor_.data() + first;
  all.bn_addend = bn_addend_.data() + first;
  all.operands = job.operands;
  all.out = job.out;
  table_ == nullptr ? kernels_->stages(all) : RunTable(all);
}

void StagePlan::RunTable(const StageJob& job) {
  const size_t count = job.count * kLanes;
  if (values_.size() < count) {
    values_.resize(count);
    places_.resize(count);
  }
  const bool beyond =
      kernels_->front(job, ends_, values_.data(), places_.data());
  const int8_t* const table = table_;
  const int32_t* const places = places_.data();
  int8_t* const out = job.out;
  for (size_t i = 0; i < count; ++i) out[i] = table[places[i]];
  if (beyond) kernels_->beyond(values_.data(), count, ends_, job.convert, out);
}

}  // namespace rknnd::rknpu::fast
