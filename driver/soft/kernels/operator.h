// What one operator family gives the software NPU: a shape rule and a kernel.
// One small file per family in kernels/ and its folders (convolution.cc,
// index/select.cc, ...), each with a `RegisterX(OperatorTable&)`;
// kernels/families.h lists them.
//
// Called by graph/ (inference, constant folding) and plan/ (building a
// program) on the loading thread; Kernel::Run by the worker that holds the
// core. Shapes, attributes and constants come from a model file and are not
// trusted; by the time Run is called they have been checked.

#ifndef DRIVER_SOFT_KERNELS_OPERATOR_H_
#define DRIVER_SOFT_KERNELS_OPERATOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/soft/graph/graph.h"

namespace rknnd::soft {

// How a tensor lies in memory. Blocked: axis 1 cut into blocks of `block`
// channels, padded with zeros, the channels of a block innermost (N, C/b, H, W,
// b), which is oneDNN's nChw8c and nChw16c and the NPU's NC1HWC2. One block of
// all channels is NHWC, which is how 8-bit tensors lie between their layers.
struct Placement {
  int block = 1;  // 1: dense row-major
  friend bool operator==(const Placement&, const Placement&) = default;
};

struct TensorSpec {
  DataType type = DataType::kFloat32;
  Shape shape;
  Placement placement;

  [[nodiscard]] int64_t elements() const;  // without padding
  [[nodiscard]] uint64_t bytes() const;    // with padding
  // One block of all channels.
  [[nodiscard]] bool channels_last() const {
    return placement.block > 1 && shape.size() > 1 &&
           shape[1] == placement.block;
  }
};

// A node as its operator sees it while shapes are inferred.
// Thread: the loading thread.
class NodeView {
 public:
  NodeView(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] size_t input_count() const { return node_.inputs.size(); }
  [[nodiscard]] size_t output_count() const { return node_.outputs.size(); }
  [[nodiscard]] bool has_input(size_t i) const;
  // Only for inputs that are there.
  [[nodiscard]] const Shape& shape(size_t i) const;
  [[nodiscard]] DataType type(size_t i) const;
  // Null where the contents are known only when the job runs.
  [[nodiscard]] const Constant* constant(size_t i) const;

  [[nodiscard]] int64_t Int(std::string_view name, int64_t otherwise) const;
  [[nodiscard]] float Float(std::string_view name, float otherwise) const;
  [[nodiscard]] std::string String(std::string_view name,
                                   std::string_view otherwise) const;
  [[nodiscard]] std::vector<int64_t> Ints(std::string_view name) const;
  [[nodiscard]] std::vector<float> Floats(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> Strings(std::string_view name) const;
  [[nodiscard]] const Constant* Tensor(std::string_view name) const;
  [[nodiscard]] std::shared_ptr<const Graph> Body(std::string_view name) const;
  [[nodiscard]] bool Has(std::string_view name) const;
  // The integers of a constant int64 or int32 input. FAILED_PRECONDITION when
  // they are not known at load time.
  [[nodiscard]] absl::StatusOr<std::vector<int64_t>> ConstantInts(
      size_t i) const;

  // That input `i` is known. FAILED_PRECONDITION with advice where it is not.
  [[nodiscard]] absl::Status NeedsConstant(size_t i) const;

  // INVALID_ARGUMENT that names operator and node: "Conv 'conv1': `what`".
  [[nodiscard]] absl::Status Error(std::string_view what) const;

 private:
  const Graph& graph_;
  const Node& node_;
};

struct InferredOutput {
  DataType type = DataType::kFloat32;
  Shape shape;
};

// The model's weight memory, for what a kernel keeps (packed weights, tables).
// Equal contents are stored once, whichever kernels they come from.
class WeightStore {
 public:
  virtual ~WeightStore() = default;
  // `fill` writes the contents into `size` bytes that are zero; they are then
  // at the address returned, 64-byte aligned and read-only, which need not be
  // where they were written. What `fill` throws passes through; nothing is
  // stored then.
  virtual absl::StatusOr<const std::byte*> Store(
      size_t size, absl::FunctionRef<void(std::byte*)> fill) = 0;
  absl::StatusOr<const std::byte*> StoreCopy(
      std::span<const std::byte> contents) {
    return Store(contents.size(), [&](std::byte* room) {
      std::copy(contents.begin(), contents.end(), room);
    });
  }
};

// Which of so many parts of a layer's work: each core of a gang does one.
struct Part {
  uint32_t index = 0, count = 1;
};

// One layer's computation, bound to its shapes. Immutable once made.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Bytes of scratch a run needs, from the core's private memory.
  [[nodiscard]] virtual size_t scratch_size() const { return 0; }
  // Whether Run reads input `i` through its pointer where that input is a
  // constant. Where not (packed weights, shapes), no copy of it is kept.
  [[nodiscard]] virtual bool reads_constant(size_t i) const {
    (void)i;
    return true;
  }
  // What computes it, for reports: "bytes avx2", "oneDNN jit:avx2"; "" is a
  // loop of ours that compilers make for any CPU.
  [[nodiscard]] virtual std::string implementation() const { return ""; }
  // Whether that is a library's loop for any CPU where others of its kind have
  // kernels made for this one: tens of times slower than they.
  [[nodiscard]] virtual bool is_reference() const { return false; }
  // `inputs[i]` is null for an input left out and for constants a kernel took
  // into its weights; the epilogue's added tensor comes after the node's own
  // inputs. Thread: worker; many at once. Allocates nothing.
  virtual absl::Status Run(std::span<const std::byte* const> inputs,
                           std::span<std::byte* const> outputs,
                           std::byte* scratch) const = 0;

  // Into how many parts the work is cut for a gang of so many cores (work.h);
  // 1: one core does it while the others wait. At most `cores`.
  [[nodiscard]] virtual uint32_t PartsFor(uint32_t cores) const {
    (void)cores;
    return 1;
  }
  // One of PartsFor's parts: all of them together, in any order or at once, do
  // what Run does, to the bit. Each has scratch of its own. Thread: as Run.
  virtual absl::Status RunPart(Part part,
                               std::span<const std::byte* const> inputs,
                               std::span<std::byte* const> outputs,
                               std::byte* scratch) const {
    return part.index == 0 ? Run(inputs, outputs, scratch) : absl::OkStatus();
  }
};

// What a kernel is made from.
struct KernelRequest {
  const NodeView& node;
  std::span<const TensorSpec> inputs;  // as the node's, then the epilogue's add
  std::span<const TensorSpec> outputs;
  WeightStore& weights;
  // The largest gang that will run it.
  uint32_t cores = 1;
};

// Which placements an operator's kernel takes; plan/ chooses among them and
// puts reorders in between.
enum class PlacementRule : uint8_t {
  kDense,        // dense only
  kElementwise,  // any, the same for all non-scalar inputs and the output
  kChannelwise,  // Conv, pooling: blocked where the operator says it pays
};

// Which of its inputs a kernel may write its output over, where they have the
// output's type, shape and placement: those of which no element is read after
// that of the output is written.
enum class Overwrite : uint8_t {
  kNever,
  kFirst,  // input 0
  kAny,    // any one
  kAdded,  // the epilogue's added tensor
};

class Expansion;

struct Operator {
  std::string_view domain = {};  // "" is ONNX's own
  std::string_view type = {};
  PlacementRule placement = PlacementRule::kDense;
  absl::StatusOr<std::vector<InferredOutput>> (*infer)(const NodeView&) =
      nullptr;
  absl::StatusOr<std::unique_ptr<Kernel>> (*make)(const KernelRequest&) =
      nullptr;
  // In place of both: writes the node as others do (expansion.h).
  absl::Status (*expand)(const NodeView&, Expansion&) = nullptr;
  // kChannelwise: whether input i (or, for i == input count, the output) may
  // be blocked by `block` given the shapes; kElementwise: likewise (a
  // broadcast input must be dense-compatible). Null: never.
  bool (*may_block)(const NodeView&, size_t i, int block) = nullptr;
  // Whether input i (or the output) may lie with its channels last: operators
  // on 8-bit tensors. kChannelwise: wherever it may; kElementwise: where most
  // of what it reads lies so. Null: never.
  bool (*may_channels_last)(const NodeView&, size_t i) = nullptr;
  // What fusion may put behind it.
  bool takes_activation = false;
  bool takes_add = false;
  Overwrite overwrites = Overwrite::kNever;
};

class OperatorTable {
 public:
  void Add(const Operator& op);
  // Null when there is none.
  [[nodiscard]] const Operator* Find(std::string_view domain,
                                     std::string_view type) const;
  // All operators of this build.
  static const OperatorTable& Get();

 private:
  std::unordered_map<std::string, Operator> operators_;
};

// Channels per block of floats on this CPU: 16 with AVX-512, 8 on other x86
// CPUs from SSE4.1 on and on arm64, else 1. A rule, never a measurement: equal
// inputs give equal outputs on every start.
int ChannelBlock();

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_OPERATOR_H_
