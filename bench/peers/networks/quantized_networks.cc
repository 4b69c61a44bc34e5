// Networks of eight bits: two classifiers and a detector.

#include <algorithm>

#include "bench/peers/networks/networks.h"

namespace rknnd::bench {

// --- classifiers -------------------------------------------------------------

void BuildMobileNetV2(NetworkBuilder& b) {
  constexpr struct {
    int64_t expansion, channels;
    int repeats;
    int64_t stride;
  } kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                 {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Tensor x = b.Conv(b.Image({1, 3, 224, 224}, 2), 32, 3, 2, Activation::kRelu6);
  for (const auto& stage : kStages) {
    for (int i = 0; i < stage.repeats; ++i) {
      const int64_t stride = i == 0 ? stage.stride : 1;
      const int64_t inner = x.channels() * stage.expansion;
      Tensor y = x;
      if (stage.expansion != 1) y = b.Conv(y, inner, 1, 1, Activation::kRelu6);
      y = b.Conv(y, inner, 3, stride, Activation::kRelu6, inner);
      y = b.Conv(y, stage.channels, 1, 1, Activation::kNone);
      x = stride == 1 && x.channels() == stage.channels ? b.Add(x, y) : y;
    }
  }
  x = b.Conv(x, 1280, 1, 1, Activation::kRelu6);
  b.Output(b.Classify(x, 1000));
}

void BuildResNet18(NetworkBuilder& b) {
  Tensor x = b.Conv(b.Image({1, 3, 224, 224}, 2), 64, 7, 2, Activation::kRelu);
  x = b.MaxPool(x, 3, 2, 1);
  for (const int64_t channels : {64, 128, 256, 512}) {
    for (int i = 0; i < 2; ++i) {
      const int64_t stride = i == 0 && channels != 64 ? 2 : 1;
      Tensor y = b.Conv(x, channels, 3, stride, Activation::kRelu);
      y = b.Conv(y, channels, 3, 1, Activation::kNone);
      const Tensor shortcut =
          stride == 1 ? x : b.Conv(x, channels, 1, stride, Activation::kNone);
      x = b.Add(y, shortcut, Activation::kRelu);
    }
  }
  b.Output(b.Classify(x, 1000));
}

// --- YOLOv8n -----------------------------------------------------------------

namespace {

Tensor Cbs(NetworkBuilder& b, const Tensor& x, int64_t channels, int64_t kernel,
           int64_t stride) {
  return b.Conv(x, channels, kernel, stride, Activation::kSwish);
}

// Bottlenecks whose results are all kept.
Tensor C2f(NetworkBuilder& b, const Tensor& x, int64_t channels, int repeats,
           bool adds) {
  std::vector<Tensor> kept = b.SplitInTwo(Cbs(b, x, channels, 1, 1));
  for (int i = 0; i < repeats; ++i) {
    const Tensor& last = kept.back();
    Tensor y = Cbs(b, Cbs(b, last, channels / 2, 3, 1), channels / 2, 3, 1);
    if (adds) y = b.Add(last, y);
    kept.push_back(y);
  }
  return Cbs(b, b.Concat(kept), channels, 1, 1);
}

Tensor Sppf(NetworkBuilder& b, const Tensor& x) {
  std::vector<Tensor> kept = {Cbs(b, x, x.channels() / 2, 1, 1)};
  for (int i = 0; i < 3; ++i) kept.push_back(b.MaxPool(kept.back(), 5, 1, 2));
  return Cbs(b, b.Concat(kept), x.channels(), 1, 1);
}

// Boxes' sides in 16 steps each, and scores of 80 classes.
void Detect(NetworkBuilder& b, const Tensor& x) {
  constexpr int64_t kBoxes = 64, kClasses = 80;
  Tensor boxes = Cbs(b, Cbs(b, x, kBoxes, 3, 1), kBoxes, 3, 1);
  boxes = b.Conv(boxes, kBoxes, 1, 1, Activation::kNone);
  Tensor scores = Cbs(b, Cbs(b, x, kClasses, 3, 1), kClasses, 3, 1);
  scores = b.Conv(scores, kClasses, 1, 1, Activation::kNone);
  b.Output(b.Concat({boxes, scores}));
}

}  // namespace

void BuildYoloV8n(NetworkBuilder& b) {
  Tensor x = Cbs(b, b.Image({1, 3, 640, 640}, 5), 16, 3, 2);
  x = C2f(b, Cbs(b, x, 32, 3, 2), 32, 1, true);
  const Tensor p3 = x = C2f(b, Cbs(b, x, 64, 3, 2), 64, 2, true);
  const Tensor p4 = x = C2f(b, Cbs(b, x, 128, 3, 2), 128, 2, true);
  const Tensor p5 = Sppf(b, C2f(b, Cbs(b, x, 256, 3, 2), 256, 1, true));
  const Tensor middle = C2f(b, b.Concat({b.Upsample(p5), p4}), 128, 1, false);
  const Tensor out3 = C2f(b, b.Concat({b.Upsample(middle), p3}), 64, 1, false);
  const Tensor out4 =
      C2f(b, b.Concat({Cbs(b, out3, 64, 3, 2), middle}), 128, 1, false);
  const Tensor out5 =
      C2f(b, b.Concat({Cbs(b, out4, 128, 3, 2), p5}), 256, 1, false);
  for (const Tensor& out : {out3, out4, out5}) Detect(b, out);
}

}  // namespace rknnd::bench
