#include "driver/soft/plan/planner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/graph/tensor_scales.h"
#include "driver/soft/plan/io_transfer.h"
#include "driver/soft/plan/npu_view.h"
#include "driver/soft/plan/parts.h"
#include "driver/soft/plan/placement.h"
#include "driver/soft/plan/program.h"
#include "driver/soft/plan/program_ports.h"
#include "driver/soft/plan/reorder.h"
#include "driver/soft/plan/sram_plan.h"

namespace rknnd::soft {
namespace {

// Made from the graph, here and now.
class NewParts final : public PlanParts {
 public:
  explicit NewParts(ModelWeights& weights) : weights_(weights) {}

  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(
      const Operator& op, const KernelRequest& request) override {
    return op.make(request);
  }
  absl::StatusOr<const std::byte*> Keep(const Constant& constant,
                                        Placement placement) override {
    return weights_.Keep(constant, placement);
  }

 private:
  ModelWeights& weights_;
};

// What computes a layer that no library or file of tiles/ does.
constexpr char kLoops[] = "loops";

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

// Input `i`, if it is known now, is weights or a bias: reports show its shape.
bool IsWeight(const Node& node, size_t i) {
  if (node.type == "Conv" || node.type == "ConvTranspose" ||
      node.type == "Gemm" || node.type == "MatMul") {
    return i > 0;
  }
  // Between them lie scales and zero points.
  if (node.type == "QLinearConv") return i == 3 || i == 8;
  if (node.type == "QGemm") return i == 3 || i == 6;
  return node.type == "QLinearMatMul" && i == 3;
}

// I/O layers take these in any placement, others dense.
bool IsPlaced(const GraphPort& port, DataType type) {
  return type == DataType::kFloat32 || port.quantization.has_value();
}

class Planner {
 public:
  Planner(const Graph& graph, const OperatorTable& operators,
          const PlanOptions& options, ModelWeights& weights, PlanParts& parts)
      : graph_(graph),
        operators_(operators),
        options_(options),
        weights_(weights),
        parts_(parts),
        home_(graph.values.size()),
        scales_(TensorScales(graph)) {}

  absl::StatusOr<Plan> Run() {
    NativeForm form;
    form.half_block = options_.half_block;
    form.int8_block = options_.int8_block;
    form.int16_block = options_.int16_block;
    form.alignment = options_.width_alignment;
    RKNND_RETURN_IF_ERROR(MakePorts(graph_, form, program()));
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

  // `computes`: what it computes in, as the NPU calls it.
  uint32_t AddLayer(std::string name, std::string type, std::string input,
                    std::string output, std::string computes, bool on_cpu) {
    driver::LayerInfo layer;
    layer.name = std::move(name);
    layer.type = std::move(type);
    layer.input_shape = std::move(input);
    layer.output_shape = std::move(output);
    layer.data_type = std::move(computes);
    layer.on_cpu = on_cpu;
    program().info.layers.push_back(std::move(layer));
    return static_cast<uint32_t>(program().info.layers.size() - 1);
  }
  uint32_t AddLayer(const Node& node) {
    DataType type = graph_.value(node.outputs[0]).type;
    for (ValueId id : node.inputs) {
      if (id == kNoValue || graph_.value(id).constant != nullptr) continue;
      type = graph_.value(id).type;
      break;
    }
    return AddLayer(node.name, node.layer_type, InputShapes(node),
                    OutputShape(node), NpuTypeName(type),
                    RunsOnCpu(node, type));
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
          AddLayer(port.name, "InputOperator", "", ShapeText(*value.shape),
                   NpuTypeName(value.type), /*on_cpu=*/true);
      RKNND_ASSIGN_OR_RETURN(Tensor * tensor, Make(port.value, placement));
      program().input_tensors.push_back(tensor->spec);
      NeedScratch(InputScratch(*value.shape));
      AddStep(step, {}, {tensor});
      if (port.shown) Show(0, port.value, port.name, tensor->spec);
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
                            ShapeText(*value.shape), ShapeText(*value.shape),
                            NpuTypeName(value.type), /*on_cpu=*/true);
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
      if (port.shown) Show(0, port.value, port.name, tensor->spec);
    }
    return absl::OkStatus();
  }

  void Stop(const Node& node) {
    program().stop = absl::UnimplementedError(
        absl::StrCat("operator '",
                     node.domain.empty() ? "" : absl::StrCat(node.domain, "::"),
                     node.type, "' of node '", node.name, "' in model '",
                     graph_.name, "' is not supported by the software NPU"));
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
      const size_t steps = program().steps.size();
      RKNND_ASSIGN_OR_RETURN(Tensor * from, Get(node.inputs[0], Placement{},
                                                LayerOfReorder(node)));
      Tensor view = *from;
      view.spec.shape = *graph_.value(node.outputs[0]).shape;
      tensors_[{node.outputs[0], 1}] = view;
      if (program().steps.size() > steps && node.shown) {
        Show(1, node.outputs[0], graph_.value(node.outputs[0]).name, view.spec);
      }
      return absl::OkStatus();
    }
    NodePlacement placement =
        PlaceNode(graph_, node, op, options_.block, home_);
    // What belongs to the layer before it follows it at once.
    uint32_t layer =
        node.joins_layer
            ? static_cast<uint32_t>(program().info.layers.size()) - 1
            : AddLayer(node);
    plan_.layer_nodes.push_back({layer, &node});
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
        parts_.MakeKernel(op, KernelRequest{view, input_specs, output_specs,
                                            weights_, options_.cores}));
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
    driver::LayerInfo& info = program().info.layers[layer];
    if (kernel->PartsFor(options_.cores) > 1) info.splits = true;
    NameKernel(*kernel, info);
    AddKernel(std::move(kernel), layer, input_tensors, output_tensors);
    if (node.joins_layer) {
      std::erase_if(program().dumped, [&](const DumpedOperand& inner) {
        return program().steps[inner.step].layer == layer;
      });
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue || !node.shown) continue;
      Show(inputs.size() + i, node.outputs[i],
           graph_.value(node.outputs[i]).name, output_specs[i]);
    }
    WishParts(view, input_specs, input_tensors, output_specs, output_tensors);
    if (output_tensors.size() == 1 && output_tensors[0] != nullptr) {
      WishOverwrite(op, node.inputs.size(), input_specs, input_tensors,
                    *output_tensors[0]);
    }
    return absl::OkStatus();
  }

  // A layer of several nodes names what is not all loops of ours.
  static void NameKernel(const Kernel& kernel, driver::LayerInfo& layer) {
    const std::string name = kernel.implementation();
    if (layer.kernel.empty() || layer.kernel == kLoops) {
      layer.kernel = name.empty() ? kLoops : name;
    } else if (!name.empty() && !absl::StrContains(layer.kernel, name)) {
      absl::StrAppend(&layer.kernel, ", ", name);
    }
    layer.is_slow |= kernel.is_reference();
  }

  // A view has no layer of its own; a reorder before it needs one.
  uint32_t LayerOfReorder(const Node& node) {
    ValueId from = node.inputs[0];
    if (tensors_.contains({from, 1})) return 0;
    const uint32_t layer = AddLayer(node);
    plan_.layer_nodes.push_back({layer, &node});
    return layer;
  }

  [[nodiscard]] std::string InputShapes(const Node& node) const {
    std::string text;
    const auto add = [&](ValueId id) {
      absl::StrAppend(&text, text.empty() ? "" : ",",
                      ShapeText(*graph_.value(id).shape));
    };
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNoValue) continue;
      if (graph_.value(id).constant == nullptr || IsWeight(node, i)) add(id);
    }
    if (node.epilogue.add != kNoValue) add(node.epilogue.add);
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
    driver::TensorPlace place;
    place.name = from.name;
    place.data_type = NpuTypeName(from.type);
    place.shape = CommaShape(*from.shape);
    place.native_shape =
        CommaShape(NativeShape(*from.shape, from.type, options_));
    tensor.storage = arena_.Add(std::move(place), bytes);
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
                             parts_.Keep(*from.constant, placement));
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
    const uint32_t layer = step.layer;
    auto add = [this, now, layer](const Tensor* tensor, bool is_output) {
      Operand operand;
      if (tensor != nullptr && tensor->constant != nullptr) {
        operand.kind = Operand::Kind::kConstant;
        operand.constant = tensor->constant;
      } else if (tensor != nullptr) {
        operand.kind = Operand::Kind::kArena;
        operand.offset = tensor->storage;
        if (is_output) {
          arena_.Write(tensor->storage, now);
        } else {
          arena_.Read(tensor->storage, now, layer);
        }
      }
      program().operands.push_back(operand);
    };
    for (const Tensor* tensor : inputs) add(tensor, false);
    for (const Tensor* tensor : outputs) add(tensor, true);
    program().steps.push_back(std::move(step));
  }

  // A run that is dumped shows operand `operand` of the last step.
  void Show(size_t operand, ValueId value, const std::string& name,
            const TensorSpec& spec) {
    const Step& step = program().steps.back();
    program().dumped.push_back(
        {static_cast<uint32_t>(program().steps.size() - 1),
         step.first_operand + static_cast<uint32_t>(operand), name, spec,
         scales_[static_cast<size_t>(value)]});
  }

  // The pieces of a whole had better lie in it.
  void WishParts(const NodeView& node, const std::vector<TensorSpec>& inputs,
                 const std::vector<Tensor*>& input_tensors,
                 const std::vector<TensorSpec>& outputs,
                 const std::vector<Tensor*>& output_tensors) {
    const auto wish = [this](const Tensor* part, const Tensor* whole,
                             uint64_t offset, bool joins) {
      if (part == nullptr || whole == nullptr || part->constant != nullptr ||
          whole->constant != nullptr) {
        return;
      }
      arena_.WishPart(part->storage, whole->storage, offset, joins);
    };
    for (const PartPlace& place : PartsOfOutput(node, inputs)) {
      wish(input_tensors[place.part], output_tensors[0], place.offset, true);
    }
    for (const PartPlace& place : PartsOfInput(node, inputs, outputs)) {
      wish(output_tensors[place.part], input_tensors[0], place.offset, false);
    }
  }

  // What is read here for the last time had better be written over.
  void WishOverwrite(const Operator& op, size_t node_inputs,
                     const std::vector<TensorSpec>& inputs,
                     const std::vector<Tensor*>& input_tensors,
                     const Tensor& output) {
    if (op.overwrites == Overwrite::kNever) return;
    const bool added = op.overwrites == Overwrite::kAdded;
    for (size_t i = added ? node_inputs : 0; i < inputs.size(); ++i) {
      if (op.overwrites == Overwrite::kFirst && i > 0) break;
      const Tensor* home = input_tensors[i];
      if (home == nullptr || home->constant != nullptr) continue;
      const TensorSpec& spec = inputs[i];
      const bool alike =
          spec.shape == output.spec.shape &&
          spec.placement == output.spec.placement &&
          (spec.type == output.spec.type ||
           (SizeOf(spec.type) == 1 && SizeOf(output.spec.type) == 1));
      const auto readers = std::count_if(
          input_tensors.begin(), input_tensors.end(),
          [home](const Tensor* other) {
            return other != nullptr && other->constant == nullptr &&
                   other->storage == home->storage;
          });
      if (!alike || readers != 1) continue;
      arena_.WishOverwrite(output.storage, home->storage);
    }
  }

  absl::Status LayOut() {
    ArenaPlan& arena = plan_.arena;
    arena = arena_.Place(options_.programs);
    if (arena.memory.size > kMaxInternalBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("needs ", arena.memory.size >> 20,
                       " MiB of internal memory, at most ",
                       kMaxInternalBytes >> 20, " MiB are allowed"));
    }
    for (Operand& operand : program().operands) {
      if (operand.kind != Operand::Kind::kArena) continue;
      operand.offset = arena.OffsetOf(static_cast<StorageId>(operand.offset));
    }
    driver::ProgramInfo& info = program().info;
    info.internal_size = arena.memory.size;
    RKNND_ASSIGN_OR_RETURN(info.sram,
                           parts_.ChooseSram(arena.places, options_.sram_bytes,
                                             options_.programs));
    info.tensors = std::move(arena.places);
    return absl::OkStatus();
  }

  const Graph& graph_;
  const OperatorTable& operators_;
  const PlanOptions& options_;
  ModelWeights& weights_;
  PlanParts& parts_;
  Plan plan_;
  // A map: its elements stay where they are.
  std::map<std::pair<ValueId, int>, Tensor> tensors_;
  std::vector<Placement> home_;  // of each value, where it was made
  const std::vector<std::optional<Quantization>> scales_;  // of each value
  ArenaLayout arena_;
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const Graph& graph,
                              const OperatorTable& operators,
                              const PlanOptions& options,
                              ModelWeights& weights) {
  NewParts parts(weights);
  return MakePlan(graph, operators, options, weights, parts);
}

absl::StatusOr<Plan> MakePlan(const Graph& graph,
                              const OperatorTable& operators,
                              const PlanOptions& options, ModelWeights& weights,
                              PlanParts& parts) {
  return Planner(graph, operators, options, weights, parts).Run();
}

}  // namespace rknnd::soft
