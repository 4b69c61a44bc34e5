// See network_builder.h.

#include "bench/peers/networks/network_builder.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>

namespace rknnd::bench {
namespace {

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

int64_t Product(const Dims& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

int64_t Outputs(int64_t in, int64_t kernel, int64_t stride, int64_t pad) {
  return (in + 2 * pad - kernel) / stride + 1;
}

}  // namespace

NetworkBuilder::NetworkBuilder(uint64_t seed, Precision precision)
    : precision_(precision), random_(seed) {
  onnx_.Opset(14);
  onnx_.proto().mutable_graph()->set_name("random");
  onnx_.proto().set_producer_name("rknnd-bench-peers");
}

// --- operators ---------------------------------------------------------------

Tensor NetworkBuilder::Input(const Dims& dims) {
  onnx_.Input("input", dims);
  return {"input", dims, {}};
}

Tensor NetworkBuilder::Image(const Dims& dims, int64_t reduction) {
  Tensor image = Input(dims);
  image.sample = MakeSample(dims[1], dims[2] / reduction, dims[3] / reduction);
  image.sample.values = random_.Values(image.sample.values.size(), 1);
  return Finish(image);
}

Tensor NetworkBuilder::Conv(const Tensor& in, int64_t channels, int64_t kernel,
                            int64_t stride, Activation activation,
                            int64_t groups) {
  return Conv(in,
              {channels, kernel, kernel, stride, stride, kernel / 2, kernel / 2,
               groups},
              activation);
}

Tensor NetworkBuilder::Conv(const Tensor& in, const ConvShape& shape,
                            Activation activation) {
  const Dims kernel = {shape.channels, in.channels() / shape.groups,
                       shape.kernel_h, shape.kernel_w};
  std::vector<float> weights =
      random_.Values(static_cast<size_t>(Product(kernel)), 1);
  std::vector<float> bias;
  Sample sample = Convolve(in.sample, shape, weights);
  Normalise(sample, weights, bias);
  std::string bias_name;
  const std::string name = LayerWeights(kernel, weights, in, bias, &bias_name);
  Tensor out =
      Node("Conv", {in.name, name, bias_name},
           {in.dims[0], shape.channels,
            Outputs(in.dims[2], shape.kernel_h, shape.stride_h, shape.pad_h),
            Outputs(in.dims[3], shape.kernel_w, shape.stride_w, shape.pad_w)});
  Ints("dilations", {1, 1});
  Int("group", shape.groups);
  Ints("kernel_shape", {shape.kernel_h, shape.kernel_w});
  Ints("pads", {shape.pad_h, shape.pad_w, shape.pad_h, shape.pad_w});
  Ints("strides", {shape.stride_h, shape.stride_w});
  out.sample = std::move(sample);
  return Activate(out, activation);
}

Tensor NetworkBuilder::ConvUp(const Tensor& in, int64_t channels) {
  const Dims kernel = {in.channels(), channels, 2, 2};
  std::vector<float> weights =
      random_.Values(static_cast<size_t>(Product(kernel)), 1);
  std::vector<float> bias;
  Sample sample = ConvolveUp(in.sample, channels, weights);
  Normalise(sample, weights, bias);
  Tensor out =
      Node("ConvTranspose",
           {in.name, Floats(kernel, weights), Floats({channels}, bias)},
           {in.dims[0], channels, 2 * in.dims[2], 2 * in.dims[3]});
  Ints("dilations", {1, 1});
  Int("group", 1);
  Ints("kernel_shape", {2, 2});
  Ints("pads", {0, 0, 0, 0});
  Ints("strides", {2, 2});
  out.sample = std::move(sample);
  return out;
}

Tensor NetworkBuilder::Activate(const Tensor& in, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return in.scale == 0 ? Finish(in) : in;
    case Activation::kRelu: {
      Tensor out = Node("Relu", {in.name}, in.dims);
      out.sample = Map(in.sample, [](float x) { return std::max(x, 0.0F); });
      return Finish(out);
    }
    case Activation::kRelu6: {
      // In eight bits the range of the numbers does it, and the quantizer has
      // taken it out.
      Tensor out = in;
      if (!quantized()) {
        out = Node("Clip", {in.name, Scalar(0), Scalar(6)}, in.dims);
      }
      out.sample =
          Map(in.sample, [](float x) { return std::clamp(x, 0.0F, 6.0F); });
      return Finish(out);
    }
    case Activation::kSigmoid: {
      Tensor out = Node("Sigmoid", {in.name}, in.dims);
      out.sample = Map(in.sample, Sigmoid);
      return Finish(out);
    }
    case Activation::kHardSwish: {
      Tensor out = Node("HardSwish", {in.name}, in.dims);
      out.sample = Map(in.sample, [](float x) {
        return x * std::clamp(x / 6 + 0.5F, 0.0F, 1.0F);
      });
      return Finish(out);
    }
    case Activation::kHardSigmoid: {
      Tensor out = Node("HardSigmoid", {in.name}, in.dims);
      Float("alpha", 1.0F / 6);
      out.sample = Map(in.sample, [](float x) {
        return std::clamp(x / 6 + 0.5F, 0.0F, 1.0F);
      });
      return Finish(out);
    }
    case Activation::kSwish: {
      const Tensor x = Activate(in, Activation::kNone);
      return Mul(x, Activate(x, Activation::kSigmoid));
    }
  }
  return in;
}

Tensor NetworkBuilder::Add(const Tensor& a, const Tensor& b,
                           Activation activation) {
  Tensor out = Node("Add", {a.name, b.name}, a.dims);
  out.sample = Combine(a.sample, b.sample, std::plus<float>());
  return Activate(out, activation);
}

Tensor NetworkBuilder::Mul(const Tensor& a, const Tensor& b) {
  Tensor out = Node("Mul", {a.name, b.name}, a.dims);
  out.sample = Combine(a.sample, b.sample, std::multiplies<float>());
  return Finish(out);
}

Tensor NetworkBuilder::Concat(const std::vector<Tensor>& in) {
  std::vector<std::string> names;
  std::vector<Sample> samples;
  Dims dims = in[0].dims;
  dims[1] = 0;
  for (const Tensor& part : in) {
    names.push_back(part.name);
    samples.push_back(part.sample);
    dims[1] += part.channels();
  }
  Tensor out = Node("Concat", names, dims);
  Int("axis", 1);
  out.sample = bench::Concat(samples);
  return Finish(out);
}

std::vector<Tensor> NetworkBuilder::SplitInTwo(const Tensor& in) {
  const int64_t half = in.channels() / 2;
  Dims dims = in.dims;
  dims[1] = half;
  const std::string sizes = Int64s({half, half});
  std::vector<Tensor> parts = Nodes("Split", {in.name, sizes}, {dims, dims});
  Int("axis", 1);
  for (int64_t i = 0; i < 2; ++i) {
    Tensor& part = parts[static_cast<size_t>(i)];
    part.sample = TakeChannels(in.sample, i * half, half);
    part = FinishAs(part, in);
  }
  return parts;
}

Tensor NetworkBuilder::MaxPool(const Tensor& in, int64_t kernel, int64_t stride,
                               int64_t pad) {
  Tensor out =
      Node("MaxPool", {in.name},
           {in.dims[0], in.channels(), Outputs(in.dims[2], kernel, stride, pad),
            Outputs(in.dims[3], kernel, stride, pad)});
  Int("ceil_mode", 0);
  Ints("kernel_shape", {kernel, kernel});
  Ints("pads", {pad, pad, pad, pad});
  Ints("strides", {stride, stride});
  out.sample = bench::MaxPool(in.sample, kernel, stride, pad);
  return FinishAs(out, in);
}

Tensor NetworkBuilder::MeanOfAll(const Tensor& in) {
  Tensor out =
      Node("GlobalAveragePool", {in.name}, {in.dims[0], in.channels(), 1, 1});
  out.sample = bench::MeanOfAll(in.sample);
  return Finish(out);
}

Tensor NetworkBuilder::Upsample(const Tensor& in) {
  Tensor out =
      Node("Resize", {in.name, "", Floats({4}, {1, 1, 2, 2})},
           {in.dims[0], in.channels(), 2 * in.dims[2], 2 * in.dims[3]});
  Text("coordinate_transformation_mode", "asymmetric");
  Text("mode", "nearest");
  Text("nearest_mode", "floor");
  out.sample = RepeatTwice(in.sample);
  return FinishAs(out, in);
}

Tensor NetworkBuilder::Classify(const Tensor& in, int64_t classes) {
  const Tensor mean = MeanOfAll(in);
  Tensor flat = Node("Flatten", {mean.name}, {mean.dims[0], mean.channels()});
  Int("axis", 1);
  flat.sample = mean.sample;
  flat = FinishAs(flat, mean);
  const ConvShape shape = {classes};
  const Dims dims = {classes, in.channels()};
  std::vector<float> weights =
      random_.Values(static_cast<size_t>(Product(dims)), 1);
  std::vector<float> bias;
  Sample sample = Convolve(flat.sample, shape, weights);
  Normalise(sample, weights, bias);
  std::string bias_name;
  const std::string name = LayerWeights(dims, weights, flat, bias, &bias_name);
  Tensor out =
      Node("Gemm", {flat.name, name, bias_name}, {in.dims[0], classes});
  Int("transB", 1);
  out.sample = std::move(sample);
  return Finish(out);
}

void NetworkBuilder::Output(const Tensor& tensor) {
  onnx_.Output(tensor.name, tensor.dims);
}

// --- nodes -------------------------------------------------------------------

Tensor NetworkBuilder::Node(const std::string& type,
                            const std::vector<std::string>& inputs,
                            const Dims& dims) {
  return Nodes(type, inputs, {dims})[0];
}

std::vector<Tensor> NetworkBuilder::Nodes(
    const std::string& type, const std::vector<std::string>& inputs,
    const std::vector<Dims>& dims) {
  std::vector<Tensor> tensors;
  std::vector<std::string> names;
  for (const Dims& one : dims) {
    names.push_back(NewName(type));
    tensors.push_back({names.back(), one, {}});
  }
  onnx_.Node(type, inputs, names, names[0]);
  return tensors;
}

NetworkBuilder& NetworkBuilder::Int(const std::string& name, int64_t value) {
  onnx_.Int(name, value);
  return *this;
}

NetworkBuilder& NetworkBuilder::Float(const std::string& name, float value) {
  onnx_.Float(name, value);
  return *this;
}

NetworkBuilder& NetworkBuilder::Ints(const std::string& name,
                                     const Dims& values) {
  onnx_.Ints(name, values);
  return *this;
}

NetworkBuilder& NetworkBuilder::Text(const std::string& name,
                                     const std::string& value) {
  auto& nodes = *onnx_.proto().mutable_graph()->mutable_node();
  auto* attribute = nodes.Mutable(nodes.size() - 1)->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
  return *this;
}

std::string NetworkBuilder::Weights(const Dims& dims, double deviation,
                                    double mean) {
  std::vector<float> values =
      random_.Values(static_cast<size_t>(Product(dims)), deviation);
  for (float& value : values) value += static_cast<float>(mean);
  return Floats(dims, values);
}

std::string NetworkBuilder::Floats(const Dims& dims,
                                   const std::vector<float>& values) {
  std::string name = NewName("weights");
  onnx_.Floats(name, dims, values);
  return name;
}

std::string NetworkBuilder::Int64s(const Dims& values) {
  std::string name = NewName("integers");
  onnx_.Int64s(name, {static_cast<int64_t>(values.size())}, values);
  return name;
}

std::string NetworkBuilder::Int64Scalar(int64_t value) {
  std::string name = NewName("integer");
  onnx_.Int64s(name, {}, {value});
  return name;
}

std::string NetworkBuilder::NewName(const std::string& stem) {
  return stem + "_" + std::to_string(names_++);
}

void NetworkBuilder::Write(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  if (!onnx_.proto().SerializeToOstream(&file) || !file.flush()) {
    throw std::runtime_error("cannot write '" + path + "'");
  }
}

// --- weights and eight bits --------------------------------------------------

void NetworkBuilder::Normalise(Sample& sample, std::vector<float>& weights,
                               std::vector<float>& bias) {
  // Channels keep their means: without these a random network makes ever more
  // of the least difference, and no two runtimes' answers could be compared.
  double squares = 0;
  for (const float value : sample.values) squares += double{value} * value;
  const double deviation =
      std::sqrt(squares / static_cast<double>(sample.values.size()));
  const auto factor =
      static_cast<float>(deviation > 1e-12 ? 1 / deviation : 1.0);
  for (float& weight : weights) weight *= factor;
  bias = random_.Values(static_cast<size_t>(sample.channels), 0.2);
  const auto area = static_cast<size_t>(sample.area());
  for (size_t i = 0; i < sample.values.size(); ++i) {
    sample.values[i] = sample.values[i] * factor + bias[i / area];
  }
}

std::string NetworkBuilder::LayerWeights(const Dims& dims,
                                         const std::vector<float>& weights,
                                         const Tensor& in,
                                         const std::vector<float>& bias,
                                         std::string* bias_name) {
  const Dims channels = {dims[0]};
  if (!quantized()) {
    *bias_name = Floats(channels, bias);
    return Floats(dims, weights);
  }
  const size_t each = weights.size() / bias.size();
  std::vector<float> scales, bias_scales;
  std::vector<int8_t> numbers;
  std::vector<int32_t> bias_numbers;
  for (size_t channel = 0; channel < bias.size(); ++channel) {
    const float* const first = &weights[channel * each];
    float most = 1e-6F;
    for (size_t i = 0; i < each; ++i) most = std::max(most, std::abs(first[i]));
    scales.push_back(most / 127);
    bias_scales.push_back(scales.back() * in.scale);
    for (size_t i = 0; i < each; ++i) {
      numbers.push_back(
          static_cast<int8_t>(std::lround(first[i] / scales.back())));
    }
    bias_numbers.push_back(
        static_cast<int32_t>(std::lround(bias[channel] / bias_scales.back())));
  }
  const auto zeros = [&](auto zero, int32_t type) {
    return Integers(channels, type,
                    std::vector<decltype(zero)>(bias.size(), zero));
  };
  *bias_name =
      Dequantize(Integers(channels, onnx::TensorProto::INT32, bias_numbers),
                 Floats(channels, bias_scales),
                 zeros(int32_t{0}, onnx::TensorProto::INT32), channels);
  Int("axis", 0);
  std::string name =
      Dequantize(Integers(dims, onnx::TensorProto::INT8, numbers),
                 Floats(channels, scales),
                 zeros(int8_t{0}, onnx::TensorProto::INT8), dims);
  Int("axis", 0);
  return name;
}

template <class T>
std::string NetworkBuilder::Integers(const Dims& dims, int32_t type,
                                     const std::vector<T>& values) {
  std::string name = NewName("numbers");
  auto* const tensor = onnx_.proto().mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (const int64_t dim : dims) tensor->add_dims(dim);
  tensor->set_raw_data(values.data(), values.size() * sizeof(T));
  return name;
}

std::string NetworkBuilder::Dequantize(const std::string& numbers,
                                       const std::string& scale,
                                       const std::string& zero,
                                       const Dims& dims) {
  return Node("DequantizeLinear", {numbers, scale, zero}, dims).name;
}

Tensor NetworkBuilder::Finish(Tensor tensor) {
  if (!quantized()) return tensor;
  const auto [least, most] = std::minmax_element(tensor.sample.values.begin(),
                                                 tensor.sample.values.end());
  const float low = std::min(*least, 0.0F), high = std::max(*most, 1e-3F);
  Tensor like;
  like.scale = (high - low) / 255;
  like.zero_point = static_cast<int32_t>(std::lround(-low / like.scale)) -
                    (precision_ == Precision::kInt8 ? 128 : 0);
  return FinishAs(std::move(tensor), like);
}

Tensor NetworkBuilder::FinishAs(Tensor tensor, const Tensor& like) {
  if (!quantized()) return tensor;
  const std::string scale = Scalar(like.scale);
  const std::string zero =
      precision_ == Precision::kInt8
          ? Integers<int8_t>({}, onnx::TensorProto::INT8,
                             {static_cast<int8_t>(like.zero_point)})
          : Integers<uint8_t>({}, onnx::TensorProto::UINT8,
                              {static_cast<uint8_t>(like.zero_point)});
  const std::string numbers =
      Node("QuantizeLinear", {tensor.name, scale, zero}, tensor.dims).name;
  tensor.name = Dequantize(numbers, scale, zero, tensor.dims);
  tensor.scale = like.scale;
  tensor.zero_point = like.zero_point;
  return tensor;
}

}  // namespace rknnd::bench
