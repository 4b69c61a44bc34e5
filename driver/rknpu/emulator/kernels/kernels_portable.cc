// For any CPU: plain loops.

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"

namespace rknnd::rknpu::fast {
namespace {

struct Portable {
  static constexpr Form kForm = Form::kWide;
  static constexpr size_t kBlock = 16, kVectors = 1, kPixels = 1;
  struct Sum {
    int32_t of[16];
  };
  struct Weights {
    int16_t of[32];
  };
  struct Values {
    int16_t of[2];
  };

  static Sum Zero() { return {}; }
  static Weights LoadWeights(const std::byte* at, size_t) {
    Weights weights;
    std::memcpy(&weights, at, sizeof(weights));
    return weights;
  }
  static Values Broadcast(const std::byte* at) {
    Values values;
    std::memcpy(&values, at, sizeof(values));
    return values;
  }
  static Sum Dot(Sum sum, const Weights& weights, Values values) {
    for (size_t i = 0; i < 16; ++i) {
      sum.of[i] += weights.of[2 * i] * values.of[0] +
                   weights.of[2 * i + 1] * values.of[1];
    }
    return sum;
  }
  static void Store(const Sum& sum, int32_t* to) {
    std::memcpy(to, &sum, sizeof(sum));
  }
};

}  // namespace

const Kernels kPortableKernels = Loops<Portable>::All("portable");

}  // namespace rknnd::rknpu::fast
