// Writes networks with random weights as exporters write them: a convolution
// has its batch normalisation in its weights, swish is Sigmoid and Mul, and a
// network of eight bits has QuantizeLinear and DequantizeLinear around each
// operator, weights of a scale for each channel and 32-bit biases.

#ifndef BENCH_PEERS_NETWORKS_NETWORK_BUILDER_H_
#define BENCH_PEERS_NETWORKS_NETWORK_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/peers/networks/sample.h"
#include "driver/soft/testing/onnx_builder.h"

namespace rknnd::bench {

using soft::testing::Dims;

enum class Activation {
  kNone,
  kRelu,
  kRelu6,
  kSwish,
  kSigmoid,
  kHardSwish,
  kHardSigmoid
};
// Of activations. Weights of eight bits are int8.
enum class Precision { kFloat, kInt8, kUint8 };

struct Tensor {
  std::string name;
  Dims dims;
  // Of feature maps.
  Sample sample;
  // Of eight bits: value = (number - zero_point) * scale.
  float scale = 0;
  int32_t zero_point = 0;

  [[nodiscard]] int64_t channels() const { return dims[1]; }
};

// Thread: one.
class NetworkBuilder {
 public:
  NetworkBuilder(uint64_t seed, Precision precision = Precision::kFloat);

  // What the network is given, without a sample.
  Tensor Input(const Dims& dims);
  // Of 1xCxHxW. `reduction`: how much smaller the sample is.
  Tensor Image(const Dims& dims, int64_t reduction);

  // With same padding, that of PyTorch, and a square kernel.
  Tensor Conv(const Tensor& in, int64_t channels, int64_t kernel,
              int64_t stride, Activation activation, int64_t groups = 1);
  Tensor Conv(const Tensor& in, const ConvShape& shape, Activation activation);
  // Of floats: twice as high and wide.
  Tensor ConvUp(const Tensor& in, int64_t channels);
  Tensor Activate(const Tensor& in, Activation activation);
  // `b` may have one value for each channel.
  Tensor Add(const Tensor& a, const Tensor& b,
             Activation activation = Activation::kNone);
  Tensor Mul(const Tensor& a, const Tensor& b);
  Tensor Concat(const std::vector<Tensor>& in);
  std::vector<Tensor> SplitInTwo(const Tensor& in);
  Tensor MaxPool(const Tensor& in, int64_t kernel, int64_t stride, int64_t pad);
  Tensor MeanOfAll(const Tensor& in);
  // Nearest neighbours, twice as high and wide.
  Tensor Upsample(const Tensor& in);
  // Mean of each channel, Flatten and Gemm.
  Tensor Classify(const Tensor& in, int64_t classes);
  void Output(const Tensor& tensor);

  // --- what has no sample, of floats ---

  // One output named by the builder. Attributes go to the node added last.
  Tensor Node(const std::string& type, const std::vector<std::string>& inputs,
              const Dims& dims);
  std::vector<Tensor> Nodes(const std::string& type,
                            const std::vector<std::string>& inputs,
                            const std::vector<Dims>& dims);
  NetworkBuilder& Int(const std::string& name, int64_t value);
  NetworkBuilder& Float(const std::string& name, float value);
  NetworkBuilder& Ints(const std::string& name, const Dims& values);
  NetworkBuilder& Text(const std::string& name, const std::string& value);
  // Initializers, by name.
  std::string Weights(const Dims& dims, double deviation, double mean = 0);
  std::string Floats(const Dims& dims, const std::vector<float>& values);
  std::string Int64s(const Dims& values);
  std::string Int64Scalar(int64_t value);
  std::string Scalar(float value) { return Floats({}, {value}); }

  void Write(const std::string& path);

 private:
  [[nodiscard]] bool quantized() const {
    return precision_ != Precision::kFloat;
  }
  std::string NewName(const std::string& stem);
  // Scaled for outputs like those of a batch normalisation, which are
  // `sample` and `bias` from then on.
  void Normalise(Sample& sample, std::vector<float>& weights,
                 std::vector<float>& bias);
  // What an operator takes for `weights`, whose first axis is the output's.
  std::string LayerWeights(const Dims& dims, const std::vector<float>& weights,
                           const Tensor& in, const std::vector<float>& bias,
                           std::string* bias_name);
  template <class T>
  std::string Integers(const Dims& dims, int32_t type,
                       const std::vector<T>& values);
  std::string Dequantize(const std::string& numbers, const std::string& scale,
                         const std::string& zero, const Dims& dims);
  // With QuantizeLinear and DequantizeLinear behind it, for the values that its
  // sample has, or the same numbers as `like`.
  Tensor Finish(Tensor tensor);
  Tensor FinishAs(Tensor tensor, const Tensor& like);

  Precision precision_;
  soft::testing::OnnxBuilder onnx_;
  Random random_;
  int names_ = 0;
};

}  // namespace rknnd::bench

#endif  // BENCH_PEERS_NETWORKS_NETWORK_BUILDER_H_
