#include "driver/soft/plan/io_transfer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/values/half.h"
#include "driver/soft/plan/quantized_transfer.h"
#include "driver/soft/plan/transfer_walk.h"
#include "driver/soft/tiles/turn_floats.h"

namespace rknnd::soft {

using driver::TensorType;

void ToFloat(TensorType type, const std::byte* from, int64_t count, float* to) {
  auto n = static_cast<size_t>(count);
  switch (type) {
    case TensorType::kFloat16:
      if (reinterpret_cast<uintptr_t>(from) % alignof(base::Half) != 0) {
        for (int64_t i = 0; i < count; ++i) {
          to[i] = base::HalfToFloat(Load<base::Half>(from, i));
        }
        return;
      }
      base::HalfToFloat(std::span(reinterpret_cast<const base::Half*>(from), n),
                        std::span(to, n));
      return;
    case TensorType::kUint8:
      for (int64_t i = 0; i < count; ++i) {
        to[i] = static_cast<float>(Load<uint8_t>(from, i));
      }
      return;
    default:
      std::memcpy(to, from, n * sizeof(float));
  }
}

void FromFloat(TensorType type, const float* from, int64_t count,
               std::byte* to) {
  auto n = static_cast<size_t>(count);
  if (type != TensorType::kFloat16) {
    std::memcpy(to, from, n * sizeof(float));
  } else if (reinterpret_cast<uintptr_t>(to) % alignof(base::Half) != 0) {
    for (int64_t i = 0; i < count; ++i) {
      Store(to, i, base::FloatToHalf(from[i]));
    }
  } else {
    base::FloatToHalf(std::span(from, n),
                      std::span(reinterpret_cast<base::Half*>(to), n));
  }
}

namespace {

// Pixels of `pitch` floats <-> the planes of `channels` of them. The number of
// channels is a constant where an image has it.
template <int kChannels>
void Split(const float* pixels, int64_t count, int64_t pitch, int64_t channels,
           float* planes, int64_t plane) {
  if constexpr (kChannels != 0) {
    for (int64_t p = 0; p < count; ++p) {
      for (int c = 0; c < kChannels; ++c) {
        planes[c * plane + p] = pixels[p * kChannels + c];
      }
    }
    return;
  }
  // Few channels at a time, so that their cache lines stay.
  for (int64_t first = 0; first < channels; first += 16) {
    int64_t last = std::min<int64_t>(first + 16, channels);
    for (int64_t p = 0; p < count; ++p) {
      for (int64_t c = first; c < last; ++c) {
        planes[c * plane + p] = pixels[p * pitch + c];
      }
    }
  }
}

void SplitPixels(const float* pixels, int64_t count, int64_t pitch,
                 int64_t channels, float* planes, int64_t plane) {
  if (pitch == 3 && channels == 3) {
    return Split<3>(pixels, count, pitch, channels, planes, plane);
  }
  if (pitch == 4 && channels == 4) {
    return Split<4>(pixels, count, pitch, channels, planes, plane);
  }
  Split<0>(pixels, count, pitch, channels, planes, plane);
}

void JoinPixels(const float* planes, int64_t plane, int64_t count,
                int64_t pitch, int64_t channels, float* pixels) {
  for (int64_t first = 0; first < channels; first += 16) {
    int64_t last = std::min<int64_t>(first + 16, channels);
    for (int64_t p = 0; p < count; ++p) {
      for (int64_t c = first; c < last; ++c) {
        pixels[p * pitch + c] = planes[c * plane + p];
      }
    }
  }
  for (int64_t p = 0; channels < pitch && p < count; ++p) {
    for (int64_t c = channels; c < pitch; ++c) pixels[p * pitch + c] = 0.0F;
  }
}

// Consumers rely on zeros in the channels that fill up the last block.
void ClearPadding(const ClientLayout& layout, const Inside& inside,
                  float* tensor) {
  int64_t used = inside.channels % inside.block;
  if (inside.block == 1 || used == 0) return;
  for (int64_t n = 0; n < layout.batch; ++n) {
    float* pixel = tensor + inside.At(n, inside.channels - used, 0);
    for (int64_t p = 0; p < inside.pixels; ++p, pixel += inside.block) {
      std::fill(pixel + used, pixel + inside.block, 0.0F);
    }
  }
}

// In place: runs of one channel, or pixels of `pitch` floats.
void Normalise(const PortConversion& conversion, int64_t channel, int64_t there,
               int64_t pitch, int64_t count, float* pixels) {
  for (int64_t c = 0; c < there; ++c) {
    const auto at = static_cast<size_t>(channel + c);
    const float mean = conversion.mean[at];
    const float deviation = conversion.deviation[at];
    for (int64_t p = 0; p < count; ++p) {
      float& x = pixels[p * pitch + c];
      x = (x - mean) / deviation;
    }
  }
}

void ReadFloats(const ClientLayout& layout, const std::byte* client,
                const TensorSpec& spec, float* tensor, float* pixels,
                const PortConversion& conversion, Part part) {
  const Inside inside(spec, layout);
  const bool normalises = conversion.normalises() && !layout.as_is;
  const auto size = static_cast<int64_t>(driver::ElementSize(layout.type));
  ForEachRun(
      layout, part,
      [&](int64_t n, int64_t channel, int64_t there, int64_t first,
          int64_t count, int64_t at) {
        const std::byte* from = client + at * size;
        float* to = tensor + inside.At(n, channel, first);
        if (inside.block == 1 && layout.pitch == 1) {
          ToFloat(layout.type, from, count, to);
          if (normalises) Normalise(conversion, channel, 1, 1, count, to);
          return;
        }
        ToFloat(layout.type, from, count * layout.pitch, pixels);
        if (normalises) {
          Normalise(conversion, channel, there, layout.pitch, count, pixels);
        }
        if (inside.block == 1) {
          SplitPixels(pixels, count, layout.pitch, there, to, inside.pixels);
          return;
        }
        for (int64_t c = 0; c < there;) {
          // Up to the end of a block of the tensor.
          int64_t length =
              std::min(there - c, inside.block - (channel + c) % inside.block);
          float* target = tensor + inside.At(n, channel + c, first);
          for (int64_t p = 0; p < count; ++p) {
            const float* pixel = pixels + p * layout.pitch + c;
            for (int64_t i = 0; i < length; ++i) {
              target[p * inside.block + i] = pixel[i];
            }
          }
          c += length;
        }
      });
  if (part.index == 0) ClearPadding(layout, inside, tensor);
}

// Blocks of channels to planes of floats, a block at a time: so each cache line
// of the tensor is read once.
void WritePlanes(const ClientLayout& layout, float* client,
                 const Inside& inside, const float* tensor, Part part) {
  ClientLayout blocks = layout;
  blocks.group = inside.block;
  blocks.plane = layout.plane * inside.block;
  ForEachRun(blocks, part,
             [&](int64_t n, int64_t channel, int64_t there, int64_t first,
                 int64_t count, int64_t at) {
               TurnFloats(tensor + inside.At(n, channel, first), inside.block,
                          count, there, client + at, layout.plane);
             });
}

void WriteFloats(const ClientLayout& layout, std::byte* client,
                 const TensorSpec& spec, const float* tensor, float* pixels,
                 Part part) {
  const Inside inside(spec, layout);
  if (inside.block > 1 && layout.pitch == 1 && layout.group == 1 &&
      layout.type == TensorType::kFloat32 &&
      reinterpret_cast<uintptr_t>(client) % alignof(float) == 0) {
    WritePlanes(layout, reinterpret_cast<float*>(client), inside, tensor, part);
    return;
  }
  const auto size = static_cast<int64_t>(driver::ElementSize(layout.type));
  ForEachRun(
      layout, part,
      [&](int64_t n, int64_t channel, int64_t there, int64_t first,
          int64_t count, int64_t at) {
        std::byte* to = client + at * size;
        const float* from = tensor + inside.At(n, channel, first);
        if (inside.block == 1 && layout.pitch == 1) {
          FromFloat(layout.type, from, count, to);
          return;
        }
        if (inside.block == 1) {
          JoinPixels(from, inside.pixels, count, layout.pitch, there, pixels);
        } else {
          for (int64_t c = 0; c < there;) {
            int64_t length = std::min(
                there - c, inside.block - (channel + c) % inside.block);
            const float* source = tensor + inside.At(n, channel + c, first);
            for (int64_t p = 0; p < count; ++p) {
              float* pixel = pixels + p * layout.pitch + c;
              for (int64_t i = 0; i < length; ++i) {
                pixel[i] = source[p * inside.block + i];
              }
            }
            c += length;
          }
          for (int64_t p = 0; there < layout.pitch && p < count; ++p) {
            std::fill(pixels + p * layout.pitch + there,
                      pixels + (p + 1) * layout.pitch, 0.0F);
          }
        }
        FromFloat(layout.type, pixels, count * layout.pitch, to);
      });
}

// Integers keep their type.
template <class T>
void ReadIntegers(const ClientLayout& layout, const std::byte* client,
                  const TensorSpec& spec, T* tensor, Part part) {
  const Inside inside(spec, layout);
  ForEachRun(layout, part,
             [&](int64_t n, int64_t channel, int64_t there, int64_t first,
                 int64_t count, int64_t at) {
               for (int64_t c = 0; c < there; ++c) {
                 T* to = tensor + inside.At(n, channel + c, first);
                 for (int64_t p = 0; p < count; ++p) {
                   to[p] = Load<T>(client, at + p * layout.pitch + c);
                 }
               }
             });
}

template <class T>
void WriteIntegers(const ClientLayout& layout, std::byte* client,
                   const TensorSpec& spec, const T* tensor, Part part) {
  const Inside inside(spec, layout);
  ForEachRun(layout, part,
             [&](int64_t n, int64_t channel, int64_t there, int64_t first,
                 int64_t count, int64_t at) {
               for (int64_t c = 0; c < there; ++c) {
                 const T* from = tensor + inside.At(n, channel + c, first);
                 for (int64_t p = 0; p < count; ++p) {
                   Store(client, at + p * layout.pitch + c, from[p]);
                 }
               }
               // Channels that fill up the last block.
               for (int64_t c = there; c < layout.pitch; ++c) {
                 for (int64_t p = 0; p < count; ++p) {
                   Store(client, at + p * layout.pitch + c, T{});
                 }
               }
             });
}

template <class F>
void WithIntegerType(DataType type, F&& f) {
  switch (type) {
    case DataType::kInt8:
      return f(int8_t{});
    case DataType::kUint8:
    case DataType::kBool:
      return f(uint8_t{});
    case DataType::kInt16:
      return f(int16_t{});
    case DataType::kUint16:
      return f(uint16_t{});
    case DataType::kInt32:
      return f(int32_t{});
    case DataType::kUint32:
      return f(uint32_t{});
    case DataType::kInt64:
      return f(int64_t{});
    case DataType::kUint64:
      return f(uint64_t{});
    case DataType::kFloat32:
    case DataType::kFloat64:  // behind a Cast (import/graph_import.cc)
      return;
  }
}

}  // namespace

size_t TransferScratch(const Shape& shape) {
  int64_t channels = shape.size() == 4 ? shape[1] : 1;
  return sizeof(float) *
         static_cast<size_t>(std::max({kTransferBatch, channels, kMaxGroup}));
}

void ReadInput(const ClientLayout& layout, const std::byte* client,
               const TensorSpec& inside, std::byte* tensor, std::byte* scratch,
               const PortConversion& conversion, Part part) {
  if (conversion.quantization.has_value()) {
    ReadQuantizedPort(layout, client, inside, tensor,
                      reinterpret_cast<float*>(scratch), conversion, part);
    return;
  }
  if (inside.type == DataType::kFloat32) {
    ReadFloats(layout, client, inside, reinterpret_cast<float*>(tensor),
               reinterpret_cast<float*>(scratch), conversion, part);
    return;
  }
  WithIntegerType(inside.type, [&]<class T>(T) {
    ReadIntegers(layout, client, inside, reinterpret_cast<T*>(tensor), part);
  });
}

void WriteOutput(const ClientLayout& layout, std::byte* client,
                 const TensorSpec& inside, const std::byte* tensor,
                 std::byte* scratch, const PortConversion& conversion,
                 Part part) {
  if (conversion.quantization.has_value()) {
    WriteQuantizedPort(layout, client, inside, tensor,
                       reinterpret_cast<float*>(scratch),
                       *conversion.quantization, part);
    return;
  }
  if (inside.type == DataType::kFloat32) {
    WriteFloats(layout, client, inside, reinterpret_cast<const float*>(tensor),
                reinterpret_cast<float*>(scratch), part);
    return;
  }
  WithIntegerType(inside.type, [&]<class T>(T) {
    WriteIntegers(layout, client, inside, reinterpret_cast<const T*>(tensor),
                  part);
  });
}

}  // namespace rknnd::soft
