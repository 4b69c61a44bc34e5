// Scale and zero point of a quantised tensor: real = scale * (q - zero). What
// all quantised operators read them with, and how they round.
//
// Thread: the loading thread; the inline functions any.

#ifndef DRIVER_SOFT_KERNELS_QUANTIZATION_H_
#define DRIVER_SOFT_KERNELS_QUANTIZATION_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// One entry, or one for each index along an axis.
struct Quantized {
  DataType type = DataType::kUint8;
  std::vector<float> scale;
  std::vector<int32_t> zero;

  [[nodiscard]] bool per_tensor() const { return scale.size() == 1; }
};

// The scale given as input `scale` and the zero point given as the next one
// (0 where it is left out) of a tensor of `type`. FAILED_PRECONDITION where
// they are not known at load time.
absl::StatusOr<Quantized> ReadQuantized(const NodeView& node, size_t scale,
                                        DataType type);
// Likewise; an error unless there is one of each.
absl::StatusOr<Quantized> ReadQuantizedTensor(const NodeView& node,
                                              size_t scale, DataType type);

// That the types of value and zero point are those of a quantised tensor,
// which is 8-bit.
absl::Status CheckQuantized(const NodeView& node, size_t i);

// That the scales or biases that `node` computes from its own are numbers.
absl::Status CheckFinite(const NodeView& node,
                         const std::vector<float>& numbers);

// The type that the zero point given as input `i` says, uint8 without one.
DataType TypeOfZero(const NodeView& node, size_t i);

// Rounds to the nearest, ties to even, and saturates; a NaN gives the lowest.
// `zero` is a value of T.
template <class T>
inline T Quantize(float real_steps, int32_t zero) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds
  const auto low = static_cast<float>(std::numeric_limits<T>::lowest() - zero);
  const auto high = static_cast<float>(std::numeric_limits<T>::max() - zero);
  float v = real_steps > low ? real_steps : low;
  v = v < high ? v : high;
  const float rounded = (v + kRound) - kRound;
  return static_cast<T>(static_cast<int32_t>(rounded) + zero);
}

// An 8-bit tensor mapped entry by entry: `table` has the answer for each byte.
// In any placement.
absl::StatusOr<std::unique_ptr<Kernel>> MakeLookup(
    const KernelRequest& request, const std::vector<uint8_t>& table);

// table[byte] = function(real value), quantised as `to`.
template <class F>
std::vector<uint8_t> MakeTable(const Quantized& from, const Quantized& to,
                               F&& function) {
  std::vector<uint8_t> table(256);
  for (int32_t byte = 0; byte < 256; ++byte) {
    const int32_t q =
        from.type == DataType::kInt8 ? static_cast<int8_t>(byte) : byte;
    const float real = static_cast<float>(q - from.zero[0]) * from.scale[0];
    const float steps = function(real) / to.scale[0];
    table[static_cast<size_t>(byte)] =
        to.type == DataType::kInt8
            ? static_cast<uint8_t>(Quantize<int8_t>(steps, to.zero[0]))
            : Quantize<uint8_t>(steps, to.zero[0]);
  }
  return table;
}

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_QUANTIZATION_H_
