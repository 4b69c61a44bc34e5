// Networks over sequences of 80 values a step, as of speech: two layers of LSTM
// or GRU with 256 cells, forwards and backwards, as PyTorch's exporter writes
// them, and convolutions over time with ever wider gaps.

#include <cmath>

#include "bench/peers/networks/networks.h"

namespace rknnd::bench {
namespace {

constexpr int64_t kSteps = 100, kValues = 80, kCells = 256, kClasses = 40;

// Both directions side by side.
Tensor Recurrent(NetworkBuilder& b, const Tensor& x, const char* type,
                 int64_t gates) {
  const int64_t rows = gates * kCells, values = x.dims[2];
  const double deviation = 1 / std::sqrt(static_cast<double>(kCells));
  const Tensor y = b.Node(type,
                          {x.name, b.Weights({2, rows, values}, deviation),
                           b.Weights({2, rows, kCells}, deviation),
                           b.Weights({2, 2 * rows}, deviation)},
                          {kSteps, 2, 1, kCells});
  b.Int("hidden_size", kCells).Text("direction", "bidirectional");
  if (gates == 3) b.Int("linear_before_reset", 1);
  const Tensor turned = b.Node("Transpose", {y.name}, {kSteps, 1, 2, kCells});
  b.Ints("perm", {0, 2, 1, 3});
  return b.Node("Reshape", {turned.name, b.Int64s({kSteps, 1, 2 * kCells})},
                {kSteps, 1, 2 * kCells});
}

void TwoLayers(NetworkBuilder& b, const char* type, int64_t gates) {
  Tensor x = b.Input({kSteps, 1, kValues});
  for (int layer = 0; layer < 2; ++layer) x = Recurrent(b, x, type, gates);
  b.Output(
      b.Node("MatMul",
             {x.name, b.Weights({2 * kCells, kClasses}, 1 / std::sqrt(512.0))},
             {kSteps, 1, kClasses}));
}

}  // namespace

void BuildLstm(NetworkBuilder& b) { TwoLayers(b, "LSTM", 4); }
void BuildGru(NetworkBuilder& b) { TwoLayers(b, "GRU", 3); }

void BuildTcn(NetworkBuilder& b) {
  constexpr int64_t kChannels = 128, kLength = 400;
  const auto convolve = [&](const Tensor& x, int64_t channels, int64_t kernel,
                            int64_t gap) {
    const int64_t from = x.dims[1];
    const Tensor y =
        b.Node("Conv",
               {x.name,
                b.Weights({channels, from, 1, kernel},
                          1 / std::sqrt(static_cast<double>(from * kernel))),
                b.Weights({channels}, 0.1)},
               {1, channels, 1, kLength});
    // What comes later is not looked at.
    b.Ints("dilations", {1, gap}).Ints("kernel_shape", {1, kernel});
    b.Ints("pads", {0, gap * (kernel - 1), 0, 0}).Ints("strides", {1, 1});
    return y;
  };
  Tensor x = convolve(b.Input({1, kValues, 1, kLength}), kChannels, 1, 1);
  for (int64_t gap = 1; gap <= 64; gap *= 2) {
    Tensor y = x;
    for (int i = 0; i < 2; ++i) {
      y = convolve(y, kChannels, 3, gap);
      y = b.Node("Relu", {y.name}, y.dims);
    }
    x = b.Node("Add", {x.name, y.name}, x.dims);
  }
  b.Output(convolve(x, kClasses, 1, 1));
}

}  // namespace rknnd::bench
