#include "driver/soft/plan/layer_dump.h"

#include <cstring>
#include <span>
#include <vector>

#include "driver/soft/plan/io_port.h"

namespace rknnd::soft {
namespace {

using driver::TensorType;

// Out of (N, C/b, rest, b) into (N, C, rest).
std::vector<std::byte> Unblocked(const TensorSpec& spec,
                                 const std::byte* data) {
  const size_t size = SizeOf(spec.type);
  std::vector<std::byte> dense(static_cast<size_t>(spec.elements()) * size);
  const auto block = static_cast<size_t>(spec.placement.block);
  const auto batch = static_cast<size_t>(spec.shape[0]);
  const auto channels = static_cast<size_t>(spec.shape[1]);
  size_t rest = 1;
  for (size_t axis = 2; axis < spec.shape.size(); ++axis) {
    rest *= static_cast<size_t>(spec.shape[axis]);
  }
  const size_t blocks = (channels + block - 1) / block;
  std::byte* to = dense.data();
  for (size_t n = 0; n < batch; ++n) {
    for (size_t c = 0; c < channels; ++c) {
      const std::byte* from =
          data + ((n * blocks + c / block) * rest * block + c % block) * size;
      for (size_t i = 0; i < rest; ++i) {
        std::memcpy(to, from, size);
        to += size;
        from += block * size;
      }
    }
  }
  return dense;
}

template <class Byte>
std::vector<float> Real(std::span<const std::byte> bytes,
                        const Quantization& scale) {
  std::vector<float> values;
  values.reserve(bytes.size());
  for (const std::byte byte : bytes) {
    const auto number = static_cast<Byte>(byte);
    values.push_back(scale.scale * static_cast<float>(number - scale.zero));
  }
  return values;
}

}  // namespace

absl::Status DumpTensor(const DumpedOperand& dumped, uint32_t layer,
                        const std::byte* data, driver::LayerSink& sink) {
  const TensorSpec& spec = dumped.spec;
  driver::LayerTensor tensor;
  tensor.layer = layer;
  tensor.name = dumped.name;
  // The bytes of uint64, which has no type outside, go as int64's.
  tensor.type = PlainType(spec.type).value_or(TensorType::kInt64);
  tensor.shape = {spec.shape.data(), spec.shape.size()};
  tensor.bytes = {data,
                  static_cast<size_t>(spec.elements()) * SizeOf(spec.type)};
  std::vector<std::byte> dense;
  if (spec.placement.block > 1 && spec.shape.size() > 1) {
    dense = Unblocked(spec, data);
    tensor.bytes = dense;
  }
  std::vector<float> real;
  if (spec.type == DataType::kFloat64) {
    real.resize(tensor.bytes.size() / sizeof(double));
    for (size_t i = 0; i < real.size(); ++i) {
      double number = 0;
      std::memcpy(&number, tensor.bytes.data() + i * sizeof number,
                  sizeof number);
      real[i] = static_cast<float>(number);
    }
  } else if (!dumped.quantization.has_value() || SizeOf(spec.type) != 1) {
    return sink.OnLayer(tensor);
  } else {
    real = spec.type == DataType::kInt8
               ? Real<int8_t>(tensor.bytes, *dumped.quantization)
               : Real<uint8_t>(tensor.bytes, *dumped.quantization);
  }
  tensor.type = TensorType::kFloat32;
  tensor.bytes = std::as_bytes(std::span(real));
  return sink.OnLayer(tensor);
}

}  // namespace rknnd::soft
