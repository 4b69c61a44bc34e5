// Networks with layer normalisation and products of matrices, as PyTorch's
// exporter writes them for operator set 13: normalisation and Gelu in small
// operators.

#include <cmath>
#include <numeric>

#include "bench/peers/networks/networks.h"

namespace rknnd::bench {
namespace {

Tensor OfSame(NetworkBuilder& b, const char* type, const Tensor& x,
              const std::string& other) {
  return b.Node(type, {x.name, other}, x.dims);
}

// Over the last axis.
Tensor LayerNorm(NetworkBuilder& b, const Tensor& x) {
  Dims mean_dims = x.dims;
  mean_dims.back() = 1;
  const auto mean = [&](const Tensor& of) {
    Tensor result = b.Node("ReduceMean", {of.name}, mean_dims);
    b.Ints("axes", {-1}).Int("keepdims", 1);
    return result;
  };
  const Tensor apart = OfSame(b, "Sub", x, mean(x).name);
  const Tensor square = OfSame(b, "Pow", apart, b.Scalar(2));
  const Tensor variance = OfSame(b, "Add", mean(square), b.Scalar(1e-6F));
  const Tensor root = b.Node("Sqrt", {variance.name}, mean_dims);
  const Tensor normal = OfSame(b, "Div", apart, root.name);
  const Dims last = {x.dims.back()};
  const Tensor scaled = OfSame(b, "Mul", normal, b.Weights(last, 0.1, 1));
  return OfSame(b, "Add", scaled, b.Weights(last, 0.1));
}

// Of the last axis.
Tensor Linear(NetworkBuilder& b, const Tensor& x, int64_t outputs) {
  const int64_t inputs = x.dims.back();
  Dims dims = x.dims;
  dims.back() = outputs;
  const std::string weights =
      b.Weights({inputs, outputs}, 1 / std::sqrt(inputs));
  const Tensor product = b.Node("MatMul", {x.name, weights}, dims);
  return b.Node("Add", {b.Weights({outputs}, 0.1), product.name}, dims);
}

Tensor Gelu(NetworkBuilder& b, const Tensor& x) {
  const Tensor part = OfSame(b, "Div", x, b.Scalar(std::sqrt(2.0F)));
  const Tensor erf = b.Node("Erf", {part.name}, x.dims);
  const Tensor shifted = OfSame(b, "Add", erf, b.Scalar(1));
  const Tensor product = OfSame(b, "Mul", x, shifted.name);
  return OfSame(b, "Mul", product, b.Scalar(0.5F));
}

Tensor Transpose(NetworkBuilder& b, const Tensor& x, const Dims& order) {
  Dims dims;
  for (const int64_t axis : order) {
    dims.push_back(x.dims[static_cast<size_t>(axis)]);
  }
  Tensor out = b.Node("Transpose", {x.name}, dims);
  b.Ints("perm", order);
  return out;
}

Tensor Reshape(NetworkBuilder& b, const Tensor& x, const Dims& dims) {
  return b.Node("Reshape", {x.name, b.Int64s(dims)}, dims);
}

// Gemm.
Tensor Classes(NetworkBuilder& b, const Tensor& x, int64_t classes) {
  const int64_t inputs = x.dims[1];
  Tensor out =
      b.Node("Gemm",
             {x.name, b.Weights({classes, inputs}, 1 / std::sqrt(inputs)),
              b.Weights({classes}, 0.1)},
             {1, classes});
  b.Int("transB", 1);
  return out;
}

// --- ViT ---------------------------------------------------------------------

constexpr int64_t kWidth = 768, kHeads = 12, kTokens = 197;

Tensor Attention(NetworkBuilder& b, const Tensor& x) {
  constexpr int64_t kHeadWidth = kWidth / kHeads;
  const Dims head_dims = {1, kHeads, kTokens, kHeadWidth};
  const Tensor all = Linear(b, x, 3 * kWidth);
  const Tensor apart = Transpose(
      b, Reshape(b, all, {1, kTokens, 3, kHeads, kHeadWidth}), {2, 0, 3, 1, 4});
  Dims one = apart.dims;
  one[0] = 1;
  const std::vector<Tensor> parts =
      b.Nodes("Split", {apart.name}, {one, one, one});
  b.Int("axis", 0);
  std::vector<Tensor> query_key_value;
  for (const Tensor& part : parts) {
    query_key_value.push_back(
        b.Node("Squeeze", {part.name, b.Int64s({0})}, head_dims));
  }
  const Tensor query =
      OfSame(b, "Mul", query_key_value[0],
             b.Scalar(1 / std::sqrt(static_cast<float>(kHeadWidth))));
  const Tensor key = Transpose(b, query_key_value[1], {0, 1, 3, 2});
  const Tensor scores =
      b.Node("MatMul", {query.name, key.name}, {1, kHeads, kTokens, kTokens});
  const Tensor parts_of_one = b.Node("Softmax", {scores.name}, scores.dims);
  b.Int("axis", -1);
  const Tensor mixed =
      b.Node("MatMul", {parts_of_one.name, query_key_value[2].name}, head_dims);
  return Linear(
      b, Reshape(b, Transpose(b, mixed, {0, 2, 1, 3}), {1, kTokens, kWidth}),
      kWidth);
}

}  // namespace

void BuildVitB16(NetworkBuilder& b) {
  const Tensor image = b.Image({1, 3, 224, 224}, 7);
  const Tensor patches =
      b.Conv(image, ConvShape{kWidth, 16, 16, 16, 16}, Activation::kNone);
  const Tensor tokens =
      Transpose(b, Reshape(b, patches, {1, kWidth, kTokens - 1}), {0, 2, 1});
  Tensor x = b.Node("Concat", {b.Weights({1, 1, kWidth}, 1), tokens.name},
                    {1, kTokens, kWidth});
  b.Int("axis", 1);
  x = OfSame(b, "Add", x, b.Weights({1, kTokens, kWidth}, 0.5));
  for (int block = 0; block < 12; ++block) {
    x = OfSame(b, "Add", x, Attention(b, LayerNorm(b, x)).name);
    const Tensor inner = Gelu(b, Linear(b, LayerNorm(b, x), 4 * kWidth));
    x = OfSame(b, "Add", x, Linear(b, inner, kWidth).name);
  }
  x = LayerNorm(b, x);
  const std::string first = b.Int64Scalar(0);
  x = b.Node("Gather", {x.name, first}, {1, kWidth});
  b.Int("axis", 1);
  b.Output(Classes(b, x, 1000));
}

// --- BERT --------------------------------------------------------------------

namespace {

// Heads of a product, in front of tokens.
Tensor Heads(NetworkBuilder& b, const Tensor& x, int64_t heads) {
  const int64_t tokens = x.dims[1], width = x.dims[2] / heads;
  return Transpose(b, Reshape(b, x, {x.dims[0], tokens, heads, width}),
                   {0, 2, 1, 3});
}

// Of every first axis by itself; `bias` of the scores, empty: none.
Tensor HeadAttention(NetworkBuilder& b, const Tensor& x, int64_t heads,
                     const std::string& bias) {
  const int64_t tokens = x.dims[1], width = x.dims[2];
  const Tensor query = Heads(b, Linear(b, x, width), heads);
  const Tensor key =
      Transpose(b, Heads(b, Linear(b, x, width), heads), {0, 1, 3, 2});
  const Tensor value = Heads(b, Linear(b, x, width), heads);
  Tensor scores = b.Node("MatMul", {query.name, key.name},
                         {x.dims[0], heads, tokens, tokens});
  scores = OfSame(b, "Div", scores,
                  b.Scalar(std::sqrt(static_cast<float>(width / heads))));
  if (!bias.empty()) scores = OfSame(b, "Add", scores, bias);
  const Tensor parts = b.Node("Softmax", {scores.name}, scores.dims);
  b.Int("axis", -1);
  const Tensor mixed = b.Node("MatMul", {parts.name, value.name}, query.dims);
  return Linear(b, Reshape(b, Transpose(b, mixed, {0, 2, 1, 3}), x.dims),
                width);
}

}  // namespace

// Four of them, of the base model's width.
void BuildBertBlocks(NetworkBuilder& b) {
  constexpr int64_t kBertWidth = 768, kBertHeads = 12;
  Tensor x = b.Input({1, 128, kBertWidth});
  for (int block = 0; block < 4; ++block) {
    x = LayerNorm(
        b, OfSame(b, "Add", x, HeadAttention(b, x, kBertHeads, "").name));
    const Tensor inner = Gelu(b, Linear(b, x, 4 * kBertWidth));
    x = LayerNorm(b, OfSame(b, "Add", x, Linear(b, inner, kBertWidth).name));
  }
  b.Output(x);
}

// --- Swin --------------------------------------------------------------------

namespace {

constexpr int64_t kWindow = 7;

// Rows and columns moved by so many, those that leave come in again.
Tensor Roll(NetworkBuilder& b, Tensor x, int64_t by) {
  for (const size_t axis : {size_t{1}, size_t{2}}) {
    const int64_t size = x.dims[axis];
    const int64_t cut = (by % size + size) % size;
    const auto slice = [&](int64_t begin, int64_t end) {
      Dims dims = x.dims;
      dims[axis] = end - begin;
      return b.Node("Slice",
                    {x.name, b.Int64s({begin}), b.Int64s({end}),
                     b.Int64s({static_cast<int64_t>(axis)})},
                    dims);
    };
    const Tensor back = slice(cut, size), front = slice(0, cut);
    x = b.Node("Concat", {back.name, front.name}, x.dims);
    b.Int("axis", static_cast<int64_t>(axis));
  }
  return x;
}

// Attention within windows of 1xHxWxC, every other time shifted by half of one.
Tensor SwinBlock(NetworkBuilder& b, const Tensor& x, int64_t heads,
                 int64_t shift) {
  const int64_t side = x.dims[1], width = x.dims[3], windows = side / kWindow;
  Tensor y = LayerNorm(b, x);
  if (shift != 0) y = Roll(b, y, shift);
  y = Transpose(b,
                Reshape(b, y, {1, windows, kWindow, windows, kWindow, width}),
                {0, 1, 3, 2, 4, 5});
  constexpr int64_t kTokensOfWindow = kWindow * kWindow;
  y = Reshape(b, y, {windows * windows, kTokensOfWindow, width});
  y = HeadAttention(
      b, y, heads,
      b.Weights({1, heads, kTokensOfWindow, kTokensOfWindow}, 0.5));
  y = Transpose(b,
                Reshape(b, y, {1, windows, windows, kWindow, kWindow, width}),
                {0, 1, 3, 2, 4, 5});
  y = Reshape(b, y, x.dims);
  if (shift != 0) y = Roll(b, y, -shift);
  const Tensor sum = OfSame(b, "Add", x, y.name);
  const Tensor inner = Gelu(b, Linear(b, LayerNorm(b, sum), 4 * width));
  return OfSame(b, "Add", sum, Linear(b, inner, width).name);
}

// Four pixels side by side become one.
Tensor Merge(NetworkBuilder& b, const Tensor& x) {
  const int64_t side = x.dims[1] / 2, width = x.dims[3];
  const Tensor apart = Transpose(b, Reshape(b, x, {1, side, 2, side, 2, width}),
                                 {0, 1, 3, 2, 4, 5});
  return Linear(b, LayerNorm(b, Reshape(b, apart, {1, side, side, 4 * width})),
                2 * width);
}

}  // namespace

// The first two stages of the tiny one.
void BuildSwinStages(NetworkBuilder& b) {
  Tensor x = b.Conv(b.Image({1, 3, 224, 224}, 2), ConvShape{96, 4, 4, 4, 4},
                    Activation::kNone);
  x = LayerNorm(b, Transpose(b, x, {0, 2, 3, 1}));
  for (const int64_t heads : {3, 6}) {
    if (heads != 3) x = Merge(b, x);
    for (const int64_t shift : {int64_t{0}, kWindow / 2}) {
      x = SwinBlock(b, x, heads, shift);
    }
  }
  b.Output(LayerNorm(b, x));
}

// --- ConvNeXt ----------------------------------------------------------------

namespace {

// Of the channels of a feature map.
Tensor ChannelNorm(NetworkBuilder& b, const Tensor& x) {
  Tensor out =
      Transpose(b, LayerNorm(b, Transpose(b, x, {0, 2, 3, 1})), {0, 3, 1, 2});
  out.sample = x.sample;
  return out;
}

Tensor ConvNextBlock(NetworkBuilder& b, const Tensor& x) {
  const int64_t channels = x.channels();
  const Tensor deep = b.Conv(x, channels, 7, 1, Activation::kNone, channels);
  const Tensor pixels = LayerNorm(b, Transpose(b, deep, {0, 2, 3, 1}));
  const Tensor inner = Gelu(b, Linear(b, pixels, 4 * channels));
  const Tensor branch = OfSame(b, "Mul", Linear(b, inner, channels),
                               b.Weights({channels}, 0.2, 0.5));
  Tensor out =
      b.Node("Add", {Transpose(b, branch, {0, 3, 1, 2}).name, x.name}, x.dims);
  out.sample = x.sample;
  return out;
}

}  // namespace

void BuildConvNextTiny(NetworkBuilder& b) {
  constexpr struct {
    int64_t channels;
    int blocks;
  } kStages[] = {{96, 3}, {192, 3}, {384, 9}, {768, 3}};
  Tensor x = b.Image({1, 3, 224, 224}, 2);
  bool first = true;
  for (const auto& stage : kStages) {
    const int64_t patch = first ? 4 : 2;
    if (!first) x = ChannelNorm(b, x);
    x = b.Conv(x, ConvShape{stage.channels, patch, patch, patch, patch},
               Activation::kNone);
    if (first) x = ChannelNorm(b, x);
    first = false;
    for (int i = 0; i < stage.blocks; ++i) x = ConvNextBlock(b, x);
  }
  const Tensor mean = b.MeanOfAll(x);
  const Tensor flat = b.Node("Flatten", {mean.name}, {1, mean.channels()});
  b.Int("axis", 1);
  b.Output(Classes(b, LayerNorm(b, flat), 1000));
}

}  // namespace rknnd::bench
