#include "driver/soft/plan/reorder.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace rknnd::soft {
namespace {

// The channels of one block, `channels` of them there: planes of `pixels`
// elements each <-> pixels of `block` elements each.
template <class T>
void Interleave(const T* planes, int64_t pixels, int channels, int block,
                T* out) {
  for (int64_t p = 0; p < pixels; ++p) {
    T* pixel = out + p * block;
    for (int c = 0; c < channels; ++c) pixel[c] = planes[c * pixels + p];
    for (int c = channels; c < block; ++c) pixel[c] = T{};
  }
}

template <class T>
void Deinterleave(const T* in, int64_t pixels, int channels, int block,
                  T* planes) {
  for (int64_t p = 0; p < pixels; ++p) {
    const T* pixel = in + p * block;
    for (int c = 0; c < channels; ++c) planes[c * pixels + p] = pixel[c];
  }
}

#if defined(__SSE2__)

// Whole blocks of floats, four by four in registers.
void Interleave(const float* planes, int64_t pixels, int channels, int block,
                float* out) {
  int64_t whole = channels == block && block % 4 == 0 ? pixels / 4 * 4 : 0;
  for (int64_t p = 0; p < whole; p += 4) {
    for (int c = 0; c < block; c += 4) {
      const float* from = planes + c * pixels + p;
      __m128 a = _mm_loadu_ps(from);
      __m128 b = _mm_loadu_ps(from + pixels);
      __m128 d = _mm_loadu_ps(from + 2 * pixels);
      __m128 e = _mm_loadu_ps(from + 3 * pixels);
      _MM_TRANSPOSE4_PS(a, b, d, e);
      float* to = out + p * block + c;
      _mm_storeu_ps(to, a);
      _mm_storeu_ps(to + block, b);
      _mm_storeu_ps(to + 2 * block, d);
      _mm_storeu_ps(to + 3 * block, e);
    }
  }
  for (int64_t p = whole; p < pixels; ++p) {
    float* pixel = out + p * block;
    for (int c = 0; c < channels; ++c) pixel[c] = planes[c * pixels + p];
    for (int c = channels; c < block; ++c) pixel[c] = 0.0F;
  }
}

void Deinterleave(const float* in, int64_t pixels, int channels, int block,
                  float* planes) {
  int quads = block % 4 == 0 ? channels / 4 * 4 : 0;
  int64_t whole = pixels / 4 * 4;
  for (int64_t p = 0; p < whole; p += 4) {
    for (int c = 0; c < quads; c += 4) {
      const float* from = in + p * block + c;
      __m128 a = _mm_loadu_ps(from);
      __m128 b = _mm_loadu_ps(from + block);
      __m128 d = _mm_loadu_ps(from + 2 * block);
      __m128 e = _mm_loadu_ps(from + 3 * block);
      _MM_TRANSPOSE4_PS(a, b, d, e);
      float* to = planes + c * pixels + p;
      _mm_storeu_ps(to, a);
      _mm_storeu_ps(to + pixels, b);
      _mm_storeu_ps(to + 2 * pixels, d);
      _mm_storeu_ps(to + 3 * pixels, e);
    }
  }
  for (int64_t p = 0; p < pixels; ++p) {
    const float* pixel = in + p * block;
    for (int c = p < whole ? quads : 0; c < channels; ++c) {
      planes[c * pixels + p] = pixel[c];
    }
  }
}

#endif

// Blocks of `from` channels into blocks of `to`, run by run.
template <class T>
void Reblock(const T* in, int64_t batch, int64_t channels, int64_t pixels,
             int from, int to, T* out) {
  const int64_t from_blocks = (channels + from - 1) / from;
  const int64_t to_blocks = (channels + to - 1) / to;
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t c = 0; c < to_blocks * to;) {
      int64_t run = to - c % to;
      const T* source = nullptr;  // null: padding
      if (c < channels) {
        run = std::min({run, channels - c, from - c % from});
        source = in + (n * from_blocks + c / from) * pixels * from + c % from;
      }
      T* target = out + (n * to_blocks + c / to) * pixels * to + c % to;
      for (int64_t p = 0; p < pixels; ++p, target += to) {
        if (source == nullptr) {
          std::fill_n(target, run, T{});
        } else {
          std::memcpy(target, source + p * from,
                      static_cast<size_t>(run) * sizeof(T));
        }
      }
      c += run;
    }
  }
}

// A plane of bytes turned: pixels of `channels` bytes <-> planes.
void Turn(const uint8_t* in, int64_t rows, int64_t columns, uint8_t* out) {
  // Squares that stay in the first-level cache on both sides.
  constexpr int64_t kSide = 32;
  for (int64_t r = 0; r < rows; r += kSide) {
    const int64_t r_end = std::min(r + kSide, rows);
    for (int64_t c = 0; c < columns; c += kSide) {
      const int64_t c_end = std::min(c + kSide, columns);
      for (int64_t i = r; i < r_end; ++i) {
        for (int64_t j = c; j < c_end; ++j) {
          out[j * rows + i] = in[i * columns + j];
        }
      }
    }
  }
}

}  // namespace

Reorder::Reorder(const TensorSpec& from, const TensorSpec& to)
    : to_blocked_(to.placement.block > 1), element_size_(SizeOf(from.type)) {
  block_ = to_blocked_ ? to.placement.block : from.placement.block;
  if (to_blocked_ && from.placement.block > 1) {
    block_ = from.placement.block;
    other_block_ = to.placement.block;
  }
  const Shape& shape = from.shape;
  if (!shape.empty()) batch_ = shape[0];
  if (shape.size() > 1) channels_ = shape[1];
  for (size_t i = 2; i < shape.size(); ++i) pixels_ *= shape[i];
}

void Reorder::Run(const std::byte* from, std::byte* to) const {
  int64_t blocks = (channels_ + block_ - 1) / block_;
  auto run = [&]<class T>(const T* source, T* target) {
    if (other_block_ > 1) {
      Reblock(source, batch_, channels_, pixels_, block_, other_block_, target);
      return;
    }
    const int64_t plane = pixels_ * block_;
    for (int64_t n = 0; n < batch_; ++n) {
      for (int64_t b = 0; b < blocks; ++b) {
        int there =
            static_cast<int>(std::min<int64_t>(block_, channels_ - b * block_));
        int64_t dense = (n * channels_ + b * block_) * pixels_;
        int64_t blocked = (n * blocks + b) * plane;
        if (to_blocked_) {
          Interleave(source + dense, pixels_, there, block_, target + blocked);
        } else {
          Deinterleave(source + blocked, pixels_, there, block_,
                       target + dense);
        }
      }
    }
  };
  switch (element_size_) {
    case 1:
      if (other_block_ == 1 && block_ == channels_) {
        const auto* source = reinterpret_cast<const uint8_t*>(from);
        auto* target = reinterpret_cast<uint8_t*>(to);
        for (int64_t n = 0; n < batch_; ++n) {
          const int64_t at = n * channels_ * pixels_;
          Turn(source + at, to_blocked_ ? channels_ : pixels_,
               to_blocked_ ? pixels_ : channels_, target + at);
        }
        return;
      }
      return run(reinterpret_cast<const uint8_t*>(from),
                 reinterpret_cast<uint8_t*>(to));
    case 2:
      return run(reinterpret_cast<const uint16_t*>(from),
                 reinterpret_cast<uint16_t*>(to));
    case 8:
      return run(reinterpret_cast<const uint64_t*>(from),
                 reinterpret_cast<uint64_t*>(to));
    default:
      return run(reinterpret_cast<const float*>(from),
                 reinterpret_cast<float*>(to));
  }
}

absl::Status ReorderKernel::Run(std::span<const std::byte* const> inputs,
                                std::span<std::byte* const> outputs,
                                std::byte*) const {
  reorder_.Run(inputs[0], outputs[0]);
  return absl::OkStatus();
}

}  // namespace rknnd::soft
