#include "bench/layers/alone.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <dnnl.hpp>
#include <functional>
#include <numeric>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/soft/kernels/convolution/window.h"
#include "driver/soft/kernels/onednn.h"

namespace rknnd::bench {
namespace {

using dnnl::memory;
using Dims = memory::dims;

// Long enough that the best run met no interruption.
constexpr int64_t kMeasuredNs = 30'000'000;
constexpr int kFewestRuns = 5;

Dims ToDims(const soft::Shape& shape) { return {shape.begin(), shape.end()}; }

memory::desc Any(const Dims& dims, memory::data_type type) {
  return {dims, type, memory::format_tag::any};
}

memory::data_type TypeOf(soft::DataType type) {
  switch (type) {
    case soft::DataType::kUint8:
      return memory::data_type::u8;
    case soft::DataType::kInt8:
      return memory::data_type::s8;
    default:
      return memory::data_type::f32;
  }
}

// Weights as oneDNN numbers them: groups first.
Dims GroupedWeights(const soft::Shape& shape, int64_t groups, bool transposed) {
  Dims dims = ToDims(shape);
  if (transposed) {  // ONNX: inputs, outputs of a group, window
    const int64_t outputs = dims[1];
    dims[1] = dims[0] / groups;
    dims[0] = outputs;
  } else {
    dims[0] /= groups;
  }
  if (groups > 1) dims.insert(dims.begin(), groups);
  return dims;
}

// A primitive with plain memory for its arguments.
class Alone {
 public:
  template <class Description>
  explicit Alone(const Description& made)
      : generated_(soft::IsGenerated(made.impl_info_str())), primitive_(made) {
    Bind(DNNL_ARG_SRC, made.src_desc());
    Bind(DNNL_ARG_WEIGHTS, made.weights_desc());
    Bind(DNNL_ARG_DST, made.dst_desc());
  }

  // Nothing where oneDNN made no kernel for this CPU.
  std::optional<int64_t> BestNs() {
    using Clock = std::chrono::steady_clock;
    if (!generated_) return std::nullopt;
    int64_t best = INT64_MAX, all = 0;
    for (int run = 0; run < kFewestRuns || all < kMeasuredNs; ++run) {
      const Clock::time_point begin = Clock::now();
      primitive_.execute(stream_, arguments_);
      stream_.wait();
      const int64_t ns = std::chrono::nanoseconds(Clock::now() - begin).count();
      best = std::min(best, ns);
      all += ns;
    }
    return best;
  }

 private:
  void Bind(int index, const memory::desc& desc) {
    const memory bound(desc, soft::CpuEngine());
    // What a sum costs does not depend on the numbers, but for those too small
    // to be normal: zeros are none.
    std::memset(bound.get_data_handle(), 0, desc.get_size());
    arguments_.emplace(index, bound);
  }

  bool generated_;
  dnnl::primitive primitive_;
  dnnl::stream stream_{soft::CpuEngine()};
  std::unordered_map<int, memory> arguments_;
};

// A layer's tensors, and what follows its sums.
struct Operands {
  const soft::Shape& data;
  const soft::Shape& weights;
  const soft::Shape& output;
  memory::data_type data_type, weights_type, output_type;
  dnnl::primitive_attr attributes;
};

void AppendActivation(const soft::Epilogue& epilogue, dnnl::post_ops& steps) {
  using dnnl::algorithm;
  const float alpha = epilogue.alpha, beta = epilogue.beta;
  const auto append = [&](algorithm what, float a, float b) {
    steps.append_eltwise(1.0F, what, a, b);
  };
  switch (epilogue.activation) {
    case soft::Activation::kNone:
      return;
    case soft::Activation::kRelu:
      return append(algorithm::eltwise_relu, 0, 0);
    case soft::Activation::kLeakyRelu:
      return append(algorithm::eltwise_relu, alpha, 0);
    case soft::Activation::kClip:
      return append(algorithm::eltwise_clip, alpha, beta);
    case soft::Activation::kSigmoid:
      return append(algorithm::eltwise_logistic, 0, 0);
    case soft::Activation::kTanh:
      return append(algorithm::eltwise_tanh, 0, 0);
    case soft::Activation::kHardSigmoid:
      append(algorithm::eltwise_linear, alpha, beta);
      return append(algorithm::eltwise_clip, 0, 1);
    case soft::Activation::kHardSwish:
      return append(algorithm::eltwise_hardswish, 0, 0);
    case soft::Activation::kGelu:
      return append(algorithm::eltwise_gelu_erf, 0, 0);
    case soft::Activation::kGeluTanh:
      return append(algorithm::eltwise_gelu_tanh, 0, 0);
    case soft::Activation::kSwish:
      return append(algorithm::eltwise_swish, 1, 0);
  }
}

dnnl::primitive_attr Attributes(const soft::Epilogue& epilogue,
                                bool requantises) {
  dnnl::primitive_attr attributes;
  if (requantises) attributes.set_output_scales(0, {0.01F});
  dnnl::post_ops steps;
  if (epilogue.add != soft::kNoValue) steps.append_sum(1.0F);
  AppendActivation(epilogue, steps);
  attributes.set_post_ops(steps);
  return attributes;
}

template <class Primitive>
std::optional<int64_t> Convolution(const soft::NodeView& node,
                                   const Operands& of) {
  constexpr bool kTransposed =
      std::is_same_v<Primitive, dnnl::deconvolution_forward>;
  const absl::StatusOr<soft::Window> window =
      soft::ParseWindow(node, of.data, std::span(of.weights).subspan(2));
  if (!window.ok()) return std::nullopt;
  Dims dilations = ToDims(window->dilations);
  for (int64_t& dilation : dilations) --dilation;  // oneDNN counts from 0
  const typename Primitive::desc desc(
      dnnl::prop_kind::forward_inference,
      kTransposed ? dnnl::algorithm::deconvolution_direct
                  : dnnl::algorithm::convolution_direct,
      Any(ToDims(of.data), of.data_type),
      Any(GroupedWeights(of.weights, node.Int("group", 1), kTransposed),
          of.weights_type),
      Any(ToDims(of.output), of.output_type), ToDims(window->strides),
      dilations, ToDims(window->pads_begin), ToDims(window->pads_end));
  return Alone(typename Primitive::primitive_desc(desc, of.attributes,
                                                  soft::CpuEngine()))
      .BestNs();
}

std::optional<int64_t> Product(const soft::NodeView& node, const Operands& of) {
  if (of.data.size() < 2 || of.weights.size() < 2) return std::nullopt;
  const auto turned = [](Dims dims, bool turn) {
    if (turn) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    return dims;
  };
  Dims left = turned(ToDims(of.data), node.Int("transA", 0) != 0);
  Dims right = turned(ToDims(of.weights), node.Int("transB", 0) != 0);
  Dims output = ToDims(of.output);
  if (right.size() == 2 && left.size() > 2) {
    // One matrix for all: the rows of all are rows of one.
    const auto flat = [](const Dims& dims) {
      const int64_t rows = std::accumulate(dims.begin(), dims.end() - 1,
                                           int64_t{1}, std::multiplies<>());
      return Dims{rows, dims.back()};
    };
    left = flat(left);
    output = flat(output);
  }
  const size_t rank = output.size();
  if (left.size() > rank || right.size() > rank) return std::nullopt;
  left.insert(left.begin(), rank - left.size(), 1);
  right.insert(right.begin(), rank - right.size(), 1);
  const dnnl::matmul::desc desc(Any(left, of.data_type),
                                Any(right, of.weights_type),
                                Any(output, of.output_type));
  return Alone(dnnl::matmul::primitive_desc(desc, of.attributes,
                                            soft::CpuEngine()))
      .BestNs();
}

std::optional<int64_t> Measure(const soft::Graph& graph,
                               const soft::Node& node) {
  if (!node.domain.empty() || node.inputs.size() < 2) return std::nullopt;
  const bool bytes = node.type.starts_with("QLinear");
  const soft::NodeView view(graph, node);
  const size_t weights = bytes ? 3 : 1;
  const soft::Value& output = graph.value(node.outputs[0]);
  if (!view.has_input(weights) || !output.shape.has_value()) {
    return std::nullopt;
  }
  const Operands operands = {
      view.shape(0), view.shape(weights), *output.shape, TypeOf(view.type(0)),
      // oneDNN takes no others; those of files are mostly signed.
      bytes ? memory::data_type::s8 : memory::data_type::f32,
      TypeOf(output.type), Attributes(node.epilogue, bytes)};
  if (node.type == "Conv" || node.type == "QLinearConv") {
    return Convolution<dnnl::convolution_forward>(view, operands);
  }
  if (node.type == "ConvTranspose") {
    return Convolution<dnnl::deconvolution_forward>(view, operands);
  }
  if (node.type == "MatMul" || node.type == "Gemm" ||
      node.type == "QLinearMatMul") {
    return Product(view, operands);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> BestAlone(const soft::Graph& graph,
                                 const soft::Node& node) {
  try {
    return Measure(graph, node);
  } catch (const dnnl::error&) {
    return std::nullopt;  // oneDNN has no such primitive
  }
}

}  // namespace rknnd::bench
