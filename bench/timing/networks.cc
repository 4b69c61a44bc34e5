#include "bench/timing/networks.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace rknnd::bench {
namespace {

using soft::ConvShape;
using soft::LayerKind;
using soft::LayerWork;
using soft::SocProfile;

enum class Act { kNone, kRelu, kSwish, kSigmoid };

// Of a feature map.
struct Map {
  uint64_t channels = 0, height = 0, width = 0;
};

// Writes a network down in the order it is computed.
class Builder {
 public:
  Builder(const SocProfile& soc, Act act) : soc_(soc), act_(act) {}

  Map Image(uint64_t size) {
    first_ = true;
    return {3, size, size};
  }

  Map Conv(Map in, uint64_t channels, uint64_t kernel, uint64_t stride, Act act,
           uint64_t groups = 1, bool adds = false) {
    Map out = {channels, (in.height + stride - 1) / stride,
               (in.width + stride - 1) / stride};
    ConvShape shape;
    shape.in_height = in.height;
    shape.in_width = in.width;
    shape.in_channels = in.channels;
    shape.out_height = out.height;
    shape.out_width = out.width;
    shape.out_channels = channels;
    shape.groups = groups;
    shape.taps = kernel * kernel;
    shape.image_input = first_;
    first_ = false;
    LayerWork work = soft::ConvWork(shape, soc_);
    work.lut = act == Act::kSwish || act == Act::kSigmoid;
    if (adds) work.read += Bytes(out);
    layers_.push_back(work);
    return out;
  }
  // With the network's activation.
  Map Cba(Map in, uint64_t channels, uint64_t kernel, uint64_t stride) {
    return Conv(in, channels, kernel, stride, act_);
  }

  Map Relu(Map in) {
    Move(LayerKind::kMover, Bytes(in), Bytes(in));
    return in;
  }
  Map Add(Map in) {
    Move(LayerKind::kMover, 2 * Bytes(in), Bytes(in));
    return in;
  }
  Map Concat(const std::vector<Map>& in) {
    Map out = in[0];
    out.channels = 0;
    uint64_t bytes = 0;
    for (const Map& map : in) {
      out.channels += map.channels;
      bytes += Bytes(map);
    }
    Move(LayerKind::kMover, bytes, Bytes(out));
    return out;
  }
  Map SplitInTwo(Map in) {
    const Map half = {in.channels / 2, in.height, in.width};
    Move(LayerKind::kMover, Bytes(in), 2 * Bytes(half));
    return half;
  }
  Map Upsample(Map in) {
    const Map out = {in.channels, 2 * in.height, 2 * in.width};
    Move(LayerKind::kResize, Bytes(in), Bytes(out));
    return out;
  }
  Map Pool(Map in, uint64_t stride) {
    const Map out = {in.channels, in.height / stride, in.width / stride};
    Move(LayerKind::kPool, Bytes(in), Bytes(out));
    return out;
  }
  Map PoolAll(Map in) {
    const Map out = {in.channels, 1, 1};
    Move(LayerKind::kPool, Bytes(in), Bytes(out));
    return out;
  }

  std::vector<LayerWork> Layers() { return std::move(layers_); }

 private:
  [[nodiscard]] uint64_t Bytes(Map map) const {
    return soft::PaddedChannels(map.channels, 1, soc_) * map.height * map.width;
  }
  void Move(LayerKind kind, uint64_t read, uint64_t written) {
    LayerWork work;
    work.kind = kind;
    work.read = read;
    work.written = written;
    layers_.push_back(work);
  }

  const SocProfile& soc_;
  const Act act_;
  bool first_ = false;
  std::vector<LayerWork> layers_;
};

// --- classifiers -------------------------------------------------------------

std::vector<LayerWork> MobileNetV2(const SocProfile& soc) {
  Builder b(soc, Act::kRelu);
  Map x = b.Cba(b.Image(224), 32, 3, 2);
  struct {
    uint64_t expansion, channels;
    int repeats;
    uint64_t stride;
  } constexpr kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2},
                           {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
                           {6, 320, 1, 1}};
  for (const auto& stage : kStages) {
    for (int i = 0; i < stage.repeats; ++i) {
      const uint64_t stride = i == 0 ? stage.stride : 1;
      const bool adds = stride == 1 && x.channels == stage.channels;
      const uint64_t inner = x.channels * stage.expansion;
      Map y = x;
      if (stage.expansion != 1) y = b.Cba(y, inner, 1, 1);
      y = b.Conv(y, inner, 3, stride, Act::kRelu, inner);
      x = b.Conv(y, stage.channels, 1, 1, Act::kNone, 1, adds);
    }
  }
  x = b.Cba(x, 1280, 1, 1);
  x = b.PoolAll(x);
  b.Conv(x, 1000, 1, 1, Act::kNone);
  return b.Layers();
}

// Version 2: normalised and cut off before each block, which fuses with
// nothing; the addition behind the last 1x1, which does.
std::vector<LayerWork> ResNet50(const SocProfile& soc) {
  Builder b(soc, Act::kRelu);
  Map x = b.Cba(b.Image(224), 64, 7, 2);
  x = b.Pool(x, 2);
  constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};
  uint64_t inner = 64;
  for (size_t stage = 0; stage < kBlocks.size(); ++stage, inner *= 2) {
    for (int i = 0; i < kBlocks[stage]; ++i) {
      const uint64_t stride = i == 0 && stage > 0 ? 2 : 1;
      x = b.Relu(x);
      Map y = b.Cba(x, inner, 1, 1);
      y = b.Cba(y, inner, 3, stride);
      if (i == 0) b.Conv(x, 4 * inner, 1, stride, Act::kNone);
      x = b.Conv(y, 4 * inner, 1, 1, Act::kNone, 1, true);
    }
  }
  x = b.PoolAll(b.Relu(x));
  b.Conv(x, 1000, 1, 1, Act::kNone);
  return b.Layers();
}

// --- detectors ---------------------------------------------------------------

struct Scale {
  double depth, width;
  uint64_t most_channels;

  [[nodiscard]] int Repeats(int n) const {
    return std::max(1, static_cast<int>(std::lround(n * depth)));
  }
  [[nodiscard]] uint64_t Channels(uint64_t n) const {
    const double wanted =
        static_cast<double>(std::min(n, most_channels)) * width;
    return 8 * static_cast<uint64_t>(std::ceil(wanted / 8));
  }
};

// Three 1x1 convolutions around bottlenecks.
Map C3(Builder& b, Map x, uint64_t channels, int repeats, bool adds) {
  const uint64_t inner = channels / 2;
  Map y = b.Cba(x, inner, 1, 1);
  for (int i = 0; i < repeats; ++i) {
    y = b.Cba(y, inner, 1, 1);
    y = b.Cba(y, inner, 3, 1);
    if (adds) y = b.Add(y);
  }
  const Map z = b.Cba(x, inner, 1, 1);
  return b.Cba(b.Concat({y, z}), channels, 1, 1);
}

// Bottlenecks whose results are all kept.
Map C2f(Builder& b, Map x, uint64_t channels, int repeats, bool adds) {
  x = b.Cba(x, channels, 1, 1);
  Map y = b.SplitInTwo(x);
  std::vector<Map> kept = {y, y};
  for (int i = 0; i < repeats; ++i) {
    y = b.Cba(y, channels / 2, 3, 1);
    y = b.Cba(y, channels / 2, 3, 1);
    if (adds) y = b.Add(y);
    kept.push_back(y);
  }
  return b.Cba(b.Concat(kept), channels, 1, 1);
}

Map Sppf(Builder& b, Map x, uint64_t channels) {
  x = b.Cba(x, x.channels / 2, 1, 1);
  std::vector<Map> kept = {x};
  for (int i = 0; i < 3; ++i) kept.push_back(b.Pool(kept.back(), 1));
  return b.Cba(b.Concat(kept), channels, 1, 1);
}

std::vector<LayerWork> YoloV5(const SocProfile& soc, Scale s, Act act) {
  Builder b(soc, act);
  Map x = b.Cba(b.Image(640), s.Channels(64), 6, 2);
  x = b.Cba(x, s.Channels(128), 3, 2);
  x = C3(b, x, s.Channels(128), s.Repeats(3), true);
  x = b.Cba(x, s.Channels(256), 3, 2);
  const Map p3 = x = C3(b, x, s.Channels(256), s.Repeats(6), true);
  x = b.Cba(x, s.Channels(512), 3, 2);
  const Map p4 = x = C3(b, x, s.Channels(512), s.Repeats(9), true);
  x = b.Cba(x, s.Channels(1024), 3, 2);
  x = C3(b, x, s.Channels(1024), s.Repeats(3), true);
  x = Sppf(b, x, s.Channels(1024));
  const Map top = x = b.Cba(x, s.Channels(512), 1, 1);
  x = b.Concat({b.Upsample(x), p4});
  x = C3(b, x, s.Channels(512), s.Repeats(3), false);
  const Map middle = x = b.Cba(x, s.Channels(256), 1, 1);
  x = b.Concat({b.Upsample(x), p3});
  const Map out3 = x = C3(b, x, s.Channels(256), s.Repeats(3), false);
  x = b.Concat({b.Cba(x, s.Channels(256), 3, 2), middle});
  const Map out4 = x = C3(b, x, s.Channels(512), s.Repeats(3), false);
  x = b.Concat({b.Cba(x, s.Channels(512), 3, 2), top});
  const Map out5 = C3(b, x, s.Channels(1024), s.Repeats(3), false);
  for (const Map& out : {out3, out4, out5}) {
    b.Conv(out, 255, 1, 1, Act::kSigmoid);
  }
  return b.Layers();
}

std::vector<LayerWork> YoloV8(const SocProfile& soc, Scale s) {
  Builder b(soc, Act::kSwish);
  Map x = b.Cba(b.Image(640), s.Channels(64), 3, 2);
  x = b.Cba(x, s.Channels(128), 3, 2);
  x = C2f(b, x, s.Channels(128), s.Repeats(3), true);
  x = b.Cba(x, s.Channels(256), 3, 2);
  const Map p3 = x = C2f(b, x, s.Channels(256), s.Repeats(6), true);
  x = b.Cba(x, s.Channels(512), 3, 2);
  const Map p4 = x = C2f(b, x, s.Channels(512), s.Repeats(6), true);
  x = b.Cba(x, s.Channels(1024), 3, 2);
  x = C2f(b, x, s.Channels(1024), s.Repeats(3), true);
  const Map p5 = x = Sppf(b, x, s.Channels(1024));
  x = b.Concat({b.Upsample(x), p4});
  const Map middle = x = C2f(b, x, s.Channels(512), s.Repeats(3), false);
  x = b.Concat({b.Upsample(x), p3});
  const Map out3 = x = C2f(b, x, s.Channels(256), s.Repeats(3), false);
  x = b.Concat({b.Cba(x, s.Channels(256), 3, 2), middle});
  const Map out4 = x = C2f(b, x, s.Channels(512), s.Repeats(3), false);
  x = b.Concat({b.Cba(x, s.Channels(512), 3, 2), p5});
  const Map out5 = C2f(b, x, s.Channels(1024), s.Repeats(3), false);
  constexpr uint64_t kClasses = 80, kBoxes = 64;
  const uint64_t box = std::max<uint64_t>(out3.channels / 4, kBoxes);
  const uint64_t score = std::max(out3.channels, kClasses);
  for (const Map& out : {out3, out4, out5}) {
    Map y = b.Cba(b.Cba(out, box, 3, 1), box, 3, 1);
    b.Conv(y, kBoxes, 1, 1, Act::kNone);
    y = b.Cba(b.Cba(out, score, 3, 1), score, 3, 1);
    y = b.Conv(y, kClasses, 1, 1, Act::kSigmoid);
    // The sum of the scores, by which the vendor's post-processing sorts out.
    b.Conv(y, 1, 1, 1, Act::kRelu);
  }
  return b.Layers();
}

constexpr uint64_t kNoLimit = 1 << 20;

}  // namespace

const std::vector<Network>& Networks() {
  static const std::vector<Network> kNetworks = {
      {"mobilenetv2", 0.30, {2.22, 2.14, 3.55, 5.53}, MobileNetV2},
      {"resnet50", 4.10, {9.08, 10.1, 18.2, 26.4}, ResNet50},
      {"yolov5s_relu",
       8.20,
       {15.1, 15.4, 30.1, 39.2},
       [](const SocProfile& soc) {
         return YoloV5(soc, {0.33, 0.50, kNoLimit}, Act::kRelu);
       }},
      {"yolov5n",
       2.25,
       {12.1, 8.87, 21.1, 25.2},
       [](const SocProfile& soc) {
         return YoloV5(soc, {0.33, 0.25, kNoLimit}, Act::kSwish);
       }},
      {"yolov5s",
       8.25,
       {20.7, 17.4, 42.4, 51.8},
       [](const SocProfile& soc) {
         return YoloV5(soc, {0.33, 0.50, kNoLimit}, Act::kSwish);
       }},
      {"yolov5m",
       24.50,
       {47.8, 42.2, 92.6, 116.3},
       [](const SocProfile& soc) {
         return YoloV5(soc, {0.67, 0.75, kNoLimit}, Act::kSwish);
       }},
      {"yolov8n",
       4.35,
       {13.6, 11.1, 24.4, 29.4},
       [](const SocProfile& soc) {
         return YoloV8(soc, {0.33, 0.25, 1024});
       }},
      {"yolov8s",
       14.30,
       {26.3, 24.5, 54.3, 66.2},
       [](const SocProfile& soc) {
         return YoloV8(soc, {0.33, 0.50, 1024});
       }},
      {"yolov8m",
       39.45,
       {61.7, 59.9, 122.0, 153.8},
       [](const SocProfile& soc) {
         return YoloV8(soc, {0.67, 0.75, 768});
       }},
  };
  return kNetworks;
}

}  // namespace rknnd::bench
