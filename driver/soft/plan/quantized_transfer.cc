#include "driver/soft/plan/quantized_transfer.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "driver/soft/kernels/quantization.h"
#include "driver/soft/plan/transfer_walk.h"

namespace rknnd::soft {
namespace {

using driver::TensorType;

// Between unsigned inside and signed outside.
uint8_t FlipOf(const TensorSpec& spec) {
  return spec.type == DataType::kUint8 ? 0x80 : 0;
}

// `count` floats, one behind the other, to the bytes of a tensor of this type.
template <class T>
void QuantizeRun(const float* from, int64_t count, const Quantization& as,
                 uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<uint8_t>(Quantize<T>(from[i] / as.scale, as.zero));
  }
}

void QuantizeRun(DataType type, const float* from, int64_t count,
                 const Quantization& as, uint8_t* to) {
  type == DataType::kInt8 ? QuantizeRun<int8_t>(from, count, as, to)
                          : QuantizeRun<uint8_t>(from, count, as, to);
}

// Calls f(channel, offset inside, step inside, pixels, offset in the run): one
// channel of a run of pixels at a time.
template <class F>
void ForEachChannel(const Inside& inside, int64_t n, int64_t channel,
                    int64_t there, int64_t first, F&& f) {
  const int64_t step = inside.block == 1 ? 1 : inside.block;
  for (int64_t c = 0; c < there; ++c) {
    f(c, inside.At(n, channel + c, first), step);
  }
}

}  // namespace

void ReadQuantizedPort(const ClientLayout& layout, const std::byte* client,
                       const TensorSpec& spec, std::byte* tensor, float* pixels,
                       const PortConversion& conversion, Part part) {
  const Inside inside(spec, layout);
  const auto size = static_cast<int64_t>(driver::ElementSize(layout.type));
  auto* bytes = reinterpret_cast<uint8_t*>(tensor);
  const uint8_t flip = FlipOf(spec);
  const bool image = layout.type == TensorType::kUint8;
  const bool raw = layout.type == TensorType::kInt8;
  const bool one_table = conversion.table.size() == 256;
  const uint8_t* table = conversion.table.data();
  const Quantization& as = *conversion.quantization;
  const bool normalises = conversion.normalises() && !layout.as_is;
  ForEachRun(
      layout, part,
      [&](int64_t n, int64_t channel, int64_t there, int64_t first,
          int64_t count, int64_t at) {
        const std::byte* from = client + at * size;
        // Pixels that lie alike on both sides are one long run.
        const bool alike = there == layout.pitch && inside.channels == there &&
                           (there == 1 || inside.block == there);
        if (alike && (raw || (image && one_table))) {
          const auto* in = reinterpret_cast<const uint8_t*>(from);
          uint8_t* to = bytes + inside.At(n, channel, first);
          if (raw) {
            for (int64_t i = 0; i < count * there; ++i) to[i] = in[i] ^ flip;
          } else {
            for (int64_t i = 0; i < count * there; ++i) to[i] = table[in[i]];
          }
          return;
        }
        if (!raw && !image) {
          ToFloat(layout.type, from, count * layout.pitch, pixels);
          if (alike && !normalises) {
            QuantizeRun(spec.type, pixels, count * there, as,
                        bytes + inside.At(n, channel, first));
            return;
          }
        }
        ForEachChannel(
            inside, n, channel, there, first,
            [&](int64_t c, int64_t target, int64_t step) {
              uint8_t* to = bytes + target;
              const auto* in = reinterpret_cast<const uint8_t*>(from) + c;
              if (raw) {
                for (int64_t p = 0; p < count; ++p) {
                  to[p * step] = in[p * layout.pitch] ^ flip;
                }
                return;
              }
              if (image) {
                const uint8_t* answers =
                    one_table ? table : table + (channel + c) * 256;
                for (int64_t p = 0; p < count; ++p) {
                  to[p * step] = answers[in[p * layout.pitch]];
                }
                return;
              }
              // In two steps, of which compilers make vectors of the first.
              constexpr int64_t kRun = 256;
              std::array<float, kRun> run;
              std::array<uint8_t, kRun> answers;
              for (int64_t p = 0; p < count; p += kRun) {
                const int64_t length = std::min(kRun, count - p);
                for (int64_t i = 0; i < length; ++i) {
                  const float x = pixels[(p + i) * layout.pitch + c];
                  run[static_cast<size_t>(i)] =
                      normalises ? conversion.Normalise(x, channel + c) : x;
                }
                QuantizeRun(spec.type, run.data(), length, as, answers.data());
                for (int64_t i = 0; i < length; ++i) {
                  to[(p + i) * step] = answers[static_cast<size_t>(i)];
                }
              }
            });
      });
}

void WriteQuantizedPort(const ClientLayout& layout, std::byte* client,
                        const TensorSpec& spec, const std::byte* tensor,
                        float* pixels, const Quantization& quantization,
                        Part part) {
  const Inside inside(spec, layout);
  const auto size = static_cast<int64_t>(driver::ElementSize(layout.type));
  const auto* bytes = reinterpret_cast<const uint8_t*>(tensor);
  const uint8_t flip = FlipOf(spec);
  const bool raw = layout.type == TensorType::kInt8;
  const int32_t zero = quantization.zero;
  const float scale = quantization.scale;
  ForEachRun(layout, part,
             [&](int64_t n, int64_t channel, int64_t there, int64_t first,
                 int64_t count, int64_t at) {
               std::byte* to = client + at * size;
               auto* out = reinterpret_cast<uint8_t*>(to);
               ForEachChannel(
                   inside, n, channel, there, first,
                   [&](int64_t c, int64_t source, int64_t step) {
                     const uint8_t* from = bytes + source;
                     if (raw) {
                       for (int64_t p = 0; p < count; ++p) {
                         out[p * layout.pitch + c] = from[p * step] ^ flip;
                       }
                       return;
                     }
                     for (int64_t p = 0; p < count; ++p) {
                       const uint8_t byte = from[p * step];
                       const int32_t q = spec.type == DataType::kInt8
                                             ? static_cast<int8_t>(byte)
                                             : byte;
                       pixels[p * layout.pitch + c] =
                           static_cast<float>(q - zero) * scale;
                     }
                   });
               // Channels that only fill up a block.
               for (int64_t p = 0; there < layout.pitch && p < count; ++p) {
                 for (int64_t c = there; c < layout.pitch; ++c) {
                   if (raw) {
                     out[p * layout.pitch + c] = 0;
                   } else {
                     pixels[p * layout.pitch + c] = 0.0F;
                   }
                 }
               }
               if (!raw)
                 FromFloat(layout.type, pixels, count * layout.pitch, to);
             });
}

}  // namespace rknnd::soft
