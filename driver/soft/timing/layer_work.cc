#include "driver/soft/timing/layer_work.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace rknnd::soft {
namespace {

// The NPU keeps a bias and a scale for each output channel, which it reads for
// 32 of them at a time.
constexpr uint64_t kBytesPerOutput = 8;
constexpr uint64_t kOutputsAtOnce = 32;

uint64_t RoundUp(uint64_t a, uint64_t to) {
  return Times(a / to + (a % to != 0 ? 1 : 0), to);
}

// A function of one 8-bit number is a table here, whatever it is on the NPU:
// its layer says what it stands for.
std::string_view TypeOf(const Node& node) {
  return node.type == "Lookup" ? node.layer_type : node.type;
}

template <size_t count>
bool IsOneOf(const std::array<std::string_view, count>& types,
             const Node& node) {
  return std::find(types.begin(), types.end(), TypeOf(node)) != types.end();
}

constexpr std::array<std::string_view, 4> kConvolutions = {
    "Conv", "QLinearConv", "ConvInteger", "ConvTranspose"};
constexpr std::array<std::string_view, 5> kProducts = {
    "MatMul", "Gemm", "QLinearMatMul", "QGemm", "MatMulInteger"};
constexpr std::array<std::string_view, 3> kRecurrent = {"LSTM", "GRU", "RNN"};
constexpr std::array<std::string_view, 6> kPools = {
    "MaxPool",           "AveragePool",   "QLinearAveragePool",
    "GlobalAveragePool", "GlobalMaxPool", "QLinearGlobalAveragePool"};
constexpr std::array<std::string_view, 2> kResizes = {"Resize", "Upsample"};
constexpr std::array kLookedUp = std::to_array<std::string_view>(
    {"Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu", "Softplus", "Elu",
     "Selu", "Celu", "Mish", "Erf", "Exp", "Log", "Sqrt", "Swish", "ExSwish",
     "QLinearSigmoid"});
// As the vendor's guide lists them (5.3), and what they are called here.
constexpr std::array kSplit = std::to_array<std::string_view>(
    {"Conv", "QLinearConv", "ConvInteger", "Add", "QLinearAdd", "Concat",
     "QLinearConcat", "Relu", "Clip", "Relu6", "ThresholdedRelu", "PRelu",
     "LeakyRelu", "QLinearLeakyRelu"});

bool IsLookedUp(Activation activation) {
  switch (activation) {
    case Activation::kNone:
    case Activation::kRelu:
    case Activation::kLeakyRelu:
    case Activation::kClip:
      return false;
    case Activation::kSigmoid:
    case Activation::kTanh:
    case Activation::kHardSigmoid:
    case Activation::kHardSwish:
    case Activation::kSwish:
    case Activation::kGelu:
    case Activation::kGeluTanh:
      return true;
  }
  return true;
}

uint32_t BytesOnNpu(DataType type) {
  return type == DataType::kFloat32 ? 2 : static_cast<uint32_t>(SizeOf(type));
}

uint64_t Elements(const Shape& shape) {
  uint64_t count = 1;
  for (int64_t dim : shape) {
    count = Times(count, dim < 0 ? 0 : static_cast<uint64_t>(dim));
  }
  return count;
}

// Of a value as it lies in the NPU's memory.
uint64_t BytesOf(const Graph& graph, ValueId id, const SocProfile& soc) {
  if (id == kNoValue) return 0;
  const Value& value = graph.value(id);
  if (!value.shape.has_value()) return 0;
  const Shape& shape = *value.shape;
  const uint32_t bytes = BytesOnNpu(value.type);
  const uint64_t elements = Elements(shape);
  if (shape.size() != 4 || shape[1] <= 0 || value.constant != nullptr) {
    return Times(elements, bytes);
  }
  const auto channels = static_cast<uint64_t>(shape[1]);
  return Times(
      Times(elements / channels, RoundUp(channels, bytes == 1   ? soc.int8_block
                                                   : bytes == 2 ? soc.half_block
                                                                : 1)),
      bytes);
}

uint64_t Dim(const Shape& shape, size_t i) {
  return i < shape.size() && shape[i] > 0 ? static_cast<uint64_t>(shape[i]) : 1;
}

// Pixels: all dims from the third on.
uint64_t PixelsOf(const Shape& shape) {
  uint64_t pixels = 1;
  for (size_t i = 2; i < shape.size(); ++i) {
    pixels = Times(pixels, Dim(shape, i));
  }
  return pixels;
}

const Shape* ShapeOf(const Graph& graph, const Node& node, size_t i) {
  if (i >= node.inputs.size() || node.inputs[i] == kNoValue) return nullptr;
  const Value& value = graph.value(node.inputs[i]);
  return value.shape.has_value() ? &*value.shape : nullptr;
}

const Shape* OutputShape(const Graph& graph, const Node& node) {
  if (node.outputs.empty() || node.outputs[0] == kNoValue) return nullptr;
  const Value& value = graph.value(node.outputs[0]);
  return value.shape.has_value() ? &*value.shape : nullptr;
}

// QLinear nodes name scale and zero point of the input before the weights.
size_t WeightsInput(const Node& node) { return node.type[0] == 'Q' ? 3 : 1; }

bool IsGraphInput(const Graph& graph, ValueId id) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(),
                     [&](const GraphPort& port) { return port.value == id; });
}

void AddConvolution(const Graph& graph, const Node& node, const SocProfile& soc,
                    LayerWork& work) {
  const Shape* in = ShapeOf(graph, node, 0);
  const Shape* weights = ShapeOf(graph, node, WeightsInput(node));
  const Shape* out = OutputShape(graph, node);
  if (in == nullptr || weights == nullptr || out == nullptr) return;
  ConvShape shape;
  shape.images = Dim(*out, 0);
  shape.in_height = PixelsOf(*in);
  shape.in_width = 1;
  shape.in_channels = Dim(*in, 1);
  shape.out_height = PixelsOf(*out);
  shape.out_width = 1;
  shape.out_channels = Dim(*out, 1);
  shape.taps = PixelsOf(*weights);
  const auto groups = node.attributes.find("group");
  if (groups != node.attributes.end()) {
    if (const auto* count = std::get_if<int64_t>(&groups->second)) {
      shape.groups = static_cast<uint64_t>(std::max<int64_t>(*count, 1));
    }
  }
  shape.element_bytes = work.element_bytes;
  shape.transposed = node.type == "ConvTranspose";
  shape.image_input =
      IsGraphInput(graph, node.inputs[0]) && shape.in_channels <= 4;
  const bool splits = work.splits;
  work = ConvWork(shape, soc);
  work.splits = splits;
}

void AddProduct(const Graph& graph, const Node& node, LayerWork& work) {
  const Shape* a = ShapeOf(graph, node, 0);
  const Shape* out = OutputShape(graph, node);
  if (a == nullptr || out == nullptr || a->empty() || out->empty()) return;
  work.kind = LayerKind::kConv;
  work.out_channels = Dim(*out, out->size() - 1);
  work.pixels = Elements(*out) / work.out_channels;
  work.outputs = work.pixels;
  const bool whole = node.type == "Gemm" || node.type == "QGemm";
  work.in_channels = whole ? Elements(*a) / std::max<uint64_t>(1, work.pixels)
                           : Dim(*a, a->size() - 1);
  work.weights =
      Times(Times(work.in_channels, work.out_channels), work.element_bytes);
}

// The products of all steps: one of R (directions, rows, states) for each row
// of gates.
void AddRecurrent(const Graph& graph, const Node& node, LayerWork& work) {
  const Shape* gates = ShapeOf(graph, node, 0);
  const Shape* r = ShapeOf(graph, node, 1);
  if (gates == nullptr || r == nullptr || r->size() != 3) return;
  work.kind = LayerKind::kConv;
  work.out_channels = Times(Dim(*r, 0), Dim(*r, 1));
  work.in_channels = Dim(*r, 2);
  work.pixels = Elements(*gates) / std::max<uint64_t>(1, work.out_channels);
  work.outputs = work.pixels;
  work.images = 1;
  work.weights = Times(Elements(*r), work.element_bytes);
  work.read -= std::min(work.read, work.weights);
}

LayerWork WorkOfNode(const Graph& graph, const Node& node,
                     const SocProfile& soc) {
  LayerWork work;
  const ValueId first =
      !node.inputs.empty() && node.inputs[0] != kNoValue
          ? node.inputs[0]
          : (node.outputs.empty() ? kNoValue : node.outputs[0]);
  if (first != kNoValue) {
    work.element_bytes = BytesOnNpu(graph.value(first).type);
  }
  const bool fused_lut = IsLookedUp(node.epilogue.activation);
  work.splits = IsOneOf(kSplit, node) && !fused_lut;
  for (ValueId id : node.inputs) {
    work.read = Plus(work.read, BytesOf(graph, id, soc));
  }
  for (ValueId id : node.outputs) {
    work.written = Plus(work.written, BytesOf(graph, id, soc));
  }
  if (const Shape* out = OutputShape(graph, node); out != nullptr) {
    work.images = Dim(*out, 0);
    work.out_channels = Dim(*out, 1);
    work.outputs = PixelsOf(*out);
  }
  if (IsOneOf(kConvolutions, node)) {
    AddConvolution(graph, node, soc, work);
  } else if (IsOneOf(kProducts, node)) {
    work.images = 1;
    const uint64_t all = work.read;
    AddProduct(graph, node, work);
    if (work.kind == LayerKind::kConv) {
      // The weights were counted among what is read.
      work.read = all - std::min(all, work.weights);
    }
  } else if (node.domain == "rknnd" && IsOneOf(kRecurrent, node)) {
    AddRecurrent(graph, node, work);
  } else if (IsOneOf(kPools, node)) {
    work.kind = LayerKind::kPool;
  } else if (IsOneOf(kResizes, node)) {
    work.kind = LayerKind::kResize;
  } else {
    work.lut = IsOneOf(kLookedUp, node);
  }
  work.lut = work.lut || fused_lut;
  if (node.epilogue.add != kNoValue) {
    work.read = Plus(work.read, BytesOf(graph, node.epilogue.add, soc));
  }
  return work;
}

// What a node adds to the layer that the nodes before it make: another
// function, another tensor read, and the result in place of theirs.
void Join(const Graph& graph, std::span<const Node* const> before,
          const Node& node, const SocProfile& soc, LayerWork& work) {
  const LayerWork own = WorkOfNode(graph, node, soc);
  work.lut = work.lut || own.lut;
  work.splits = work.splits && !work.lut;
  work.written = own.written;
  const auto is_inside = [&](ValueId id) {
    return std::any_of(before.begin(), before.end(), [id](const Node* made) {
      return std::find(made->outputs.begin(), made->outputs.end(), id) !=
             made->outputs.end();
    });
  };
  for (ValueId id : node.inputs) {
    if (id == kNoValue || is_inside(id) ||
        graph.value(id).constant != nullptr ||
        // x * sigmoid(x) reads x once.
        (!before[0]->inputs.empty() && id == before[0]->inputs[0])) {
      continue;
    }
    work.read = Plus(work.read, BytesOf(graph, id, soc));
  }
}

}  // namespace

uint64_t Times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t Plus(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t PaddedChannels(uint64_t channels, uint32_t element_bytes,
                        const SocProfile& soc) {
  const uint64_t block = element_bytes == 1 ? soc.int8_block : soc.half_block;
  return channels < block ? 2 * block : RoundUp(channels, block);
}

LayerWork ConvWork(const ConvShape& shape, const SocProfile& soc) {
  LayerWork work;
  work.element_bytes = shape.element_bytes;
  work.images = shape.images;
  work.groups = std::max<uint64_t>(1, shape.groups);
  work.in_channels = shape.in_channels / work.groups;
  work.out_channels = shape.out_channels / work.groups;
  work.taps = shape.taps;
  const uint64_t in = Times(shape.in_height, shape.in_width);
  work.outputs = Times(shape.out_height, shape.out_width);
  // A transposed one puts its kernel down once for each pixel it reads.
  work.pixels = shape.transposed ? in : work.outputs;
  const bool depthwise = work.groups > 1 && work.in_channels == 1;
  work.kind = depthwise ? LayerKind::kDepthwise : LayerKind::kConv;
  const uint64_t bytes = Times(shape.images, shape.element_bytes);
  const uint64_t channels =
      shape.image_input
          ? shape.in_channels
          : PaddedChannels(shape.in_channels, shape.element_bytes, soc);
  work.read = Times(bytes, Times(in, channels));
  work.written = Times(
      bytes, Times(work.outputs, PaddedChannels(shape.out_channels,
                                                shape.element_bytes, soc)));
  const uint64_t block =
      shape.element_bytes == 1 ? soc.int8_block : soc.half_block;
  const uint64_t taken = depthwise ? 1 : RoundUp(work.in_channels, block);
  work.weights =
      Plus(Times(Times(shape.out_channels, Times(taken, shape.taps)),
                 shape.element_bytes),
           Times(RoundUp(shape.out_channels, kOutputsAtOnce), kBytesPerOutput));
  return work;
}

LayerWork WorkOf(const Graph& graph, std::span<const Node* const> nodes,
                 const SocProfile& soc) {
  LayerWork work;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i == 0) {
      work = WorkOfNode(graph, *nodes[0], soc);
    } else {
      Join(graph, nodes.first(i), *nodes[i], soc, work);
    }
  }
  return work;
}

}  // namespace rknnd::soft
