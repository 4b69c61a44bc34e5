#include "driver/soft/graph/fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::soft {
namespace {

constexpr size_t kAlignment = 64;

struct AlignedDelete {
  void operator()(std::byte* memory) const {
    ::operator delete[](memory, std::align_val_t{kAlignment});
  }
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

AlignedBytes Allocate(size_t size) {
  return AlignedBytes(static_cast<std::byte*>(::operator new[](
      size + kAlignment, std::align_val_t{kAlignment}, std::nothrow)));
}

// Weights of a kernel that runs once.
class PassingWeights final : public WeightStore {
 public:
  absl::StatusOr<const std::byte*> Store(
      size_t size, absl::FunctionRef<void(std::byte*)> fill) override {
    AlignedBytes memory = Allocate(size);
    if (memory == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for ", size, " bytes of weights"));
    }
    std::memset(memory.get(), 0, size);
    fill(memory.get());
    kept_.push_back(std::move(memory));
    return kept_.back().get();
  }

 private:
  std::vector<AlignedBytes> kept_;
};

// Operators whose work is not in proportion to their tensors: windows,
// products, steps, pairs. A small file could keep the loading thread busy for
// ever.
bool IsHeavy(const Node& node) {
  for (const char* part :
       {"Conv", "MatMul", "Gemm", "LSTM", "GRU", "RNN", "NonMaxSuppression"}) {
    if (node.type.find(part) != std::string::npos) return true;
  }
  return false;
}

// Operators whose windows may be as large as the tensor, and one that takes as
// many points of it as its regions say.
bool IsNeverFolded(const Node& node) {
  return node.type.find("Pool") != std::string::npos || node.type == "LRN" ||
         node.type == "RoiAlign";
}

// Operators that do no more with an element than to move it, compare it or
// compute with it once.
constexpr std::string_view kPlain[] = {"Abs",
                                       "Add",
                                       "And",
                                       "ArgMax",
                                       "ArgMin",
                                       "BatchNormalization",
                                       "Cast",
                                       "CastLike",
                                       "Ceil",
                                       "Clip",
                                       "Concat",
                                       "Constant",
                                       "ConstantOfShape",
                                       "DepthToSpace",
                                       "DequantizeLinear",
                                       "Div",
                                       "Equal",
                                       "Expand",
                                       "EyeLike",
                                       "Flatten",
                                       "Floor",
                                       "Gather",
                                       "Greater",
                                       "GreaterOrEqual",
                                       "Identity",
                                       "LeakyRelu",
                                       "Less",
                                       "LessOrEqual",
                                       "Max",
                                       "Mean",
                                       "Min",
                                       "Mul",
                                       "Neg",
                                       "Not",
                                       "OneHot",
                                       "Or",
                                       "PRelu",
                                       "Pad",
                                       "QuantizeLinear",
                                       "Range",
                                       "Reciprocal",
                                       "ReduceL1",
                                       "ReduceL2",
                                       "ReduceMax",
                                       "ReduceMean",
                                       "ReduceMin",
                                       "ReduceProd",
                                       "ReduceSum",
                                       "ReduceSumSquare",
                                       "Relu",
                                       "Reshape",
                                       "Round",
                                       "Shape",
                                       "Sign",
                                       "Size",
                                       "Slice",
                                       "SpaceToDepth",
                                       "Split",
                                       "Sqrt",
                                       "Squeeze",
                                       "Sub",
                                       "Sum",
                                       "Tile",
                                       "Transpose",
                                       "Trilu",
                                       "Unsqueeze",
                                       "Where",
                                       "Xor"};

// What an element of the node costs, measured where it costs most: a plain one
// up to 10 ns, functions (Mish, Pow of integers) 50, sorting 250.
uint64_t ElementCost(const Node& node) {
  constexpr uint64_t kFunction = 10, kSort = 48;
  if (node.type == "TopK" || node.type == "GridSample") return kSort;
  const bool plain = std::binary_search(std::begin(kPlain), std::end(kPlain),
                                        std::string_view(node.type));
  return plain ? 1 : kFunction;
}

// What the products of a heavy node cost at most, one element of a simple node
// being 1. `elements`: of its tensors.
uint64_t ProductsCost(const Node& node, std::vector<uint64_t> elements) {
  std::sort(elements.begin(), elements.end(), std::greater<>());
  elements.resize(3, 1);
  const auto largest = static_cast<double>(elements[0]);
  // Convolutions and others: every element of the one with every element of the
  // other, by oneDNN's reference where the kernel is odd. Products of (m, k)
  // and (k, n): m k n is the root of the three sizes' product.
  constexpr double kSlow = 64, kQuick = 8;
  const bool of_matrices = node.type.find("MatMul") != std::string::npos ||
                           node.type.find("Gemm") != std::string::npos;
  const double cost =
      of_matrices
          ? kQuick * std::sqrt(largest * static_cast<double>(elements[1]) *
                               static_cast<double>(elements[2]))
          : kSlow * largest * largest;
  return static_cast<uint64_t>(std::min(cost, 1e18));
}

TensorSpec SpecOf(const Value& value) {
  return {value.type, *value.shape, Placement{}};
}

}  // namespace

absl::StatusOr<bool> Folder::Fold(Graph& graph, const Node& node,
                                  const Operator& op) {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<const std::byte*> input_data;
  // An empty tensor still has an address.
  static constexpr std::byte kNothing[kAlignment] = {};
  for (ValueId id : node.inputs) {
    if (id == kNoValue) {
      inputs.emplace_back();
      input_data.push_back(nullptr);
      continue;
    }
    const Value& value = graph.value(id);
    if (value.constant == nullptr) return false;
    inputs.push_back(SpecOf(value));
    input_data.push_back(
        value.constant->data.empty() ? kNothing : value.constant->data.data());
  }
  uint64_t size = 0;
  std::vector<uint64_t> elements;
  for (ValueId id : node.outputs) {
    outputs.push_back(id == kNoValue ? TensorSpec{} : SpecOf(graph.value(id)));
    if (id != kNoValue) size += outputs.back().bytes();
    if (size > kMaxOutput) return false;
    elements.push_back(static_cast<uint64_t>(outputs.back().elements()));
  }
  if (total_ + size > kMaxTotal) return false;
  for (const TensorSpec& input : inputs) {
    elements.push_back(static_cast<uint64_t>(input.elements()));
  }
  if (IsNeverFolded(node)) return false;
  uint64_t work = std::accumulate(elements.begin(), elements.end(), uint64_t{});
  if (work > kSmallWork) work *= ElementCost(node);
  if (IsHeavy(node)) {
    work += ProductsCost(node, std::move(elements));
  }
  if (work > kMaxWork - work_) return false;
  if (pool_ != nullptr && work > kSmallWork) {
    if (size > pool_->bytes || work > pool_->work) return false;
    pool_->bytes -= size;
    pool_->work -= work;
  }
  work_ += work;
  total_ += size;

  PassingWeights weights;
  NodeView view(graph, node);
  RKNND_ASSIGN_OR_RETURN(
      std::unique_ptr<Kernel> kernel,
      op.make(KernelRequest{view, inputs, outputs, weights}));
  if (kernel->scratch_size() > kMaxOutput) return false;
  AlignedBytes scratch = Allocate(kernel->scratch_size());
  std::vector<std::shared_ptr<Constant>> results;
  std::vector<std::byte*> output_data;
  std::byte unused[kAlignment];
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    results.push_back(nullptr);
    output_data.push_back(nullptr);
    if (node.outputs[i] == kNoValue) continue;
    results[i] = std::make_shared<Constant>();
    results[i]->type = outputs[i].type;
    results[i]->shape = outputs[i].shape;
    results[i]->data.resize(outputs[i].bytes());
    output_data[i] =
        results[i]->data.empty() ? unused : results[i]->data.data();
  }
  if (scratch == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory to compute node '", node.name, "'"));
  }
  RKNND_RETURN_IF_ERROR(kernel->Run(input_data, output_data, scratch.get()));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (results[i] != nullptr) {
      graph.value(node.outputs[i]).constant = std::move(results[i]);
    }
  }
  return true;
}

}  // namespace rknnd::soft
