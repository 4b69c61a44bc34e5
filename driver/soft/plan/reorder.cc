#include "driver/soft/plan/reorder.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace rknnd::soft {
namespace {

// Some pixels of one block, `channels` of its channels there: elements of
// planes that are `plane` elements apart <-> pixels of `block` elements each.
template <class T>
void Interleave(const T* planes, int64_t plane, int64_t pixels, int channels,
                int block, T* out) {
  for (int64_t p = 0; p < pixels; ++p) {
    T* pixel = out + p * block;
    for (int c = 0; c < channels; ++c) pixel[c] = planes[c * plane + p];
    for (int c = channels; c < block; ++c) pixel[c] = T{};
  }
}

template <class T>
void Deinterleave(const T* in, int64_t plane, int64_t pixels, int channels,
                  int block, T* planes) {
  for (int64_t p = 0; p < pixels; ++p) {
    const T* pixel = in + p * block;
    for (int c = 0; c < channels; ++c) planes[c * plane + p] = pixel[c];
  }
}

#if defined(__SSE2__)

// Whole blocks of floats, four by four in registers.
void Interleave(const float* planes, int64_t plane, int64_t pixels,
                int channels, int block, float* out) {
  int64_t whole = channels == block && block % 4 == 0 ? pixels / 4 * 4 : 0;
  for (int64_t p = 0; p < whole; p += 4) {
    for (int c = 0; c < block; c += 4) {
      const float* from = planes + c * plane + p;
      __m128 a = _mm_loadu_ps(from);
      __m128 b = _mm_loadu_ps(from + plane);
      __m128 d = _mm_loadu_ps(from + 2 * plane);
      __m128 e = _mm_loadu_ps(from + 3 * plane);
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
    for (int c = 0; c < channels; ++c) pixel[c] = planes[c * plane + p];
    for (int c = channels; c < block; ++c) pixel[c] = 0.0F;
  }
}

void Deinterleave(const float* in, int64_t plane, int64_t pixels, int channels,
                  int block, float* planes) {
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
      float* to = planes + c * plane + p;
      _mm_storeu_ps(to, a);
      _mm_storeu_ps(to + plane, b);
      _mm_storeu_ps(to + 2 * plane, d);
      _mm_storeu_ps(to + 3 * plane, e);
    }
  }
  for (int64_t p = 0; p < pixels; ++p) {
    const float* pixel = in + p * block;
    for (int c = p < whole ? quads : 0; c < channels; ++c) {
      planes[c * plane + p] = pixel[c];
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

// Some rows and columns of a plane of bytes turned: pixels of `channels` bytes
// <-> planes.
void Turn(const uint8_t* in, Range row, Range column, int64_t rows,
          int64_t columns, uint8_t* out) {
  // Squares that stay in the first-level cache on both sides.
  constexpr int64_t kSide = 32;
  for (int64_t r = row.begin; r < row.end; r += kSide) {
    const int64_t r_end = std::min(r + kSide, row.end);
    for (int64_t c = column.begin; c < column.end; c += kSide) {
      const int64_t c_end = std::min(c + kSide, column.end);
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

int64_t Reorder::pieces() const {
  if (other_block_ > 1) return 1;
  return batch_ * ((channels_ + block_ - 1) / block_) * pixels_;
}

void Reorder::Run(const std::byte* from, std::byte* to, Part part) const {
  const int64_t blocks = (channels_ + block_ - 1) / block_;
  // Pixels of blocks, four of which are turned at once.
  const Range share = ShareOf(part, batch_ * blocks * pixels_, 4);
  // f(image, block, pixels of it) for each block of the share.
  const auto for_each_block = [&](auto f) {
    for (int64_t at = share.begin; at < share.end;) {
      const int64_t block = at / pixels_;
      const int64_t end = std::min((block + 1) * pixels_, share.end);
      f(block / blocks, block % blocks,
        Range{at - block * pixels_, end - block * pixels_});
      at = end;
    }
  };
  auto run = [&]<class T>(const T* source, T* target) {
    if (other_block_ > 1) {
      Reblock(source, batch_, channels_, pixels_, block_, other_block_, target);
      return;
    }
    for_each_block([&](int64_t n, int64_t b, Range pixels) {
      int there =
          static_cast<int>(std::min<int64_t>(block_, channels_ - b * block_));
      const int64_t dense =
          (n * channels_ + b * block_) * pixels_ + pixels.begin;
      const int64_t blocked =
          ((n * blocks + b) * pixels_ + pixels.begin) * block_;
      if (to_blocked_) {
        Interleave(source + dense, pixels_, pixels.size(), there, block_,
                   target + blocked);
      } else {
        Deinterleave(source + blocked, pixels_, pixels.size(), there, block_,
                     target + dense);
      }
    });
  };
  switch (element_size_) {
    case 1:
      if (other_block_ == 1 && block_ == channels_) {
        const auto* source = reinterpret_cast<const uint8_t*>(from);
        auto* target = reinterpret_cast<uint8_t*>(to);
        for_each_block([&](int64_t n, int64_t, Range pixels) {
          const int64_t at = n * channels_ * pixels_;
          const Range all{0, channels_};
          if (to_blocked_) {
            Turn(source + at, all, pixels, channels_, pixels_, target + at);
          } else {
            Turn(source + at, pixels, all, pixels_, channels_, target + at);
          }
        });
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

absl::Status ReorderKernel::RunPart(Part part,
                                    std::span<const std::byte* const> inputs,
                                    std::span<std::byte* const> outputs,
                                    std::byte*) const {
  reorder_.Run(inputs[0], outputs[0], part);
  return absl::OkStatus();
}

}  // namespace rknnd::soft
