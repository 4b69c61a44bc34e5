// Products of two 8-bit matrices at every level of CPU that this machine has,
// against the definition in 64-bit integers, compared to the bit.

#include "driver/soft/kernels/product/integer_product.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/quantization.h"
#include "driver/soft/kernels/testing/guarded.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using testing::Guarded;

int32_t ProductByteAt(DataType type, const std::byte* data, int64_t at) {
  return type == DataType::kInt8 ? int32_t{As<int8_t>(data)[at]}
                                 : int32_t{As<uint8_t>(data)[at]};
}

int32_t ZeroAt(DataType type, ZeroPoints zeros, int64_t at) {
  return zeros.data == nullptr
             ? 0
             : ProductByteAt(type, zeros.data, zeros.many ? at : 0);
}

void ComputeProduct(const IntegerProductSpec& spec, const std::byte* a,
                    ZeroPoints az, const std::byte* b, ZeroPoints bz,
                    std::byte* output) {
  for (int64_t i = 0; i < spec.m; ++i) {
    for (int64_t j = 0; j < spec.n; ++j) {
      int64_t sum = 0;
      for (int64_t l = 0; l < spec.k; ++l) {
        const int64_t at = spec.transposed ? j * spec.k + l : l * spec.n + j;
        sum += int64_t{ProductByteAt(spec.a, a, i * spec.k + l) -
                       ZeroAt(spec.a, az, i)} *
               (ProductByteAt(spec.b, b, at) - ZeroAt(spec.b, bz, j));
      }
      const int64_t at = i * spec.n + j;
      if (spec.output == DataType::kInt32) {
        As<int32_t>(output)[at] = static_cast<int32_t>(sum);
        continue;
      }
      const auto column = static_cast<size_t>(j);
      float v = static_cast<float>(static_cast<int32_t>(sum));
      v += spec.bias.empty() ? 0.0F : spec.bias[column];
      v *= spec.scale[spec.scale.size() == 1 ? 0 : column];
      switch (spec.epilogue.activation) {
        case Activation::kRelu:
          if (v < 0.0F) v *= 0.0F;
          break;
        case Activation::kLeakyRelu:
          if (v < 0.0F) v *= spec.epilogue.alpha;
          break;
        case Activation::kClip:
          v = std::clamp(v, spec.epilogue.alpha, spec.epilogue.beta);
          break;
        default:
          break;
      }
      if (spec.output == DataType::kFloat32) {
        As<float>(output)[at] = v;
      } else if (spec.output == DataType::kInt8) {
        As<int8_t>(output)[at] = Quantize<int8_t>(v, spec.output_zero);
      } else {
        As<uint8_t>(output)[at] = Quantize<uint8_t>(v, spec.output_zero);
      }
    }
  }
}

// Zero points are random; `middle`: b's is in the middle of its range, which
// tiles take by themselves.
void Expect(const IntegerProductSpec& spec, bool many_a, bool many_b,
            bool has_zeros, bool middle, std::mt19937& random) {
  const auto fill = [&](const Guarded& memory) {
    for (size_t i = 0; i < memory.size(); ++i) {
      memory.data()[i] = static_cast<std::byte>(random());
    }
  };
  const Guarded a(static_cast<size_t>(spec.m * spec.k));
  const Guarded b(static_cast<size_t>(spec.k * spec.n));
  const Guarded a_zeros(many_a ? static_cast<size_t>(spec.m) : 1);
  const Guarded b_zeros(many_b ? static_cast<size_t>(spec.n) : 1);
  for (const Guarded* memory : {&a, &b, &a_zeros, &b_zeros}) fill(*memory);
  if (middle) {
    b_zeros.data()[0] =
        static_cast<std::byte>(spec.b == DataType::kUint8 ? 128 : 0);
  }
  const ZeroPoints az = {has_zeros ? a_zeros.data() : nullptr, many_a};
  const ZeroPoints bz = {has_zeros ? b_zeros.data() : nullptr, many_b};
  const auto bytes = static_cast<size_t>(spec.m * spec.n) * SizeOf(spec.output);
  std::vector<std::byte> wanted(bytes);
  ComputeProduct(spec, a.data(), az, b.data(), bz, wanted.data());
  for (const CpuLevel level : UsableCpuLevels()) {
    SCOPED_TRACE(absl::StrCat(spec.m, "x", spec.k, " by ", spec.n, ", ",
                              CpuLevelName(level)));
    const IntegerProduct product(spec, level);
    std::vector<std::byte> room(product.scratch_size() + 64, std::byte{0x7F});
    auto* const scratch = reinterpret_cast<std::byte*>(
        (reinterpret_cast<uintptr_t>(room.data()) + 63) / 64 * 64);
    const Guarded output(bytes);
    product.Pack(b.data(), scratch);
    product.Multiply(a.data(), az, bz, output.data(), scratch);
    ASSERT_EQ(std::memcmp(output.data(), wanted.data(), bytes), 0);
    // Nothing behind its scratch was written.
    for (const std::byte* at = scratch + product.scratch_size();
         at != room.data() + room.size(); ++at) {
      ASSERT_EQ(*at, std::byte{0x7F});
    }
  }
}

TEST(IntegerProductTest, GivesTheBitsOfTheDefinition) {
  std::mt19937 random(1);
  const auto number = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const auto chance = [&] { return number(0, 1) == 1; };
  const auto byte = [&] {
    return chance() ? DataType::kInt8 : DataType::kUint8;
  };
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    IntegerProductSpec spec;
    spec.m = chance() ? number(1, 9) : number(1, 150);
    spec.n = number(1, 75);
    spec.k = number(1, 90);
    spec.transposed = chance();
    spec.a = byte();
    spec.b = byte();
    const DataType outputs[] = {DataType::kInt32, DataType::kFloat32, byte(),
                                byte()};
    spec.output = outputs[number(0, 3)];
    if (spec.output != DataType::kInt32) {
      spec.scale.assign(chance() ? 1 : static_cast<size_t>(spec.n), 0.0F);
      for (float& scale : spec.scale) {
        scale = static_cast<float>(number(1, 1000)) * 2e-6F;
      }
      for (int64_t n = 0; n < spec.n && i % 3 == 0; ++n) {
        spec.bias.push_back(static_cast<float>(number(-90000, 90000)) / 8);
      }
      const Activation activations[] = {Activation::kNone, Activation::kRelu,
                                        Activation::kLeakyRelu,
                                        Activation::kClip};
      spec.epilogue.activation = activations[number(0, 3)];
      spec.epilogue.alpha =
          spec.epilogue.activation == Activation::kClip ? -20.5F : 0.1015625F;
      spec.epilogue.beta = 30.25F;
      if (spec.output == DataType::kUint8) {
        spec.output_zero = static_cast<int32_t>(number(0, 255));
      } else if (spec.output == DataType::kInt8) {
        spec.output_zero = static_cast<int32_t>(number(-128, 127));
      }
    }
    const bool many = number(0, 3) == 0;
    Expect(spec, many && chance(), many && chance(), number(0, 4) > 0, chance(),
           random);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace rknnd::soft
