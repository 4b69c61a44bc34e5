#include "driver/soft/import/onnx_import.h"

#include <onnx/onnx_pb.h>

#include <climits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/import/attribute_import.h"
#include "driver/soft/import/parse.h"
#include "driver/soft/import/shapes.h"
#include "driver/soft/import/tensor_import.h"
#include "driver/soft/import/topology.h"
#include "driver/soft/import/weight_owner.h"
#include "driver/tensor.h"

namespace rknnd::soft {
namespace {

// Builds one Graph from one GraphProto. Errors name node or value; the caller
// adds the model.
class Importer {
 public:
  Importer(const onnx::ModelProto& model, const WeightOwner& owner)
      : model_(model), proto_(model.graph()), owner_(owner) {}

  absl::StatusOr<Graph> Run() {
    if (proto_.node_size() > kMaxNodes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("has ", proto_.node_size(), " nodes, at most ",
                       kMaxNodes, " are taken"));
    }
    if (proto_.input_size() > kMaxPorts + proto_.initializer_size() ||
        proto_.output_size() > kMaxPorts) {
      return absl::ResourceExhaustedError(
          absl::StrCat("has more than ", kMaxPorts, " inputs or outputs"));
    }
    graph_.name = proto_.name();
    for (const auto& entry : model_.metadata_props()) {
      graph_.metadata[entry.key()] = entry.value();
    }
    for (const auto& opset : model_.opset_import()) {
      std::string domain =
          IsStandardDomain(opset.domain()) ? "" : opset.domain();
      // A version that does not fit is as good as none.
      opsets_[domain] = opset.version() > 0 && opset.version() < INT_MAX
                            ? static_cast<int>(opset.version())
                            : 0;
    }
    if (proto_.sparse_initializer_size() > 0) {
      return absl::UnimplementedError(absl::StrCat(
          "sparse initializer '", proto_.sparse_initializer(0).values().name(),
          "' is not supported: save it dense"));
    }
    RKNND_RETURN_IF_ERROR(Initializers());
    RKNND_RETURN_IF_ERROR(Inputs());
    RKNND_RETURN_IF_ERROR(DefineNodeOutputs());
    for (int n = 0; n < proto_.node_size(); ++n) {
      RKNND_RETURN_IF_ERROR(AddNode(n));
    }
    RKNND_RETURN_IF_ERROR(Outputs());
    for (const auto& info : proto_.value_info()) Declare(info);
    RKNND_RETURN_IF_ERROR(SortNodes(graph_));
    return std::move(graph_);
  }

 private:
  // A new value of that name. ONNX gives every name one definition.
  absl::StatusOr<ValueId> Define(const std::string& name,
                                 const std::string& by) {
    auto id = static_cast<ValueId>(graph_.values.size());
    if (!ids_.emplace(name, id).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "value '", name, "' is defined twice, the second time by ", by));
    }
    graph_.values.emplace_back();
    graph_.values.back().name = name;
    return id;
  }

  absl::Status Initializers() {
    for (const auto& tensor : proto_.initializer()) {
      std::string what = absl::StrCat("initializer '", tensor.name(), "'");
      RKNND_ASSIGN_OR_RETURN(std::shared_ptr<const Constant> constant,
                             InitializerOf(tensor, what));
      RKNND_ASSIGN_OR_RETURN(ValueId id, Define(tensor.name(), what));
      SetConstant(id, std::move(constant));
    }
    return absl::OkStatus();
  }

  // Its own data, or what the model has whose weights this one shares.
  absl::StatusOr<std::shared_ptr<const Constant>> InitializerOf(
      const onnx::TensorProto& tensor, const std::string& what) {
    const bool elsewhere =
        tensor.data_location() == onnx::TensorProto::EXTERNAL &&
        owner_.has(tensor.name());
    if (!elsewhere && !LacksData(tensor)) return ImportTensor(tensor, what);
    const Shape shape(tensor.dims().begin(), tensor.dims().end());
    if (absl::StatusOr<int64_t> elements = ElementCount(shape);
        !elements.ok()) {
      return base::Annotate(elements.status(), what);
    }
    return owner_.Take({tensor.name(), what, tensor.data_type(), &shape});
  }

  void SetConstant(ValueId id, std::shared_ptr<const Constant> constant) {
    Value& value = graph_.value(id);
    value.type = constant->type;
    value.shape = constant->shape;
    value.constant = std::move(constant);
  }

  // Type and shape of a graph input or output, as far as the file knows them;
  // `open` says what it does not. The first dim is the batch: unknown, it is
  // one.
  absl::Status DeclareTensor(const onnx::ValueInfoProto& info,
                             const std::string& what, Value& value,
                             int32_t* onnx_type, std::string* open) {
    if (!info.type().has_tensor_type()) {
      return absl::UnimplementedError(
          absl::StrCat(what, " is not a tensor; only tensors are supported"));
    }
    const auto& tensor = info.type().tensor_type();
    std::optional<DataType> type = InnerType(tensor.elem_type());
    if (!type.has_value()) {
      return absl::UnimplementedError(absl::StrCat(
          what, " has element type ", OnnxTypeName(tensor.elem_type()),
          ", which the software NPU does not have"));
    }
    value.type = *type;
    *onnx_type = tensor.elem_type();
    if (!tensor.has_shape()) {
      *open = " declares no shape: give it a fixed one";
      return absl::OkStatus();
    }
    Shape shape;
    for (int i = 0; i < tensor.shape().dim_size(); ++i) {
      const auto& dim = tensor.shape().dim(i);
      int64_t extent = dim.dim_value();
      if (!dim.has_dim_value() || extent < 0) {
        if (i == 0) {
          extent = 1;
        } else {
          *open = absl::StrCat(
              ": dimension ", i,
              dim.dim_param().empty()
                  ? std::string()
                  : absl::StrCat(" ('", dim.dim_param(), "')"),
              " is not fixed: export the model with a fixed shape");
          return absl::OkStatus();
        }
      }
      shape.push_back(extent);
    }
    absl::StatusOr<int64_t> elements = ElementCount(shape);
    if (!elements.ok()) return base::Annotate(elements.status(), what);
    value.shape = std::move(shape);
    return absl::OkStatus();
  }

  // The dims of the file, -1 where it gives no number.
  static std::optional<Shape> DeclaredDims(const onnx::ValueInfoProto& info) {
    if (!info.type().tensor_type().has_shape()) return std::nullopt;
    Shape dims;
    for (const auto& dim : info.type().tensor_type().shape().dim()) {
      dims.push_back(
          dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1);
    }
    return dims;
  }

  absl::Status Inputs() {
    for (const auto& info : proto_.input()) {
      // Older files list initializers as inputs too; they are constants here.
      auto known = ids_.find(info.name());
      if (known != ids_.end() && graph_.value(known->second).constant &&
          listed_.insert(info.name()).second) {
        continue;
      }
      std::string what = absl::StrCat("input '", info.name(), "'");
      RKNND_ASSIGN_OR_RETURN(ValueId id, Define(info.name(), what));
      // Of an older file whose weights were removed only this is left.
      if (owner_.has(info.name())) {
        RKNND_RETURN_IF_ERROR(TakeInput(info, what, id));
        continue;
      }
      GraphPort port{info.name(), id, 0};
      RKNND_RETURN_IF_ERROR(DeclareTensor(info, what, graph_.value(id),
                                          &port.onnx_type, &port.open));
      port.declared = DeclaredDims(info);
      graph_.inputs.push_back(std::move(port));
      if (graph_.inputs.size() > size_t{kMaxPorts}) {
        return absl::ResourceExhaustedError(
            absl::StrCat("has more than ", kMaxPorts, " inputs"));
      }
    }
    return absl::OkStatus();
  }

  // A weight of the owner's that this file lists as an input.
  absl::Status TakeInput(const onnx::ValueInfoProto& info,
                         const std::string& what, ValueId id) {
    const auto& tensor = info.type().tensor_type();
    Shape shape;
    for (const auto& dim : tensor.shape().dim()) {
      shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    }
    RKNND_ASSIGN_OR_RETURN(
        std::shared_ptr<const Constant> constant,
        owner_.Take({info.name(), what, tensor.elem_type(),
                     tensor.has_shape() ? &shape : nullptr}));
    SetConstant(id, std::move(constant));
    return absl::OkStatus();
  }

  // What a node reads and nothing in this file makes.
  absl::StatusOr<ValueId> DefineMissing(const std::string& name,
                                        const Node& node) {
    const std::string what = absl::StrCat("node '", node.name, "' (", node.type,
                                          ") reads '", name, "'");
    if (!owner_.has(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what,
                       ", which nothing makes. If its weights were removed, "
                       "load it with RKNN_FLAG_SHARE_WEIGHT_MEM and the "
                       "context of the model that has them"));
    }
    RKNND_ASSIGN_OR_RETURN(std::shared_ptr<const Constant> constant,
                           owner_.Take({name, what}));
    RKNND_ASSIGN_OR_RETURN(ValueId id, Define(name, what));
    SetConstant(id, std::move(constant));
    return id;
  }

  // Before any node is read: an unsorted file uses values early.
  absl::Status DefineNodeOutputs() {
    std::unordered_set<std::string> names;
    names_.resize(static_cast<size_t>(proto_.node_size()));
    for (int n = 0; n < proto_.node_size(); ++n) {
      const onnx::NodeProto& node = proto_.node(n);
      std::string& name = names_[static_cast<size_t>(n)];
      name = node.name().empty() ? absl::StrCat(node.op_type(), "_", n)
                                 : node.name();
      for (const std::string& output : node.output()) {
        if (output.empty()) continue;
        RKNND_RETURN_IF_ERROR(
            Define(output, absl::StrCat("node '", name, "'")).status());
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddNode(int n) {
    const onnx::NodeProto& proto = proto_.node(n);
    Node node;
    node.name = names_[static_cast<size_t>(n)];
    node.type = proto.op_type();
    node.layer_type = node.type;
    node.domain = IsStandardDomain(proto.domain()) ? "" : proto.domain();
    auto opset = opsets_.find(node.domain);
    node.opset = opset == opsets_.end() ? 0 : opset->second;
    if (node.domain.empty() && node.opset == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("imports no version of the standard operators, node '",
                       node.name, "' (", node.type, ") needs one"));
    }
    if (proto.input_size() > kMaxArity || proto.output_size() > kMaxArity) {
      return absl::ResourceExhaustedError(
          absl::StrCat("node '", node.name, "' (", node.type,
                       ") has more than ", kMaxArity, " inputs or outputs"));
    }
    for (const std::string& input : proto.input()) {
      ValueId id = kNoValue;
      if (!input.empty()) {
        auto known = ids_.find(input);
        if (known != ids_.end()) {
          id = known->second;
        } else {
          RKNND_ASSIGN_OR_RETURN(id, DefineMissing(input, node));
        }
      }
      node.inputs.push_back(id);
    }
    for (const std::string& output : proto.output()) {
      node.outputs.push_back(output.empty() ? kNoValue : ids_.at(output));
    }
    for (const auto& attribute : proto.attribute()) {
      absl::StatusOr<Attribute> value = ImportAttribute(attribute, node);
      if (!value.ok()) {
        // What a foreign operator is told is not ours to understand.
        if (!node.domain.empty()) continue;
        return value.status();
      }
      if (!node.attributes.emplace(attribute.name(), *std::move(value))
               .second) {
        return absl::InvalidArgumentError(
            absl::StrCat("node '", node.name, "' has attribute '",
                         attribute.name(), "' twice"));
      }
    }
    if (node.domain.empty() && node.type == "Constant") {
      return AddConstant(node);
    }
    graph_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status AddConstant(const Node& node) {
    if (node.outputs.size() != 1 || node.outputs[0] == kNoValue) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Constant '", node.name, "' does not have exactly one output"));
    }
    RKNND_ASSIGN_OR_RETURN(std::shared_ptr<const Constant> constant,
                           ConstantOf(node));
    SetConstant(node.outputs[0], std::move(constant));
    return absl::OkStatus();
  }

  absl::Status Outputs() {
    for (const auto& info : proto_.output()) {
      auto known = ids_.find(info.name());
      if (known == ids_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("output '", info.name(), "' is made by no node"));
      }
      GraphPort port{info.name(), known->second, 0};
      // A file that leaves the type out means what inference finds.
      if (info.type().has_tensor_type() &&
          InnerType(info.type().tensor_type().elem_type()).has_value()) {
        port.onnx_type = info.type().tensor_type().elem_type();
      }
      port.declared = DeclaredDims(info);
      Declare(info);
      graph_.outputs.push_back(std::move(port));
    }
    if (graph_.outputs.empty()) {
      return absl::InvalidArgumentError("has no outputs");
    }
    return absl::OkStatus();
  }

  // Notes what the file says of a value that nothing else is known of; of use
  // behind operators of foreign domains. A wrong note is found by inference.
  void Declare(const onnx::ValueInfoProto& info) {
    auto known = ids_.find(info.name());
    if (known == ids_.end()) return;
    Value& value = graph_.value(known->second);
    if (value.constant != nullptr || value.shape.has_value()) return;
    int32_t onnx_type = 0;
    Value declared;
    std::string open;
    if (DeclareTensor(info, info.name(), declared, &onnx_type, &open).ok()) {
      value.type = declared.type;  // known where the shape is open, too
      value.shape = std::move(declared.shape);
    }
  }

  const onnx::ModelProto& model_;
  const onnx::GraphProto& proto_;
  const WeightOwner& owner_;
  Graph graph_;
  std::map<std::string, int> opsets_;
  std::unordered_map<std::string, ValueId> ids_;
  std::unordered_set<std::string> listed_;
  std::vector<std::string> names_;  // of the nodes
};

}  // namespace

bool IsStandardDomain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx";
}

absl::StatusOr<Graph> ImportOnnx(std::span<const std::byte> bytes,
                                 const std::string& name) {
  RKNND_ASSIGN_OR_RETURN(Graph graph, ImportOpen(bytes, name));
  if (absl::Status fixed = FixInputs(nullptr, graph); !fixed.ok()) {
    return base::Annotate(fixed, absl::StrCat("model '", name, "'"));
  }
  return graph;
}

absl::StatusOr<Graph> ImportOpen(std::span<const std::byte> bytes,
                                 const std::string& name,
                                 std::span<const std::byte> weights_of) {
  onnx::ModelProto model;
  RKNND_RETURN_IF_ERROR(ParseOnnx(bytes, name, &model));
  absl::StatusOr<WeightOwner> owner = WeightOwner::Read(weights_of);
  if (!owner.ok()) {
    return base::Annotate(owner.status(), absl::StrCat("model '", name, "'"));
  }
  absl::StatusOr<Graph> graph = Importer(model, *owner).Run();
  if (!graph.ok()) {
    return base::Annotate(graph.status(), absl::StrCat("model '", name, "'"));
  }
  // Messages about a run name the model by it.
  if (graph->name.empty()) graph->name = name;
  return graph;
}

}  // namespace rknnd::soft
