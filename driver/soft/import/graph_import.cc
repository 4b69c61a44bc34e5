// See graph_import.h.

#include "driver/soft/import/graph_import.h"

#include <onnx/onnx_pb.h>

#include <climits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/import/attribute_import.h"
#include "driver/soft/import/functions.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/import/tensor_import.h"
#include "driver/soft/import/topology.h"
#include "driver/soft/import/value_info.h"

namespace rknnd::soft {
namespace {

// What a model's graph and all bodies in it have in common.
struct Whole {
  const WeightOwner& owner;
  Functions functions;
  size_t nodes = 0;  // so far, those of functions too
  // Of attributes of functions, at each call.
  size_t function_bytes = 0;
};

// So much of constants may calls of functions copy.
constexpr size_t kMostFunctionBytes = size_t{256} << 20;

// What names mean in a graph, or while a function is written out.
struct Frame {
  std::string prefix;  // of names
  std::map<std::string, int> opsets;
  // Of a function: it, the one that calls it, what the call gives.
  const onnx::FunctionProto* function = nullptr;
  const Frame* caller = nullptr;
  std::map<std::string, Attribute> attributes;
  std::unordered_map<std::string, ValueId> results;
  std::unordered_map<std::string, ValueId> ids;
};

std::map<std::string, int> VersionsOf(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>&
        opsets) {
  std::map<std::string, int> versions;
  for (const auto& opset : opsets) {
    std::string domain = IsStandardDomain(opset.domain()) ? "" : opset.domain();
    // A version that does not fit is as good as none.
    versions[domain] = opset.version() > 0 && opset.version() < INT_MAX
                           ? static_cast<int>(opset.version())
                           : 0;
  }
  return versions;
}

// Builds one Graph from one GraphProto.
class Importer {
 public:
  Importer(const onnx::GraphProto& proto, Whole& whole, Frame frame,
           Importer* outer)
      : proto_(proto),
        whole_(whole),
        owner_(whole.owner),
        base_(std::move(frame)),
        outer_(outer) {}

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
    if (proto_.sparse_initializer_size() > 0) {
      return absl::UnimplementedError(absl::StrCat(
          "sparse initializer '", proto_.sparse_initializer(0).values().name(),
          "' is not supported: save it dense"));
    }
    RKNND_RETURN_IF_ERROR(Initializers());
    RKNND_RETURN_IF_ERROR(Inputs());
    RKNND_RETURN_IF_ERROR(AddNodes(proto_.node()));
    RKNND_RETURN_IF_ERROR(Outputs());
    for (const auto& info : proto_.value_info()) Declare(info);
    for (const Captured& value : captured_) {
      graph_.inputs.push_back({graph_.value(value.here).name, value.here, 0});
    }
    graph_.captured = captured_.size();
    RKNND_RETURN_IF_ERROR(SortNodes(graph_));
    return std::move(graph_);
  }

 private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  // A value of the graph around a body, which the body reads.
  struct Captured {
    ValueId outside = kNoValue, here = kNoValue;
  };

  // A new value of that name. ONNX gives every name one definition.
  absl::StatusOr<ValueId> Define(const std::string& name,
                                 const std::string& by) {
    auto id = static_cast<ValueId>(graph_.values.size());
    const auto result = frame_->results.find(name);
    const bool is_result = result != frame_->results.end();
    if (is_result) id = result->second;
    if (!frame_->ids.emplace(name, id).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "value '", name, "' is defined twice, the second time by ", by));
    }
    if (!is_result) NewValue(frame_->prefix + name);
    return id;
  }

  ValueId NewValue(std::string name) {
    graph_.values.emplace_back();
    graph_.values.back().name = std::move(name);
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

  // Nothing where the name means nothing here; kNoValue where it is an input
  // that a call leaves out.
  std::optional<ValueId> Lookup(const std::string& name) {
    const auto known = frame_->ids.find(name);
    if (known != frame_->ids.end()) return known->second;
    // Functions see nothing of what is around them.
    if (outer_ == nullptr || frame_ != &base_) return std::nullopt;
    const std::optional<ValueId> outside = outer_->Lookup(name);
    if (!outside.has_value() || *outside == kNoValue) return outside;
    const ValueId here = NewValue(name);
    base_.ids.emplace(name, here);
    const Value& value = outer_->graph_.value(*outside);
    if (value.constant != nullptr) {
      SetConstant(here, value.constant);
    } else {
      captured_.push_back({*outside, here});
    }
    return here;
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

  absl::Status Inputs() {
    for (const auto& info : proto_.input()) {
      // Older files list initializers as inputs too; they are constants here.
      auto known = base_.ids.find(info.name());
      if (known != base_.ids.end() && graph_.value(known->second).constant &&
          listed_.insert(info.name()).second) {
        continue;
      }
      std::string what = absl::StrCat("input '", info.name(), "'");
      RKNND_ASSIGN_OR_RETURN(ValueId id, Define(info.name(), what));
      GraphPort port{info.name(), id, 0};
      // What a body is given may say nothing of itself.
      if (outer_ != nullptr &&
          (!info.has_type() || info.type().has_tensor_type())) {
        graph_.inputs.push_back(std::move(port));
        continue;
      }
      // Of an older file whose weights were removed only this is left.
      if (owner_.has(info.name())) {
        RKNND_RETURN_IF_ERROR(TakeInput(info, what, id));
        continue;
      }
      RKNND_RETURN_IF_ERROR(DeclareTensor(info, what, &graph_.value(id),
                                          &port.onnx_type, &port.open));
      port.declared = DeclaredDims(info);
      if (port.onnx_type == onnx::TensorProto::DOUBLE) {
        // Float outside (CastPort).
        port.value = NewValue(info.name());
        graph_.value(port.value).shape = graph_.value(id).shape;
        graph_.value(id) = {graph_.value(id).name, DataType::kFloat64, {}, {}};
        CastPort(port, port.value, id, onnx::TensorProto::DOUBLE);
      }
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

  absl::Status AddNodes(const Nodes& nodes) {
    // Names first: an unsorted file uses values early.
    for (int n = 0; n < nodes.size(); ++n) {
      const std::string by = absl::StrCat("node '", NameOf(nodes[n], n), "'");
      for (const std::string& output : nodes[n].output()) {
        if (output.empty()) continue;
        RKNND_RETURN_IF_ERROR(Define(output, by).status());
      }
    }
    for (int n = 0; n < nodes.size(); ++n) {
      RKNND_RETURN_IF_ERROR(AddNode(nodes[n], NameOf(nodes[n], n)));
    }
    return absl::OkStatus();
  }

  [[nodiscard]] std::string NameOf(const onnx::NodeProto& node, int n) const {
    return absl::StrCat(frame_->prefix,
                        node.name().empty()
                            ? absl::StrCat(node.op_type(), "_", n)
                            : node.name());
  }

  absl::Status AddNode(const onnx::NodeProto& proto, std::string name) {
    Node node;
    node.name = std::move(name);
    node.type = proto.op_type();
    node.layer_type = node.type;
    node.domain = IsStandardDomain(proto.domain()) ? "" : proto.domain();
    if (node.domain == "rknnd") {
      return absl::InvalidArgumentError(absl::StrCat(
          "node '", node.name, "' (", node.type,
          ") is of domain 'rknnd', whose operators only the software NPU makes "
          "for itself: use those of ONNX"));
    }
    auto opset = frame_->opsets.find(node.domain);
    node.opset = opset == frame_->opsets.end() ? 0 : opset->second;
    // A function may be called often: what it writes each time counts.
    constexpr int kOperands = 32;
    ++whole_.nodes;
    if (frame_->function != nullptr) {
      whole_.nodes += static_cast<size_t>(
          (proto.input_size() + proto.output_size()) / kOperands);
    }
    if (whole_.nodes > kMaxNodes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "node '", node.name, "' (", node.type, ") is one of more than ",
          kMaxNodes, ", with those of functions and branches"));
    }
    const onnx::FunctionProto* const function =
        whole_.functions.Find(node.domain, node.type);
    if (node.domain.empty() && node.opset == 0 && function == nullptr) {
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
        const std::optional<ValueId> known = Lookup(input);
        if (known.has_value()) {
          id = *known;
        } else {
          RKNND_ASSIGN_OR_RETURN(id, DefineMissing(input, node));
        }
      }
      node.inputs.push_back(id);
    }
    for (const std::string& output : proto.output()) {
      node.outputs.push_back(output.empty() ? kNoValue
                                            : frame_->ids.at(output));
    }
    RKNND_RETURN_IF_ERROR(AddAttributes(proto, node));
    if (function != nullptr) return Call(*function, node);
    if (node.domain.empty() && node.type == "Constant") {
      return AddConstant(node);
    }
    graph_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status AddAttributes(const onnx::NodeProto& proto, Node& node) {
    const bool has_bodies =
        node.domain.empty() &&
        (node.type == "If" || node.type == "Loop" || node.type == "Scan");
    std::map<std::string, const onnx::GraphProto*> bodies;
    for (const auto& attribute : proto.attribute()) {
      if (has_bodies && attribute.has_g()) {
        if (!bodies.emplace(attribute.name(), &attribute.g()).second) {
          return Twice(node, attribute);
        }
        continue;
      }
      absl::StatusOr<Attribute> value = Attribute(int64_t{0});
      const std::string& given = attribute.ref_attr_name();
      if (!given.empty() && frame_->function != nullptr) {
        const auto found = frame_->attributes.find(given);
        if (found == frame_->attributes.end()) continue;
        value = found->second;
      } else {
        if (frame_->function != nullptr) {
          whole_.function_bytes += attribute.ByteSizeLong();
          if (whole_.function_bytes > kMostFunctionBytes) {
            return absl::ResourceExhaustedError(absl::StrCat(
                "node '", node.name, "' (", node.type,
                "): calls of functions "
                "copy more than ",
                kMostFunctionBytes >> 20,
                " MiB of constants; make them inputs of the function"));
          }
        }
        value = ImportAttribute(attribute, node);
      }
      if (!value.ok()) {
        // What a foreign operator is told is not ours to understand.
        if (!node.domain.empty()) continue;
        return value.status();
      }
      if (!node.attributes.emplace(attribute.name(), *std::move(value))
               .second) {
        return Twice(node, attribute);
      }
    }
    // In the order of their names, in which inference finds them, too.
    for (const auto& [name, body] : bodies) {
      RKNND_RETURN_IF_ERROR(AddBody(name, *body, node));
    }
    return absl::OkStatus();
  }

  static absl::Status Twice(const Node& node,
                            const onnx::AttributeProto& attribute) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node '", node.name, "' has attribute '", attribute.name(), "' twice"));
  }

  absl::Status AddBody(const std::string& name, const onnx::GraphProto& proto,
                       Node& node) {
    Frame inside;
    inside.opsets = frame_->opsets;
    inside.function = frame_->function;
    inside.caller = frame_->caller;
    inside.attributes = frame_->attributes;
    Importer importer(proto, whole_, std::move(inside), this);
    absl::StatusOr<Graph> body = importer.Run();
    if (!body.ok()) {
      return base::Annotate(body.status(),
                            absl::StrCat("'", name, "' of node '", node.name,
                                         "' (", node.type, ")"));
    }
    for (const Captured& value : importer.captured_) {
      node.inputs.push_back(value.outside);
    }
    node.attributes[name] = std::make_shared<const Graph>(*std::move(body));
    return absl::OkStatus();
  }

  // The nodes of a function in place of the one that calls it.
  absl::Status Call(const onnx::FunctionProto& function, const Node& call) {
    const std::string what =
        absl::StrCat("node '", call.name, "' calls function '", call.type, "'");
    size_t calls = 0;
    for (const Frame* frame = frame_; frame != nullptr; frame = frame->caller) {
      if (frame->function == &function) {
        return absl::InvalidArgumentError(
            absl::StrCat(what, ", which calls itself"));
      }
      if (++calls > kMaxCalls) {
        return absl::ResourceExhaustedError(absl::StrCat(
            what, " as one of more than ", kMaxCalls, " that call another"));
      }
    }
    if (call.inputs.size() > static_cast<size_t>(function.input_size()) ||
        call.outputs.size() > static_cast<size_t>(function.output_size())) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " with ", call.inputs.size(), " inputs and ",
                       call.outputs.size(), " outputs, which has ",
                       function.input_size(), " and ", function.output_size()));
    }
    Frame frame;
    frame.prefix = call.name + "/";
    frame.opsets = VersionsOf(function.opset_import());
    frame.function = &function;
    frame.caller = frame_;
    RKNND_RETURN_IF_ERROR(GiveAttributes(function, call, frame));
    for (int i = 0; i < function.input_size(); ++i) {
      const auto at = static_cast<size_t>(i);
      if (!frame.ids
               .emplace(function.input(i),
                        at < call.inputs.size() ? call.inputs[at] : kNoValue)
               .second) {
        return absl::InvalidArgumentError(absl::StrCat(
            what, ", which has input '", function.input(i), "' twice"));
      }
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const std::string& name = function.output(static_cast<int>(i));
      if (call.outputs[i] == kNoValue) continue;
      const auto input = frame.ids.find(name);
      if (input != frame.ids.end()) {
        HandOn(input->second, call.outputs[i], frame);
      } else {
        frame.results.emplace(name, call.outputs[i]);
      }
    }
    Frame* const around = std::exchange(frame_, &frame);
    const absl::Status added = AddNodes(function.node());
    frame_ = around;
    if (!added.ok()) return base::Annotate(added, what);
    for (const auto& [name, id] : frame.results) {
      if (frame.ids.contains(name)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          what, ", in which no node makes its output '", name, "'"));
    }
    return absl::OkStatus();
  }

  // An input of a function that is its output.
  void HandOn(ValueId from, ValueId to, const Frame& frame) {
    Node node;
    node.name = absl::StrCat(frame.prefix, "Identity_", graph_.nodes.size());
    node.type = node.layer_type = "Identity";
    node.opset = 1;
    node.inputs = {from};
    node.outputs = {to};
    graph_.nodes.push_back(std::move(node));
  }

  // What the call gives, else what the function has for calls that do not.
  absl::Status GiveAttributes(const onnx::FunctionProto& function,
                              const Node& call, Frame& frame) {
    for (const std::string& name : function.attribute()) {
      const auto given = call.attributes.find(name);
      if (given != call.attributes.end()) frame.attributes.insert(*given);
    }
    RKNND_ASSIGN_OR_RETURN(const std::vector<onnx::AttributeProto> defaults,
                           DefaultsOf(function));
    for (const onnx::AttributeProto& attribute : defaults) {
      const auto given = call.attributes.find(attribute.name());
      if (given != call.attributes.end()) {
        frame.attributes.insert(*given);
        continue;
      }
      RKNND_ASSIGN_OR_RETURN(Attribute value, ImportAttribute(attribute, call));
      frame.attributes.emplace(attribute.name(), std::move(value));
    }
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

  // The API has no type for double: such an input or output is float outside,
  // and converted once at the network's edge.
  void CastPort(GraphPort& port, ValueId from, ValueId to,
                onnx::TensorProto::DataType type) {
    port.onnx_type = onnx::TensorProto::FLOAT;
    Node cast;
    cast.name = port.name + "_cast";
    cast.type = cast.layer_type = "Cast";
    cast.opset = base_.opsets[""];
    cast.inputs = {from};
    cast.outputs = {to};
    cast.attributes["to"] = int64_t{type};
    graph_.nodes.push_back(std::move(cast));
  }

  absl::Status Outputs() {
    for (const auto& info : proto_.output()) {
      const std::optional<ValueId> known = Lookup(info.name());
      if (!known.has_value() || *known == kNoValue) {
        return absl::InvalidArgumentError(
            absl::StrCat("output '", info.name(), "' is made by no node"));
      }
      GraphPort port{info.name(), *known, 0};
      // A file that leaves the type out means what inference finds.
      if (info.type().has_tensor_type() &&
          InnerType(info.type().tensor_type().elem_type()).has_value()) {
        port.onnx_type = info.type().tensor_type().elem_type();
      }
      port.declared = DeclaredDims(info);
      Declare(info);
      if (outer_ == nullptr && port.onnx_type == onnx::TensorProto::DOUBLE) {
        port.value = NewValue(info.name());
        CastPort(port, *known, port.value, onnx::TensorProto::FLOAT);
      }
      graph_.outputs.push_back(std::move(port));
    }
    if (graph_.outputs.empty() && outer_ == nullptr) {
      return absl::InvalidArgumentError("has no outputs");
    }
    return absl::OkStatus();
  }

  // Notes what the file says of a value that nothing else is known of; of use
  // behind operators of foreign domains. A wrong note is found by inference.
  void Declare(const onnx::ValueInfoProto& info) {
    auto known = base_.ids.find(info.name());
    if (known == base_.ids.end()) return;
    Value& value = graph_.value(known->second);
    if (value.constant != nullptr || value.shape.has_value()) return;
    int32_t onnx_type = 0;
    Value declared;
    std::string open;
    if (DeclareTensor(info, info.name(), &declared, &onnx_type, &open).ok()) {
      value.type = declared.type;  // known where the shape is open, too
      value.shape = std::move(declared.shape);
    }
  }

  const onnx::GraphProto& proto_;
  Whole& whole_;
  const WeightOwner& owner_;
  Frame base_;
  Frame* frame_ = &base_;
  Importer* const outer_;  // of a body
  Graph graph_;
  std::unordered_set<std::string> listed_;
  std::vector<Captured> captured_;
};

}  // namespace

absl::StatusOr<Graph> ImportGraph(const onnx::ModelProto& model,
                                  const WeightOwner& owner) {
  RKNND_ASSIGN_OR_RETURN(Functions functions, Functions::Of(model));
  Whole whole{owner, std::move(functions)};
  Frame frame;
  frame.opsets = VersionsOf(model.opset_import());
  RKNND_ASSIGN_OR_RETURN(
      Graph graph,
      Importer(model.graph(), whole, std::move(frame), nullptr).Run());
  for (const auto& entry : model.metadata_props()) {
    graph.metadata[entry.key()] = entry.value();
  }
  return graph;
}

}  // namespace rknnd::soft
