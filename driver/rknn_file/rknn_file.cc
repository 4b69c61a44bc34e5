// Slots of the main section, found in published files of toolkits 1.3 to 2.3.
// Nothing here follows an offset by itself: flatbuffer.h does, with a check.

#include "driver/rknn_file/rknn_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "driver/rknn_file/flatbuffer.h"
#include "driver/rknn_file/slots.h"

namespace rknnd::rknn_file {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr size_t kTextBytes = 255;
constexpr uint32_t kMaxDims = 16;

namespace tensor {
enum Class : uint64_t {
  kInput = 1,
  kOutput = 2,
  kInternal = 3,
  kConstant = 4,
  kMoreConstants = 5,
  kThird = 8,
};
constexpr uint64_t kBlockedLayout = 0x40;
}  // namespace tensor
// The file's number of an element type, and the C API's.
struct TypeName {
  uint64_t in_file;
  uint32_t type;
  const char* name;
};
constexpr TypeName kTypes[] = {
    {1, 0, "FP32"},  {2, 3, "UINT8"}, {3, 2, "INT8"},
    {5, 4, "INT16"}, {6, 6, "INT32"}, {7, 8, "INT64"},
    {9, 9, "BOOL"},  {10, 1, "FP16"}, {16, 11, "BF16"}};

// For people and messages: bounded, and nothing a terminal would act on.
std::string Text(std::string_view text) {
  std::string copy(text.substr(0, std::min(text.size(), kTextBytes)));
  for (char& c : copy) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return copy;
}

Expected<std::vector<uint32_t>> Dims(const FlatTable& table, uint32_t slot,
                                     const std::string& name) {
  const FlatVector dims = table.Vector(slot, sizeof(uint32_t));
  if (dims.size() > kMaxDims) {
    return Damaged("tensor '" + name + "' has " + std::to_string(dims.size()) +
                   " dimensions, at most " + std::to_string(kMaxDims) +
                   " are possible");
  }
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < dims.size(); ++i) {
    result.push_back(dims.At<uint32_t>(i));
  }
  return result;
}

// What the text of slots 12 and 13 says of one tensor:
// {"NAME": {"dtype": "int8", "layout": "NHWC"}, ...}.
std::string LayoutIn(std::string_view json, std::string_view name) {
  // Searched once for each port: together, then, at most a second's work.
  constexpr size_t kLongestJson = size_t{128} << 10;
  json = json.substr(0, kLongestJson);
  const std::string key = "\"" + std::string(name) + "\"";
  const size_t at = json.find(key);
  if (at == std::string_view::npos) return "";
  std::string_view rest = json.substr(at + key.size());
  rest = rest.substr(0, rest.find('}'));
  constexpr std::string_view kKey = "\"layout\"";
  const size_t layout = rest.find(kKey);
  if (layout == std::string_view::npos) return "";
  rest = rest.substr(layout + kKey.size());
  const size_t open = rest.find('"');
  if (open == std::string_view::npos) return "";
  rest = rest.substr(open + 1);
  const size_t close = rest.find('"');
  constexpr size_t kLongest = 16;
  if (close == std::string_view::npos || close > kLongest) return "";
  return Text(rest.substr(0, close));
}

Expected<Tensor> ReadPort(const FlatTable& table, std::string_view json) {
  Tensor port;
  port.name = Text(table.String(tensor_slot::kName));
  const uint64_t in_file = table.Unsigned(tensor_slot::kType);
  port.type_name = "type " + std::to_string(in_file);
  for (const TypeName& known : kTypes) {
    if (known.in_file != in_file) continue;
    port.type = known.type;
    port.type_name = known.name;
  }
  Expected<std::vector<uint32_t>> dims =
      Dims(table, tensor_slot::kShape, port.name);
  if (!dims.ok()) return std::move(dims).error();
  port.dims = *std::move(dims);
  dims = Dims(table, tensor_slot::kNativeShape, port.name);
  if (!dims.ok()) return std::move(dims).error();
  port.native_dims = *std::move(dims);
  port.native_blocked =
      table.Unsigned(tensor_slot::kLayout) == tensor::kBlockedLayout;
  port.layout = LayoutIn(json, port.name);
  port.native_bytes = table.Unsigned(tensor_slot::kBytes);
  const FlatVector scale = table.Vector(tensor_slot::kScale, sizeof(float));
  const FlatVector zero =
      table.Vector(tensor_slot::kZeroPoint, sizeof(int32_t));
  port.quantized = scale.size() > 0 && in_file != 1 && in_file != 10;
  if (port.quantized) {
    port.scale = scale.At<float>(0);
    if (zero.size() > 0) port.zero_point = zero.At<int32_t>(0);
  }
  return port;
}

Expected<std::vector<Tensor>> ReadPorts(const FlatTable& graph_table,
                                        const FlatVector& tensors,
                                        uint32_t slot, std::string_view json,
                                        const char* what) {
  const FlatVector indices = graph_table.Vector(slot, sizeof(uint32_t));
  if (indices.size() > kMaxPorts) {
    return Damaged("it has " + std::to_string(indices.size()) + " " + what +
                   ", at most " + std::to_string(kMaxPorts) + " are possible");
  }
  std::vector<Tensor> ports;
  for (uint32_t i = 0; i < indices.size(); ++i) {
    const auto index = indices.At<uint32_t>(i);
    if (index >= tensors.size()) {
      return Damaged(std::string(what) + " name tensor " +
                     std::to_string(index) + " of " +
                     std::to_string(tensors.size()));
    }
    Expected<Tensor> port = ReadPort(graph_table.TableAt(tensors, index), json);
    if (!port.ok()) return std::move(port).error();
    ports.push_back(*std::move(port));
  }
  return ports;
}

// "VERSION(compiler version: OTHER)".
void ReadVersions(std::string_view text, Description* description) {
  constexpr std::string_view kCompiler = "(compiler version: ";
  const size_t at = text.find(kCompiler);
  description->toolkit_version = Text(text.substr(0, at));
  if (at == std::string_view::npos) return;
  std::string_view compiler = text.substr(at + kCompiler.size());
  if (compiler.ends_with(')')) compiler.remove_suffix(1);
  description->compiler_version = Text(compiler);
}

// The sizes that newer files store. Sums of sizes from the file: they may be
// anything, and stop at the largest number.
Expected<void> ReadSizes(const FlatTable& root, const FlatTable& graph_table,
                         const FlatVector& tensors, Description* description) {
  const FlatTable stored = root.Table(model_slot::kSizes);
  if (stored.valid()) {
    description->sizes_stored = true;
    description->weight_bytes = stored.Unsigned(0);
    description->internal_bytes = stored.Unsigned(1);
    description->other_bytes = stored.Unsigned(2);
    return {};
  }
  uint64_t weights = 0;
  uint64_t internal = 0;
  uint64_t other = 0;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const FlatTable table = graph_table.TableAt(tensors, i);
    if (!table.valid()) break;
    const uint64_t bytes = table.Unsigned(tensor_slot::kBytes);
    uint64_t end = 0;
    bool overflows = false;
    switch (table.Unsigned(tensor_slot::kClass)) {
      case tensor::kConstant:
      case tensor::kMoreConstants:
        overflows = __builtin_add_overflow(bytes, kConstantAlignment - 1, &end);
        end &= ~(kConstantAlignment - 1);
        overflows |= __builtin_add_overflow(weights, end, &weights);
        break;
      case tensor::kInput:
      case tensor::kOutput:
      case tensor::kInternal:
        overflows = __builtin_add_overflow(
            bytes, table.Unsigned(tensor_slot::kOffset), &end);
        internal = std::max(internal, end);
        break;
      case tensor::kThird:
        overflows = __builtin_add_overflow(other, bytes, &other);
        break;
      default:
        break;
    }
    if (overflows) {
      return Damaged("the sizes of its tensors exceed 64 bits");
    }
  }
  description->weight_bytes = weights;
  description->internal_bytes = internal;
  description->other_bytes = other;
  return {};
}

Expected<void> ReadModel(const FlatBuffer& buffer, Description* description) {
  const FlatTable root = buffer.Root();
  description->format = Text(root.String(model_slot::kFormat));
  ReadVersions(root.String(model_slot::kVersions), description);
  description->target_platform = Text(root.String(model_slot::kPlatform));
  description->framework = Text(root.String(model_slot::kFramework));
  description->batch = Text(root.String(model_slot::kBatch));
  description->inference_type = Text(root.String(model_slot::kShapes));

  const FlatVector graphs = root.Vector(model_slot::kGraphs, 4);
  if (graphs.size() == 0) return Damaged("it has no graph");
  const FlatTable first = root.TableAt(graphs, 0);
  const FlatVector tensors = first.Vector(graph_slot::kTensors, 4);
  const FlatVector nodes = first.Vector(graph_slot::kNodes, 4);
  if (tensors.size() > kMaxTensors || nodes.size() > kMaxNodes) {
    return Damaged("it has " + std::to_string(tensors.size()) +
                   " tensors and " + std::to_string(nodes.size()) +
                   " nodes: no network has so many");
  }
  Expected<std::vector<Tensor>> ports =
      ReadPorts(first, tensors, graph_slot::kInputs,
                root.String(model_slot::kInputJson), "inputs");
  if (!ports.ok()) return std::move(ports).error();
  description->inputs = *std::move(ports);
  ports = ReadPorts(first, tensors, graph_slot::kOutputs,
                    root.String(model_slot::kOutputJson), "outputs");
  if (!ports.ok()) return std::move(ports).error();
  description->outputs = *std::move(ports);
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    const FlatTable table = first.TableAt(nodes, i);
    if (!table.valid()) break;
    constexpr uint64_t kNpu = 2;
    description->nodes.push_back({Text(table.String(node_slot::kType)),
                                  Text(table.String(node_slot::kName)),
                                  table.Unsigned(node_slot::kDevice) != kNpu});
  }
  return ReadSizes(root, first, tensors, description);
}

}  // namespace

Expected<Description> Read(std::span<const std::byte> bytes) {
  if (const Kind kind = KindOf(bytes); kind != Kind::kRknn) {
    return Error{Code::kInvalidArgument,
                 std::string("the file is ") + KindName(kind) +
                     (kind == Kind::kOther ? "" : ", which cannot be read")};
  }
  Expected<Container> container = FindContainer(bytes);
  if (!container.ok()) return std::move(container).error();
  Description description;
  description.container_version = container->version;
  description.main_section_bytes = container->section.size();
  description.json_bytes = container->json_bytes;
  const FlatBuffer buffer(container->section);
  if (!buffer.HasIdentifier("RKNN")) {
    return Damaged("its main section is no RKNN FlatBuffer");
  }
  Expected<void> read = ReadModel(buffer, &description);
  if (!read.ok()) return std::move(read).error();
  if (!buffer.fault().empty()) return Damaged(buffer.fault());
  return description;
}

}  // namespace rknnd::rknn_file
