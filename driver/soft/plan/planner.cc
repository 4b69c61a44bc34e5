#include "driver/soft/plan/planner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/plan/io_transfer.h"
#include "driver/soft/plan/placement.h"
#include "driver/soft/plan/reorder.h"

namespace rknnd::soft {
namespace {

using driver::Direction;

// Names a tensor while steps are made; its place in the arena comes last.
using StorageId = uint32_t;
constexpr StorageId kNoStorage = UINT32_MAX;

// One value in one placement.
struct Tensor {
  TensorSpec spec;
  StorageId storage = kNoStorage;
  const std::byte* constant = nullptr;
};

// The contents stay as they are, in the same order.
bool IsView(const Node& node) {
  return node.domain.empty() &&
         (node.type == "Reshape" || node.type == "Flatten" ||
          node.type == "Squeeze" || node.type == "Unsqueeze" ||
          node.type == "Identity") &&
         node.outputs.size() == 1 &&
         node.epilogue.activation == Activation::kNone &&
         node.epilogue.add == kNoValue;
}

// I/O layers take these in any placement, others dense.
bool IsPlaced(const GraphPort& port, DataType type) {
  return type == DataType::kFloat32 || port.quantization.has_value();
}

class Planner {
 public:
  Planner(const Graph& graph, const OperatorTable& operators,
          const PlanOptions& options, ModelWeights& weights)
      : graph_(graph),
        operators_(operators),
        options_(options),
        weights_(weights),
        home_(graph.values.size()) {}

  absl::StatusOr<Plan> Run() {
    RKNND_RETURN_IF_ERROR(MakePorts());
    RKNND_RETURN_IF_ERROR(AddInputs());
    for (const Node& node : graph_.nodes) {
      const Operator* op = operators_.Find(node.domain, node.type);
      if (op == nullptr) {
        Stop(node);
        break;
      }
      RKNND_RETURN_IF_ERROR(AddNode(node, *op));
    }
    if (program().stop.ok()) RKNND_RETURN_IF_ERROR(AddOutputs());
    RKNND_RETURN_IF_ERROR(LayOut());
    return std::move(plan_);
  }

 private:
  Program& program() { return plan_.program; }

  absl::Status MakePorts() {
    for (const GraphPort& port : graph_.inputs) {
      const Value& value = graph_.value(port.value);
      RKNND_ASSIGN_OR_RETURN(
          IoPort made, IoPort::Make(Direction::kInput, port.name, value.type,
                                    *value.shape, options_.half_block,
                                    {.quantization = port.quantization,
                                     .mean = port.mean,
                                     .deviation = port.deviation,
                                     .channels_last = port.channels_last,
                                     .table = {}}));
      program().info.inputs.push_back(made.attr());
      program().info.native_inputs.push_back(made.native());
      program().inputs.push_back(std::move(made));
    }
    for (const GraphPort& port : graph_.outputs) {
      const Value& value = graph_.value(port.value);
      if (!value.shape.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "output '", port.name,
            "' lies behind an operator that is not a standard one and "
            "declares no fixed shape"));
      }
      RKNND_ASSIGN_OR_RETURN(
          IoPort made, IoPort::Make(Direction::kOutput, port.name, value.type,
                                    *value.shape, options_.half_block,
                                    {.quantization = port.quantization,
                                     .mean = {},
                                     .deviation = {},
                                     .channels_last = false,
                                     .table = {}}));
      program().info.outputs.push_back(made.attr());
      program().info.native_outputs.push_back(made.native());
      program().outputs.push_back(std::move(made));
    }
    return absl::OkStatus();
  }

  uint32_t AddLayer(std::string name, std::string type, std::string input,
                    std::string output) {
    program().info.layers.push_back({std::move(name), std::move(type),
                                     std::move(input), std::move(output)});
    return static_cast<uint32_t>(program().info.layers.size() - 1);
  }

  // What the first reader of an input wants; then no reorder is needed.
  Placement WantedByReader(ValueId input) {
    for (const Node& node : graph_.nodes) {
      const Operator* op = operators_.Find(node.domain, node.type);
      if (op == nullptr) break;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != input || IsView(node)) continue;
        return PlaceNode(graph_, node, *op, options_.block, home_).inputs[i];
      }
    }
    return {};
  }

  absl::Status AddInputs() {
    for (uint32_t i = 0; i < graph_.inputs.size(); ++i) {
      const GraphPort& port = graph_.inputs[i];
      const Value& value = graph_.value(port.value);
      Placement placement;
      if (value.shape->size() == 4 && IsPlaced(port, value.type)) {
        placement = WantedByReader(port.value);
      }
      Step step;
      step.kind = Step::Kind::kInput;
      step.port = i;
      step.layer =
          AddLayer(port.name, "InputOperator", "", ShapeText(*value.shape));
      RKNND_ASSIGN_OR_RETURN(Tensor * tensor, Make(port.value, placement));
      program().input_tensors.push_back(tensor->spec);
      NeedScratch(TransferScratch(*value.shape));
      AddStep(step, {}, {tensor});
    }
    return absl::OkStatus();
  }

  absl::Status AddOutputs() {
    for (uint32_t i = 0; i < graph_.outputs.size(); ++i) {
      const GraphPort& port = graph_.outputs[i];
      const Value& value = graph_.value(port.value);
      Step step;
      step.kind = Step::Kind::kOutput;
      step.port = i;
      step.layer = AddLayer(port.name, "OutputOperator",
                            ShapeText(*value.shape), ShapeText(*value.shape));
      Placement placement;
      if (value.constant == nullptr && value.shape->size() == 4 &&
          IsPlaced(port, value.type)) {
        placement = home_[static_cast<size_t>(port.value)];
      }
      RKNND_ASSIGN_OR_RETURN(Tensor * tensor,
                             Get(port.value, placement, step.layer));
      program().output_tensors.push_back(tensor->spec);
      NeedScratch(TransferScratch(*value.shape));
      AddStep(step, {tensor}, {});
    }
    return absl::OkStatus();
  }

  void Stop(const Node& node) {
    program().stop = absl::UnimplementedError(absl::StrCat(
        "operator '", node.domain, "::", node.type, "' of node '", node.name,
        "' in model '", graph_.name, "' is not supported by the software NPU"));
  }

  absl::Status AddNode(const Node& node, const Operator& op) {
    for (ValueId id : node.inputs) {
      if (id != kNoValue && !graph_.value(id).shape.has_value()) {
        return absl::InternalError(
            absl::StrCat("node '", node.name, "' has no shapes"));
      }
    }
    if (IsView(node) && graph_.value(node.inputs[0]).constant == nullptr) {
      // Another name for the same bytes.
      RKNND_ASSIGN_OR_RETURN(Tensor * from, Get(node.inputs[0], Placement{},
                                                LayerOfReorder(node)));
      Tensor view = *from;
      view.spec.shape = *graph_.value(node.outputs[0]).shape;
      tensors_[{node.outputs[0], 1}] = view;
      return absl::OkStatus();
    }
    NodePlacement placement =
        PlaceNode(graph_, node, op, options_.block, home_);
    uint32_t layer = AddLayer(node.name, node.layer_type, InputShapes(node),
                              OutputShape(node));
    std::vector<ValueId> inputs = node.inputs;
    if (node.epilogue.add != kNoValue) inputs.push_back(node.epilogue.add);

    std::vector<TensorSpec> input_specs;
    std::vector<Tensor*> input_tensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
      input_specs.emplace_back();
      input_tensors.push_back(nullptr);
      if (inputs[i] == kNoValue) continue;
      const Value& value = graph_.value(inputs[i]);
      input_specs[i] = {value.type, *value.shape, placement.inputs[i]};
      if (value.constant != nullptr) continue;
      RKNND_ASSIGN_OR_RETURN(input_tensors[i],
                             Get(inputs[i], placement.inputs[i], layer));
    }
    std::vector<TensorSpec> output_specs;
    std::vector<Tensor*> output_tensors;
    for (ValueId id : node.outputs) {
      output_specs.emplace_back();
      output_tensors.push_back(nullptr);
      if (id == kNoValue) continue;
      RKNND_ASSIGN_OR_RETURN(output_tensors.back(), Make(id, placement.output));
      output_specs.back() = output_tensors.back()->spec;
    }
    NodeView view(graph_, node);
    RKNND_ASSIGN_OR_RETURN(
        std::unique_ptr<Kernel> kernel,
        op.make(KernelRequest{view, input_specs, output_specs, weights_}));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == kNoValue ||
          graph_.value(inputs[i]).constant == nullptr ||
          !kernel->reads_constant(i)) {
        continue;
      }
      RKNND_ASSIGN_OR_RETURN(input_tensors[i],
                             Get(inputs[i], placement.inputs[i], layer));
    }
    if (kernel->scratch_size() > kMaxScratchBytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "node '", node.name, "' (", node.type, ") needs ",
          kernel->scratch_size() >> 20, " MiB to compute in, at most ",
          kMaxScratchBytes >> 20, " MiB are allowed"));
    }
    AddKernel(std::move(kernel), layer, input_tensors, output_tensors);
    return absl::OkStatus();
  }

  // A view has no layer of its own; a reorder before it needs one.
  uint32_t LayerOfReorder(const Node& node) {
    ValueId from = node.inputs[0];
    if (tensors_.contains({from, 1})) return 0;
    return AddLayer(node.name, node.layer_type, InputShapes(node),
                    OutputShape(node));
  }

  [[nodiscard]] std::string InputShapes(const Node& node) const {
    std::string text;
    for (ValueId id : node.inputs) {
      if (id == kNoValue || graph_.value(id).constant != nullptr) continue;
      absl::StrAppend(&text, text.empty() ? "" : ",",
                      ShapeText(*graph_.value(id).shape));
    }
    return text;
  }
  [[nodiscard]] std::string OutputShape(const Node& node) const {
    for (ValueId id : node.outputs) {
      if (id != kNoValue) return ShapeText(*graph_.value(id).shape);
    }
    return "";
  }

  // A new tensor for `value`, which lies so where it is made.
  absl::StatusOr<Tensor*> Make(ValueId value, Placement placement) {
    const Value& from = graph_.value(value);
    Tensor tensor;
    tensor.spec = {from.type, *from.shape, placement};
    uint64_t bytes = tensor.spec.bytes();
    if (bytes > static_cast<uint64_t>(kMaxTensorBytes)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("tensor '", from.name, "' of shape ",
                       ShapeText(*from.shape), " needs ", bytes,
                       " bytes, at most ", kMaxTensorBytes, " are allowed"));
    }
    tensor.storage = static_cast<StorageId>(plan_.lifetimes.size());
    auto now = static_cast<uint32_t>(program().steps.size());
    plan_.lifetimes.push_back({bytes, now, now});
    home_[static_cast<size_t>(value)] = placement;
    return &(tensors_[{value, placement.block}] = std::move(tensor));
  }

  // `value` in that placement: as it is, or reordered for `layer`.
  absl::StatusOr<Tensor*> Get(ValueId value, Placement placement,
                              uint32_t layer) {
    auto known = tensors_.find({value, placement.block});
    if (known != tensors_.end()) return &known->second;
    const Value& from = graph_.value(value);
    if (from.constant != nullptr) {
      Tensor tensor;
      tensor.spec = {from.type, *from.shape, placement};
      RKNND_ASSIGN_OR_RETURN(tensor.constant,
                             weights_.Keep(*from.constant, placement));
      return &(tensors_[{value, placement.block}] = std::move(tensor));
    }
    Placement home = home_[static_cast<size_t>(value)];
    auto source = tensors_.find({value, home.block});
    if (source == tensors_.end()) {
      return absl::InternalError(
          absl::StrCat("tensor '", from.name, "' is read before it is made"));
    }
    RKNND_ASSIGN_OR_RETURN(Tensor * made, Make(value, placement));
    home_[static_cast<size_t>(value)] = home;
    Tensor* original = &tensors_.find({value, home.block})->second;
    AddKernel(std::make_unique<ReorderKernel>(original->spec, made->spec),
              layer, {original}, {made});
    return made;
  }

  void AddKernel(std::unique_ptr<Kernel> kernel, uint32_t layer,
                 const std::vector<Tensor*>& inputs,
                 const std::vector<Tensor*>& outputs) {
    Step step;
    step.kernel = kernel.get();
    step.layer = layer;
    uint64_t tables =
        (inputs.size() + outputs.size()) * sizeof(void*) + kTensorAlignment;
    NeedScratch(tables + kernel->scratch_size());
    plan_.kernels.push_back(std::move(kernel));
    AddStep(step, inputs, outputs);
  }

  void NeedScratch(uint64_t size) {
    program().scratch_size = std::max(program().scratch_size, size);
  }

  // For the time being an operand of the arena carries its storage.
  void AddStep(Step step, const std::vector<Tensor*>& inputs,
               const std::vector<Tensor*>& outputs) {
    auto now = static_cast<uint32_t>(program().steps.size());
    step.first_operand = static_cast<uint32_t>(program().operands.size());
    step.inputs = static_cast<uint32_t>(inputs.size());
    step.outputs = static_cast<uint32_t>(outputs.size());
    auto add = [this, now](const Tensor* tensor, bool is_output) {
      Operand operand;
      if (tensor != nullptr && tensor->constant != nullptr) {
        operand.kind = Operand::Kind::kConstant;
        operand.constant = tensor->constant;
      } else if (tensor != nullptr) {
        operand.kind = Operand::Kind::kArena;
        operand.offset = tensor->storage;
        Lifetime& life = plan_.lifetimes[tensor->storage];
        if (is_output) life.first = now;
        life.last = now;
      }
      program().operands.push_back(operand);
    };
    for (const Tensor* tensor : inputs) add(tensor, false);
    for (const Tensor* tensor : outputs) add(tensor, true);
    program().steps.push_back(std::move(step));
  }

  absl::Status LayOut() {
    plan_.memory = PlanMemory(plan_.lifetimes);
    if (plan_.memory.size > kMaxInternalBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("needs ", plan_.memory.size >> 20,
                       " MiB of internal memory, at most ",
                       kMaxInternalBytes >> 20, " MiB are allowed"));
    }
    for (Operand& operand : program().operands) {
      if (operand.kind != Operand::Kind::kArena) continue;
      operand.offset =
          plan_.memory.offsets[static_cast<size_t>(operand.offset)];
    }
    program().info.internal_size = plan_.memory.size;
    return absl::OkStatus();
  }

  const Graph& graph_;
  const OperatorTable& operators_;
  const PlanOptions& options_;
  ModelWeights& weights_;
  Plan plan_;
  // A map: its elements stay where they are.
  std::map<std::pair<ValueId, int>, Tensor> tensors_;
  std::vector<Placement> home_;  // of each value, where it was made
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const Graph& graph,
                              const OperatorTable& operators,
                              const PlanOptions& options,
                              ModelWeights& weights) {
  return Planner(graph, operators, options, weights).Run();
}

}  // namespace rknnd::soft
