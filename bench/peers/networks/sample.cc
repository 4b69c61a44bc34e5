// See sample.h.

#include "bench/peers/networks/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rknnd::bench {
namespace {

size_t Index(int64_t number) { return static_cast<size_t>(number); }

int64_t Outputs(int64_t in, int64_t kernel, int64_t stride, int64_t pad) {
  return std::max<int64_t>(1, (in + 2 * pad - kernel) / stride + 1);
}

// To `out`, what one tap of the kernel adds to a channel.
void AddTap(const Sample& in, int64_t channel, const ConvShape& shape,
            int64_t row, int64_t column, float weight, int64_t to,
            Sample& out) {
  for (int64_t y = 0; y < out.height; ++y) {
    const int64_t from_y = y * shape.stride_h - shape.pad_h + row;
    if (from_y < 0 || from_y >= in.height) continue;
    const float* const from =
        &in.values[Index((channel * in.height + from_y) * in.width)];
    float* const sums = &out.values[Index((to * out.height + y) * out.width)];
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t from_x = x * shape.stride_w - shape.pad_w + column;
      if (from_x >= 0 && from_x < in.width) sums[x] += weight * from[from_x];
    }
  }
}

}  // namespace

float Random::Next(double deviation) {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  const auto bits = static_cast<int32_t>((state_ * 2685821657736338717U) >> 40);
  constexpr double kHalf = 1 << 23;
  return static_cast<float>((bits - kHalf) / kHalf * deviation *
                            std::sqrt(3.0));
}

std::vector<float> Random::Values(size_t count, double deviation) {
  std::vector<float> values(count);
  for (float& value : values) value = Next(deviation);
  return values;
}

Sample MakeSample(int64_t channels, int64_t height, int64_t width) {
  return {channels, height, width,
          std::vector<float>(Index(channels * height * width))};
}

Sample Convolve(const Sample& in, const ConvShape& shape,
                const std::vector<float>& weights) {
  Sample out = MakeSample(
      shape.channels,
      Outputs(in.height, shape.kernel_h, shape.stride_h, shape.pad_h),
      Outputs(in.width, shape.kernel_w, shape.stride_w, shape.pad_w));
  const int64_t inner = in.channels / shape.groups;
  const int64_t outer = shape.channels / shape.groups;
  size_t at = 0;
  for (int64_t to = 0; to < shape.channels; ++to) {
    for (int64_t from = 0; from < inner; ++from) {
      const int64_t channel = to / outer * inner + from;
      for (int64_t row = 0; row < shape.kernel_h; ++row) {
        for (int64_t column = 0; column < shape.kernel_w; ++column) {
          AddTap(in, channel, shape, row, column, weights[at++], to, out);
        }
      }
    }
  }
  return out;
}

Sample ConvolveUp(const Sample& in, int64_t channels,
                  const std::vector<float>& weights) {
  Sample out = MakeSample(channels, 2 * in.height, 2 * in.width);
  size_t at = 0;
  for (int64_t from = 0; from < in.channels; ++from) {
    for (int64_t to = 0; to < channels; ++to) {
      for (int64_t tap = 0; tap < 4; ++tap) {
        const float weight = weights[at++];
        for (int64_t i = 0; i < in.area(); ++i) {
          const int64_t y = i / in.width * 2 + tap / 2;
          const int64_t x = i % in.width * 2 + tap % 2;
          out.values[Index((to * out.height + y) * out.width + x)] +=
              weight * in.values[Index(from * in.area() + i)];
        }
      }
    }
  }
  return out;
}

Sample MaxPool(const Sample& in, int64_t kernel, int64_t stride, int64_t pad) {
  Sample out = MakeSample(in.channels, Outputs(in.height, kernel, stride, pad),
                          Outputs(in.width, kernel, stride, pad));
  for (int64_t i = 0; i < out.channels * out.area(); ++i) {
    const int64_t channel = i / out.area();
    const int64_t top = i % out.area() / out.width * stride - pad;
    const int64_t left = i % out.width * stride - pad;
    float most = std::numeric_limits<float>::lowest();
    for (int64_t y = std::max<int64_t>(top, 0);
         y < std::min(top + kernel, in.height); ++y) {
      for (int64_t x = std::max<int64_t>(left, 0);
           x < std::min(left + kernel, in.width); ++x) {
        most = std::max(
            most, in.values[Index((channel * in.height + y) * in.width + x)]);
      }
    }
    out.values[Index(i)] = most;
  }
  return out;
}

Sample MeanOfAll(const Sample& in) {
  Sample out = MakeSample(in.channels, 1, 1);
  for (int64_t i = 0; i < in.channels * in.area(); ++i) {
    out.values[Index(i / in.area())] +=
        in.values[Index(i)] / static_cast<float>(in.area());
  }
  return out;
}

Sample RepeatTwice(const Sample& in) {
  Sample out = MakeSample(in.channels, 2 * in.height, 2 * in.width);
  for (int64_t i = 0; i < out.channels * out.area(); ++i) {
    const int64_t y = i / out.width / 2, x = i % out.width / 2;
    out.values[Index(i)] = in.values[Index(y * in.width + x)];
  }
  return out;
}

Sample Concat(const std::vector<Sample>& in) {
  Sample out = {0, in[0].height, in[0].width, {}};
  for (const Sample& part : in) {
    out.channels += part.channels;
    out.values.insert(out.values.end(), part.values.begin(), part.values.end());
  }
  return out;
}

Sample TakeChannels(const Sample& in, int64_t first, int64_t count) {
  const auto begin = in.values.begin() + first * in.area();
  return {count, in.height, in.width, {begin, begin + count * in.area()}};
}

Sample Map(const Sample& in, const std::function<float(float)>& function) {
  Sample out = in;
  for (float& value : out.values) value = function(value);
  return out;
}

Sample Combine(const Sample& a, const Sample& b,
               const std::function<float(float, float)>& function) {
  Sample out = a;
  const bool wide = b.values.size() == a.values.size();
  for (int64_t i = 0; i < a.channels * a.area(); ++i) {
    out.values[Index(i)] =
        function(a.values[Index(i)], b.values[Index(wide ? i : i / a.area())]);
  }
  return out;
}

}  // namespace rknnd::bench
