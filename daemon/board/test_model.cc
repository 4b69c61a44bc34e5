// What a device answers is not trusted: it is compared.

#include "daemon/board/test_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

namespace rknnd::board {
namespace {

constexpr uint32_t kChannels = 8;
constexpr uint32_t kSide = 8;

int Weight(uint32_t out, uint32_t in) {
  return static_cast<int>((out * 3 + in * 5) % 7) - 3;
}

int Bias(uint32_t out) { return static_cast<int>(out % 5) - 2; }

int Input(uint32_t round, uint32_t channel, uint32_t y, uint32_t x) {
  return static_cast<int>((round * 5 + channel * 7 + y * 3 + x) % 11) - 5;
}

int Output(uint32_t round, uint32_t channel, uint32_t y, uint32_t x) {
  int sum = Bias(channel);
  for (uint32_t in = 0; in < kChannels; ++in) {
    sum += Weight(channel, in) * Input(round, in, y, x);
  }
  return std::max(sum, 0);
}

// Calls `each(index, channel, y, x)` for all numbers of a tensor.
template <class Each>
void ForEach(const driver::TensorAttr& attribute, Each each) {
  const bool nhwc = attribute.layout == driver::TensorLayout::kNhwc;
  size_t index = 0;
  for (uint32_t a = 0; a < kSide; ++a) {
    for (uint32_t b = 0; b < kSide; ++b) {
      for (uint32_t c = 0; c < kSide; ++c) {
        static_assert(kChannels == kSide);
        nhwc ? each(index, c, a, b) : each(index, a, b, c);
        ++index;
      }
    }
  }
}

// The few words of protobuf that the model needs.
class Message {
 public:
  Message& Number(uint32_t field, uint64_t value) {
    Varint(field << 3);
    Varint(value);
    return *this;
  }
  Message& Bytes(uint32_t field, std::string_view bytes) {
    Varint(field << 3 | 2);
    Varint(bytes.size());
    text_ += bytes;
    return *this;
  }
  Message& Part(uint32_t field, const Message& message) {
    return Bytes(field, message.text_);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
      text_ += static_cast<char>(value | 0x80);
    }
    text_ += static_cast<char>(value);
  }

  std::string text_;
};

// Fields are those of onnx.proto; 1 is FLOAT, 7 an attribute of INTS.
Message Value(const char* name) {
  Message shape;
  for (const uint32_t dim : {1U, kChannels, kSide, kSide}) {
    shape.Part(1, Message().Number(1, dim));
  }
  return Message().Bytes(1, name).Part(
      2, Message().Part(1, Message().Number(1, 1).Part(2, shape)));
}

template <class Number>
Message Floats(const char* name, const std::vector<uint32_t>& dims,
               Number number) {
  Message tensor;
  uint32_t count = 1;
  for (const uint32_t dim : dims) {
    tensor.Number(1, dim);
    count *= dim;
  }
  std::string bytes(count * sizeof(float), '\0');
  for (uint32_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(number(i));
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return tensor.Number(2, 1).Bytes(8, name).Bytes(9, bytes);
}

}  // namespace

std::vector<std::byte> TestModel() {
  const Message kernel = Message()
                             .Bytes(1, "kernel_shape")
                             .Number(8, 1)
                             .Number(8, 1)
                             .Number(20, 7);
  const Message convolution = Message()
                                  .Bytes(1, "input")
                                  .Bytes(1, "weight")
                                  .Bytes(1, "bias")
                                  .Bytes(2, "sum")
                                  .Bytes(3, "convolution")
                                  .Bytes(4, "Conv")
                                  .Part(5, kernel);
  const Message relu = Message()
                           .Bytes(1, "sum")
                           .Bytes(2, "output")
                           .Bytes(3, "relu")
                           .Bytes(4, "Relu");
  const Message graph =
      Message()
          .Part(1, convolution)
          .Part(1, relu)
          .Bytes(2, "rknnd self-test")
          .Part(5, Floats("weight", {kChannels, kChannels, 1, 1},
                          [](uint32_t i) {
                            return Weight(i / kChannels, i % kChannels);
                          }))
          .Part(5, Floats("bias", {kChannels}, Bias))
          .Part(11, Value("input"))
          .Part(12, Value("output"));
  const Message model = Message()
                            .Number(1, 8)
                            .Bytes(2, "rknnd")
                            .Part(7, graph)
                            .Part(8, Message().Bytes(1, "").Number(2, 13));
  std::vector<std::byte> bytes(model.text().size());
  std::memcpy(bytes.data(), model.text().data(), bytes.size());
  return bytes;
}

void FillTestInput(const driver::TensorAttr& attribute, uint32_t round,
                   std::span<std::byte> input) {
  ForEach(attribute, [&](size_t index, uint32_t c, uint32_t y, uint32_t x) {
    const auto value = static_cast<float>(Input(round, c, y, x));
    if ((index + 1) * sizeof value > input.size()) return;
    std::memcpy(input.data() + index * sizeof value, &value, sizeof value);
  });
}

size_t CountWrong(const driver::TensorAttr& attribute, uint32_t round,
                  std::span<const std::byte> output) {
  size_t wrong = 0;
  ForEach(attribute, [&](size_t index, uint32_t c, uint32_t y, uint32_t x) {
    float value = NAN;
    if ((index + 1) * sizeof value <= output.size()) {
      std::memcpy(&value, output.data() + index * sizeof value, sizeof value);
    }
    // Not "!=": that is what a NaN is to everything.
    if (!(value == static_cast<float>(Output(round, c, y, x)))) ++wrong;
  });
  return wrong;
}

}  // namespace rknnd::board
