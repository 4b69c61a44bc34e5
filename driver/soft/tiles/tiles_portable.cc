// Products of bytes as the compiler makes them of plain loops, for CPUs that no
// other file here is for. Slow, and what the tests hold the others against.

#include "driver/soft/tiles/levels.h"
#include "driver/soft/tiles/row_loops.h"
#include "driver/soft/tiles/tile_loops.h"

namespace rknnd::soft {
namespace {

struct Portable {
  static constexpr size_t kLanes = 4, kSums = 1, kGroups = 1, kPixels = 4;
  static constexpr TileForm kForm = TileForm::kWide;
  using Sum [[gnu::vector_size(16)]] = int32_t;
  struct Weights {
    int8_t at[kLanes][kWeightCell];
  };
  struct Values {
    int16_t at[kWeightCell];
  };

  static Sum Zero() { return Sum{}; }
  static Weights LoadWeights(const std::byte* at, size_t) {
    Weights weights;
    std::memcpy(&weights, at, sizeof weights);
    return weights;
  }
  static Values Broadcast(const std::byte* at) {
    Values values;
    std::memcpy(&values, at, sizeof values);
    return values;
  }
  static Sum Dot(Sum sum, const Weights& weights, const Values& values) {
    // Sums wrap, as those of the vector instructions do.
    using Unsigned [[gnu::vector_size(16)]] = uint32_t;
    Unsigned result = reinterpret_cast<Unsigned>(sum);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      for (size_t i = 0; i < kWeightCell; ++i) {
        result[lane] +=
            static_cast<uint32_t>(int32_t{weights.at[lane][i]} * values.at[i]);
      }
    }
    return reinterpret_cast<Sum>(result);
  }
  template <class Ints>
  static Ints Join(const Sum* sums) {
    return reinterpret_cast<Ints>(sums[0]);
  }
  template <class Ints>
  static Ints Widen(const std::byte* at) {
    int8_t bytes[kLanes];
    std::memcpy(bytes, at, sizeof bytes);
    return Ints{bytes[0], bytes[1], bytes[2], bytes[3]};
  }
  template <class Bytes, class Ints>
  static Bytes Narrow(const Ints& ints) {
    return __builtin_convertvector(ints, Bytes);
  }
};

struct FloatPortable {
  static constexpr size_t kLanes = 4, kSums = 1, kGroups = 1, kPixels = 4;
  static constexpr size_t kRowOutputs = 4, kRowSums = 8;
  static constexpr TileForm kForm = TileForm::kFloat;
  using Sum [[gnu::vector_size(16)]] = float;
  using Weights = Sum;
  using Values = float;

  static Sum Zero() { return Sum{}; }
  static Weights LoadWeights(const std::byte* at, size_t) {
    Weights weights;
    std::memcpy(&weights, at, sizeof weights);
    return weights;
  }
  static Values Broadcast(const std::byte* at) {
    Values value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  static Sum Dot(Sum sum, Weights weights, Values value) {
    return sum + weights * value;
  }
  template <class Floats>
  static Floats Join(const Sum* sums) {
    return sums[0];
  }
};

}  // namespace

constexpr ByteKernels kBytesPortable = TileLoops<Portable>::OfBytes("portable");
constexpr FloatKernels kFloatsPortable =
    FloatKernelsOf<FloatPortable>("portable");

}  // namespace rknnd::soft
