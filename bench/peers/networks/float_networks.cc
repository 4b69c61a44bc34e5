// Convolutional networks of floats: a segmenter, a transcriber of music and a
// classifier.

#include <cmath>

#include "bench/peers/networks/networks.h"

namespace rknnd::bench {

// --- UNet --------------------------------------------------------------------

namespace {

Tensor TwoConvs(NetworkBuilder& b, const Tensor& x, int64_t channels) {
  return b.Conv(b.Conv(x, channels, 3, 1, Activation::kRelu), channels, 3, 1,
                Activation::kRelu);
}

}  // namespace

// Of half the published width.
void BuildUNet(NetworkBuilder& b) {
  Tensor x = TwoConvs(b, b.Image({1, 3, 256, 256}, 4), 32);
  std::vector<Tensor> kept;
  for (const int64_t channels : {64, 128, 256, 512}) {
    kept.push_back(x);
    x = TwoConvs(b, b.MaxPool(x, 2, 2, 0), channels);
  }
  for (; !kept.empty(); kept.pop_back()) {
    const int64_t channels = kept.back().channels();
    x = TwoConvs(b, b.Concat({kept.back(), b.ConvUp(x, channels)}), channels);
  }
  b.Output(b.Conv(x, 2, 1, 1, Activation::kNone));
}

// --- basic_pitch -------------------------------------------------------------

namespace {

// A channel for each harmonic: the spectrogram, moved along its pitches.
Tensor StackHarmonics(NetworkBuilder& b, const Tensor& x) {
  constexpr double kBinsPerOctave = 36;
  const int64_t bins = x.dims[3];
  std::vector<Tensor> moved;
  for (const double harmonic : {0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}) {
    const int64_t by = std::lround(kBinsPerOctave * std::log2(harmonic));
    Tensor part = x;
    if (by != 0) {
      const int64_t begin = std::max<int64_t>(by, 0);
      const int64_t end = std::min(bins, bins + by);
      part = b.Node("Slice",
                    {x.name, b.Int64s({begin}), b.Int64s({end}), b.Int64s({3})},
                    {1, 1, x.dims[2], end - begin});
      part = b.Node("Pad",
                    {part.name,
                     b.Int64s({0, 0, 0, std::max<int64_t>(-by, 0), 0, 0, 0,
                               std::max<int64_t>(by, 0)}),
                     b.Scalar(0)},
                    x.dims);
      b.Text("mode", "constant");
    }
    part.sample = x.sample;
    Random random(static_cast<uint64_t>(moved.size()));
    part.sample.values = random.Values(part.sample.values.size(), 1);
    moved.push_back(part);
  }
  return b.Concat(moved);
}

}  // namespace

// Three outputs: contours, notes, onsets. A third of the pitches for the
// latter.
void BuildBasicPitch(NetworkBuilder& b) {
  const Tensor x = StackHarmonics(b, b.Image({1, 1, 172, 264}, 4));
  const Tensor wide =
      b.Conv(x, ConvShape{8, 3, 39, 1, 1, 1, 19}, Activation::kRelu);
  const Tensor contours = b.Conv(wide, 1, 5, 1, Activation::kSigmoid);
  const Tensor inner =
      b.Conv(contours, ConvShape{32, 7, 7, 1, 3, 3, 2}, Activation::kRelu);
  const Tensor notes =
      b.Conv(inner, ConvShape{1, 7, 3, 1, 1, 3, 1}, Activation::kSigmoid);
  const Tensor starts =
      b.Conv(x, ConvShape{32, 5, 5, 1, 3, 2, 1}, Activation::kRelu);
  const Tensor onsets =
      b.Conv(b.Concat({notes, starts}), 1, 3, 1, Activation::kSigmoid);
  b.Output(contours);
  b.Output(notes);
  b.Output(onsets);
}

// --- EfficientNet ------------------------------------------------------------

namespace {

Tensor SqueezeAndExcite(NetworkBuilder& b, const Tensor& x, int64_t channels,
                        Activation inner = Activation::kSwish,
                        Activation last = Activation::kSigmoid) {
  Tensor gate = b.MeanOfAll(x);
  gate = b.Conv(gate, channels, 1, 1, inner);
  gate = b.Conv(gate, x.channels(), 1, 1, last);
  return b.Mul(x, gate);
}

}  // namespace

void BuildEfficientNetB0(NetworkBuilder& b) {
  constexpr struct {
    int64_t expansion, channels;
    int repeats;
    int64_t stride, kernel;
  } kStages[] = {{1, 16, 1, 1, 3}, {6, 24, 2, 2, 3},  {6, 40, 2, 2, 5},
                 {6, 80, 3, 2, 3}, {6, 112, 3, 1, 5}, {6, 192, 4, 2, 5},
                 {6, 320, 1, 1, 3}};
  Tensor x = b.Conv(b.Image({1, 3, 224, 224}, 2), 32, 3, 2, Activation::kSwish);
  for (const auto& stage : kStages) {
    for (int i = 0; i < stage.repeats; ++i) {
      const int64_t stride = i == 0 ? stage.stride : 1;
      const int64_t inner = x.channels() * stage.expansion;
      Tensor y = x;
      if (stage.expansion != 1) y = b.Conv(y, inner, 1, 1, Activation::kSwish);
      y = b.Conv(y, inner, stage.kernel, stride, Activation::kSwish, inner);
      y = SqueezeAndExcite(b, y, x.channels() / 4);
      y = b.Conv(y, stage.channels, 1, 1, Activation::kNone);
      x = stride == 1 && x.channels() == stage.channels ? b.Add(y, x) : y;
    }
  }
  x = b.Conv(x, 1280, 1, 1, Activation::kSwish);
  b.Output(b.Classify(x, 1000));
}

// The large one.
void BuildMobileNetV3(NetworkBuilder& b) {
  constexpr Activation kRe = Activation::kRelu, kHs = Activation::kHardSwish;
  constexpr struct {
    int64_t kernel, inner, channels;
    bool excites;
    Activation activation;
    int64_t stride;
  } kBlocks[] = {{3, 16, 16, false, kRe, 1},  {3, 64, 24, false, kRe, 2},
                 {3, 72, 24, false, kRe, 1},  {5, 72, 40, true, kRe, 2},
                 {5, 120, 40, true, kRe, 1},  {5, 120, 40, true, kRe, 1},
                 {3, 240, 80, false, kHs, 2}, {3, 200, 80, false, kHs, 1},
                 {3, 184, 80, false, kHs, 1}, {3, 184, 80, false, kHs, 1},
                 {3, 480, 112, true, kHs, 1}, {3, 672, 112, true, kHs, 1},
                 {5, 672, 160, true, kHs, 2}, {5, 960, 160, true, kHs, 1},
                 {5, 960, 160, true, kHs, 1}};
  Tensor x = b.Conv(b.Image({1, 3, 224, 224}, 2), 16, 3, 2, kHs);
  for (const auto& block : kBlocks) {
    Tensor y = x;
    if (block.inner != x.channels()) {
      y = b.Conv(y, block.inner, 1, 1, block.activation);
    }
    y = b.Conv(y, block.inner, block.kernel, block.stride, block.activation,
               block.inner);
    if (block.excites) {
      y = SqueezeAndExcite(b, y, block.inner / 4, kRe,
                           Activation::kHardSigmoid);
    }
    y = b.Conv(y, block.channels, 1, 1, Activation::kNone);
    x = block.stride == 1 && x.channels() == block.channels ? b.Add(y, x) : y;
  }
  x = b.Conv(x, 960, 1, 1, kHs);
  b.Output(b.Classify(x, 1000));
}

}  // namespace rknnd::bench
