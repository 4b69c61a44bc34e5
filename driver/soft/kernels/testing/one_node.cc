// See one_node.h.

#include "driver/soft/kernels/testing/one_node.h"

#include <cstring>
#include <limits>
#include <utility>

#include "base/status/status.h"
#include "driver/soft/kernels/expansion.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/threads.h"

namespace rknnd::soft::testing {
namespace {

// Room that kernels may take for aligned to 64 bytes.
class Bytes {
 public:
  explicit Bytes(size_t size) : storage_(size + 64) {}
  std::byte* data() {
    const auto at = reinterpret_cast<uintptr_t>(storage_.data());
    return storage_.data() + (64 - at % 64) % 64;
  }

 private:
  std::vector<std::byte> storage_;
};

// Calls f(dense index, index in the placement) for each element.
template <class F>
void ForEach(const TensorSpec& spec, F f) {
  const int64_t block = spec.placement.block;
  const int64_t count = spec.elements();
  if (block == 1) {
    for (int64_t i = 0; i < count; ++i) f(i, i);
    return;
  }
  const int64_t channels = spec.shape[1];
  const int64_t blocks = (channels + block - 1) / block;
  const int64_t pixels = ProductOf(spec.shape, 2, spec.shape.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t pixel = i % pixels, c = i / pixels % channels;
    const int64_t n = i / pixels / channels;
    f(i, ((n * blocks + c / block) * pixels + pixel) * block + c % block);
  }
}

void Place(const TensorSpec& spec, const std::vector<float>& dense,
           std::byte* to) {
  std::memset(to, 0, spec.bytes());
  ForEach(spec, [&](int64_t from, int64_t at) {
    As<float>(to)[at] = dense[static_cast<size_t>(from)];
  });
}

}  // namespace

absl::StatusOr<const std::byte*> TestWeights::Store(
    size_t size, absl::FunctionRef<void(std::byte*)> fill) {
  stored_ += size;
  kept_.push_back(std::make_shared<std::byte[]>(size + 64));
  const auto at = reinterpret_cast<uintptr_t>(kept_.back().get());
  std::byte* const room = kept_.back().get() + (64 - at % 64) % 64;
  fill(room);
  return room;
}

OneNode::OneNode(const std::string& type, int opset) {
  Node node;
  node.name = "it";
  node.type = type;
  node.opset = opset;
  graph_.nodes.push_back(std::move(node));
}

OneNode& OneNode::Values(Shape shape, std::vector<float> values) {
  Value value;
  value.name = "x" + std::to_string(graph_.values.size());
  value.shape = std::move(shape);
  graph_.nodes[0].inputs.push_back(static_cast<ValueId>(graph_.values.size()));
  graph_.values.push_back(std::move(value));
  values_.push_back(std::move(values));
  return *this;
}

OneNode& OneNode::Floats(Shape shape, std::vector<float> values) {
  auto constant = std::make_shared<Constant>();
  constant->shape = shape;
  constant->data.resize(values.size() * sizeof(float));
  if (!values.empty()) {
    std::memcpy(constant->data.data(), values.data(), constant->data.size());
  }
  Values(std::move(shape), std::move(values));
  graph_.values.back().constant = std::move(constant);
  return *this;
}

OneNode& OneNode::Ints(Shape shape, std::vector<int64_t> values) {
  auto constant = std::make_shared<Constant>();
  constant->type = DataType::kInt64;
  constant->shape = shape;
  constant->data.resize(values.size() * sizeof(int64_t));
  if (!values.empty()) {
    std::memcpy(constant->data.data(), values.data(), constant->data.size());
  }
  Values(std::move(shape), {});
  graph_.values.back().type = DataType::kInt64;
  graph_.values.back().constant = std::move(constant);
  return *this;
}

OneNode& OneNode::OfType(DataType type, size_t i) {
  graph_.values[static_cast<size_t>(graph_.nodes[0].inputs[i])].type = type;
  return *this;
}

OneNode& OneNode::NoInput() {
  graph_.nodes[0].inputs.push_back(kNoValue);
  values_.emplace_back();
  return *this;
}

OneNode& OneNode::With(const std::string& name, Attribute value) {
  graph_.nodes[0].attributes[name] = std::move(value);
  return *this;
}

OneNode& OneNode::Then(Activation activation, float alpha, float beta) {
  graph_.nodes[0].epilogue.activation = activation;
  graph_.nodes[0].epilogue.alpha = alpha;
  graph_.nodes[0].epilogue.beta = beta;
  return *this;
}

OneNode& OneNode::Plus(Shape shape, std::vector<float> values) {
  graph_.nodes[0].epilogue.add = 0;  // that there is one
  added_shape_ = std::move(shape);
  added_ = std::move(values);
  return *this;
}

absl::StatusOr<std::vector<InferredOutput>> OneNode::Infer() const {
  Node node = graph_.nodes[0];
  node.outputs = {static_cast<ValueId>(graph_.values.size())};
  const Operator* op = OperatorTable::Get().Find("", node.type);
  if (op == nullptr) return absl::UnimplementedError(node.type);
  Graph graph = graph_;
  graph.values.emplace_back();
  if (op->expand != nullptr) {
    Expansion expansion(graph, node, kMaxNodes);
    const absl::Status written = op->expand(NodeView(graph, node), expansion);
    if (!written.ok()) return written;
    return std::vector<InferredOutput>();
  }
  return op->infer(NodeView(graph, node));
}

absl::StatusOr<OneNode::Tensors> OneNode::Specs(int block) {
  RKNND_ASSIGN_OR_RETURN(const std::vector<InferredOutput> inferred, Infer());
  Node& node = graph_.nodes[0];
  if (node.outputs.empty()) {
    node.outputs = {static_cast<ValueId>(graph_.values.size())};
    graph_.values.emplace_back();
  }
  graph_.values.back().type = inferred[0].type;
  graph_.values.back().shape = inferred[0].shape;
  const Operator& op = *OperatorTable::Get().Find("", node.type);
  const NodeView view(graph_, node);
  const auto placed = [&](size_t i, const Shape& shape) {
    const bool blocks = block > 1 && op.may_block != nullptr &&
                        ProductOf(shape, 0, shape.size()) > 1 &&
                        op.may_block(view, i, block);
    return Placement{blocks ? block : 1};
  };
  Tensors tensors;
  tensors.outputs.push_back({inferred[0].type, inferred[0].shape,
                             placed(node.inputs.size(), inferred[0].shape)});
  was_blocked_ = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) {
      tensors.inputs.emplace_back();
      continue;
    }
    const Value& value = graph_.value(node.inputs[i]);
    TensorSpec spec{value.type, *value.shape, {}};
    // As plan/ does: elementwise operators block everything or nothing.
    if (op.placement != PlacementRule::kElementwise ||
        tensors.outputs[0].placement.block > 1) {
      spec.placement = placed(i, spec.shape);
    }
    was_blocked_ = was_blocked_ || (spec.placement.block > 1 &&
                                    tensors.outputs[0].placement.block > 1);
    tensors.inputs.push_back(std::move(spec));
  }
  if (node.epilogue.add != kNoValue) {
    tensors.inputs.push_back(
        {DataType::kFloat32, added_shape_, tensors.outputs[0].placement});
  }
  return tensors;
}

absl::StatusOr<std::unique_ptr<Kernel>> OneNode::Make() {
  const SingleThreaded as_on_a_core;
  RKNND_ASSIGN_OR_RETURN(const Tensors tensors, Specs(1));
  const Node& node = graph_.nodes[0];
  return OperatorTable::Get()
      .Find("", node.type)
      ->make(
          {NodeView(graph_, node), tensors.inputs, tensors.outputs, weights_});
}

absl::StatusOr<std::vector<float>> OneNode::Run(int block) {
  return Compute(1, block);
}

absl::StatusOr<std::vector<float>> OneNode::RunInParts(uint32_t cores,
                                                       int block) {
  return Compute(cores, block);
}

absl::StatusOr<std::vector<float>> OneNode::Compute(uint32_t cores, int block) {
  const SingleThreaded as_on_a_core;
  RKNND_ASSIGN_OR_RETURN(const Tensors tensors, Specs(block));
  const Node& node = graph_.nodes[0];
  const NodeView view(graph_, node);
  RKNND_ASSIGN_OR_RETURN(
      const std::unique_ptr<Kernel> kernel,
      OperatorTable::Get()
          .Find("", node.type)
          ->make({view, tensors.inputs, tensors.outputs, weights_, cores}));
  std::vector<Bytes> memory;
  std::vector<const std::byte*> inputs;
  for (size_t i = 0; i < tensors.inputs.size(); ++i) {
    const TensorSpec& spec = tensors.inputs[i];
    const bool is_added = i >= node.inputs.size();
    inputs.push_back(nullptr);
    if (!is_added && node.inputs[i] == kNoValue) continue;
    const Constant* constant = is_added ? nullptr : view.constant(i);
    if (constant != nullptr && !kernel->reads_constant(i)) continue;
    Bytes& bytes = memory.emplace_back(spec.bytes());
    inputs.back() = bytes.data();
    if (spec.type == DataType::kFloat32) {
      Place(spec, is_added ? added_ : values_[i], bytes.data());
    } else if (constant != nullptr) {
      std::memcpy(bytes.data(), constant->data.data(), constant->data.size());
    } else {
      // Indices that nobody knows before the run.
      for (size_t k = 0; k < values_[i].size(); ++k) {
        if (spec.type == DataType::kInt32) {
          As<int32_t>(bytes.data())[k] = static_cast<int32_t>(values_[i][k]);
        } else {
          As<int64_t>(bytes.data())[k] = static_cast<int64_t>(values_[i][k]);
        }
      }
    }
  }
  const TensorSpec& spec = tensors.outputs[0];
  Bytes output(spec.bytes());
  // Whatever the kernel leaves out is seen.
  std::fill_n(As<float>(output.data()), spec.bytes() / sizeof(float),
              std::numeric_limits<float>::quiet_NaN());
  std::byte* outputs[] = {output.data()};
  Bytes scratch(kernel->scratch_size());
  parts_ = kernel->PartsFor(cores);
  if (cores == 1) {
    RKNND_RETURN_IF_ERROR(kernel->Run(inputs, outputs, scratch.data()));
  }
  for (uint32_t part = parts_; cores > 1 && part > 0; --part) {
    RKNND_RETURN_IF_ERROR(
        kernel->RunPart({part - 1, parts_}, inputs, outputs, scratch.data()));
  }
  std::vector<float> dense(static_cast<size_t>(spec.elements()));
  std::vector<bool> used(spec.bytes() / sizeof(float), false);
  ForEach(spec, [&](int64_t to, int64_t at) {
    dense[static_cast<size_t>(to)] = As<float>(output.data())[at];
    used[static_cast<size_t>(at)] = true;
  });
  padding_is_zero_ = true;
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i] && As<float>(output.data())[i] != 0.0F) {
      padding_is_zero_ = false;
    }
  }
  return dense;
}

std::vector<float> Noise(int64_t count, uint32_t seed) {
  std::vector<float> values;
  uint32_t state = seed * 2654435761U + 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    values.push_back(static_cast<float>(state >> 8) / 8388608.0F - 1.0F);
  }
  return values;
}

}  // namespace rknnd::soft::testing
