// A small feature map that goes through a random network while it is written
// down, so that its weights and its scales of eight bits suit the values that
// come to them, as those of a trained and calibrated network do.

#ifndef BENCH_PEERS_NETWORKS_SAMPLE_H_
#define BENCH_PEERS_NETWORKS_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace rknnd::bench {

// The same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_((seed + 1) * 0x9E3779B97F4A7C15U) {}

  // Uniform, with mean 0 and so large a standard deviation.
  float Next(double deviation);
  std::vector<float> Values(size_t count, double deviation);

 private:
  uint64_t state_;
};

struct Sample {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<float> values;  // of channel, row and column

  [[nodiscard]] int64_t area() const { return height * width; }
};

struct ConvShape {
  int64_t channels = 0;  // of the output
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;  // on both sides
  int64_t groups = 1;
};

Sample MakeSample(int64_t channels, int64_t height, int64_t width);
// `weights` of output channel, input channel of the group, row, column.
Sample Convolve(const Sample& in, const ConvShape& shape,
                const std::vector<float>& weights);
// By 2x2 with strides of 2; `weights` of input channel, output channel, row,
// column.
Sample ConvolveUp(const Sample& in, int64_t channels,
                  const std::vector<float>& weights);
Sample MaxPool(const Sample& in, int64_t kernel, int64_t stride, int64_t pad);
Sample MeanOfAll(const Sample& in);
Sample RepeatTwice(const Sample& in);
Sample Concat(const std::vector<Sample>& in);
Sample TakeChannels(const Sample& in, int64_t first, int64_t count);
Sample Map(const Sample& in, const std::function<float(float)>& function);
// `b` is of the same size, or one value a channel.
Sample Combine(const Sample& a, const Sample& b,
               const std::function<float(float, float)>& function);

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_NETWORKS_SAMPLE_H_
