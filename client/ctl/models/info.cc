#include "client/ctl/models/info.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "client/ctl/models/network.h"
#include "client/ctl/models/run_by.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/image/file.h"
#include "driver/rknpu/text/program_diff.h"
#include "driver/rknpu/text/program_text.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// One input or output, from wherever it was read.
struct Port {
  std::string name, type, layout;
  std::vector<size_t> shape;
  bool quantized = false;
  double scale = 1;
  int32_t zero_point = 0;
};

Json PortsJson(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& port : ports) {
    Json quantization;
    if (port.quantized) {
      quantization = {{"scale", port.scale}, {"zero_point", port.zero_point}};
    }
    list.push_back({{"name", port.name},
                    {"shape", port.shape},
                    {"type", port.type},
                    {"layout", port.layout},
                    {"quantization", std::move(quantization)}});
  }
  return list;
}

std::string PortsText(const std::vector<Port>& inputs,
                      const std::vector<Port>& outputs) {
  Table table({{""},
               {"NAME"},
               {"SHAPE"},
               {"TYPE"},
               {"LAYOUT"},
               {"SCALE", Table::Align::kRight},
               {"ZERO POINT", Table::Align::kRight}});
  const auto add = [&table](const char* what, const std::vector<Port>& ports) {
    for (const Port& port : ports) {
      table.Add({what, Printable(port.name), FormatShape(port.shape),
                 Printable(port.type), Printable(port.layout),
                 port.quantized ? FormatValue(port.scale) : "",
                 port.quantized ? std::to_string(port.zero_point) : ""});
    }
  };
  add("input", inputs);
  add("output", outputs);
  return table.ToString();
}

// "  label: value", if there is one.
void Line(std::string* text, const char* label, const std::string& value) {
  if (value.empty()) return;
  *text += std::string(label) + ": " + Printable(value) + "\n";
}

std::vector<Port> PortsOf(const std::vector<rknn_file::Tensor>& tensors) {
  std::vector<Port> ports;
  for (const rknn_file::Tensor& tensor : tensors) {
    ports.push_back({tensor.name,
                     tensor.type_name,
                     tensor.layout.empty() ? "unknown" : tensor.layout,
                     {tensor.dims.begin(), tensor.dims.end()},
                     tensor.quantized,
                     tensor.scale,
                     tensor.zero_point});
  }
  return ports;
}

std::vector<Port> PortsOf(const std::vector<rknn_tensor_attr>& attrs) {
  std::vector<Port> ports;
  for (const rknn_tensor_attr& attr : attrs) {
    const bool quantized =
        attr.type == RKNN_TENSOR_INT8 && attr.qnt_type != RKNN_TENSOR_QNT_NONE;
    ports.push_back({attr.name,
                     get_type_string(attr.type),
                     get_format_string(attr.fmt),
                     {attr.dims, attr.dims + std::min<uint32_t>(attr.n_dims,
                                                                RKNN_MAX_DIMS)},
                     quantized,
                     attr.scale,
                     attr.zp});
  }
  return ports;
}

// How many layers of each type, and where they run.
Json OperatorsJson(const std::vector<rknn_file::Node>& nodes) {
  std::map<std::pair<std::string, bool>, uint64_t> counts;
  for (const rknn_file::Node& node : nodes) ++counts[{node.type, node.on_cpu}];
  Json list = Json::array();
  for (const auto& [key, count] : counts) {
    list.push_back({{"type", key.first},
                    {"on", key.second ? "CPU" : "NPU"},
                    {"count", count}});
  }
  return list;
}

Expected<Output> OnnxOutput(const std::string& path,
                            std::span<const std::byte> bytes) {
  Expected<std::unique_ptr<Network>> network =
      Network::Load(path, RKNN_FLAG_COLLECT_MODEL_INFO_ONLY);
  if (!network) return std::move(network).error();
  const Expected<rknn_mem_size> size = (*network)->MemorySize();
  if (!size) return size.error();
  const Expected<std::string> custom = (*network)->CustomString();
  if (!custom) return custom.error();
  const Expected<std::span<const rknnd_kernel>> kernels = (*network)->Kernels();
  if (!kernels) return kernels.error();
  const OnnxHeader header = ReadOnnxHeader(bytes);
  const auto target = header.metadata.find("rknn.target_platform");
  const std::vector<Port> inputs = PortsOf((*network)->inputs());
  const std::vector<Port> outputs = PortsOf((*network)->outputs());
  const std::string platform =
      target == header.metadata.end() ? "" : target->second;

  Output output;
  output.json = {{"format", "onnx"},
                 {"file", path},
                 {"bytes", bytes.size()},
                 {"target", platform.empty() ? Json() : Json(platform)},
                 {"inputs", PortsJson(inputs)},
                 {"outputs", PortsJson(outputs)}};
  Json opsets = Json::array();
  std::string opset_text;
  for (const OnnxHeader::Opset& opset : header.opsets) {
    const std::string domain = opset.domain.empty() ? "ai.onnx" : opset.domain;
    opsets.push_back({{"domain", domain}, {"version", opset.version}});
    opset_text += (opset_text.empty() ? "" : ", ") + domain + " " +
                  std::to_string(opset.version);
  }
  output.json["versions"] = {{"ir", header.ir_version},
                             {"opsets", std::move(opsets)},
                             {"producer", header.producer_name},
                             {"producer_version", header.producer_version}};
  output.json["memory"] = {{"weight", size->total_weight_size},
                           {"internal", size->total_internal_size}};
  output.json["custom_string"] = *custom;
  Output computed = KernelsOutput(*kernels);
  output.json.update(computed.json);

  Line(&output.text, "ONNX model", path + ", " + FormatBytes(bytes.size()));
  Line(&output.text, "target platform", platform);
  Line(&output.text, "made by",
       header.producer_name + (header.producer_version.empty() ? "" : " ") +
           header.producer_version);
  Line(&output.text, "operators",
       opset_text + ", IR version " + std::to_string(header.ir_version));
  Line(&output.text, "custom string", *custom);
  Line(&output.text, "memory",
       FormatBytes(size->total_weight_size) + " weights, " +
           FormatBytes(size->total_internal_size) + " internal");
  output.text += computed.text;
  output.text += "\n" + PortsText(inputs, outputs);
  return output;
}

}  // namespace

Output KernelsOutput(std::span<const rknnd_kernel> kernels) {
  std::map<std::string, uint64_t> counts;
  Json slow = Json::array();
  std::string slow_text;
  for (const rknnd_kernel& layer : kernels) {
    const std::string kernel = layer.kernel;
    if (kernel.empty()) continue;
    ++counts[kernel];
    if (layer.is_slow == 0) continue;
    slow.push_back({{"full_name", layer.name},
                    {"op_type", layer.type},
                    {"input_shape", layer.input_shape},
                    {"output_shape", layer.output_shape},
                    {"kernel", kernel}});
    Line(&slow_text, "slow layer",
         std::string(layer.name) + ", " + layer.type + " " + layer.input_shape +
             " -> " + layer.output_shape + ", by " + kernel);
  }
  Output output;
  output.json = Json::object();
  if (counts.empty()) return output;
  output.json["kernels"] = counts;
  output.json["slow_layers"] = std::move(slow);
  std::vector<std::pair<std::string, uint64_t>> ranking(counts.begin(),
                                                        counts.end());
  std::stable_sort(
      ranking.begin(), ranking.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [kernel, count] : ranking) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kernel;
  }
  Line(&output.text, "kernels", text);
  output.text += slow_text;
  return output;
}

Output RknnOutput(const std::string& path, uint64_t bytes,
                  const rknn_file::Description& file) {
  const std::vector<Port> inputs = PortsOf(file.inputs);
  const std::vector<Port> outputs = PortsOf(file.outputs);
  const auto on_cpu = static_cast<size_t>(
      std::count_if(file.nodes.begin(), file.nodes.end(),
                    [](const rknn_file::Node& node) { return node.on_cpu; }));
  const size_t on_npu = file.nodes.size() - on_cpu;

  Output output;
  output.json = {{"format", "rknn"},
                 {"file", path},
                 {"bytes", bytes},
                 {"target", file.target_platform},
                 {"inputs", PortsJson(inputs)},
                 {"outputs", PortsJson(outputs)},
                 {"versions",
                  {{"container", file.container_version},
                   {"format", file.format},
                   {"toolkit", file.toolkit_version},
                   {"compiler", file.compiler_version}}},
                 {"framework", file.framework},
                 {"batch", file.batch},
                 {"inference_type", file.inference_type},
                 {"memory",
                  {{"weight", file.weight_bytes},
                   {"internal", file.internal_bytes},
                   {"other", file.other_bytes},
                   {"stored_in_file", file.sizes_stored}}},
                 {"layers", {{"npu", on_npu}, {"cpu", on_cpu}}},
                 {"operators", OperatorsJson(file.nodes)}};

  Line(&output.text, ".rknn model", path + ", " + FormatBytes(bytes));
  Line(&output.text, "target platform", file.target_platform);
  Line(&output.text, "toolkit", file.toolkit_version);
  Line(&output.text, "compiler", file.compiler_version);
  Line(&output.text, "format",
       file.format + ", container version " +
           std::to_string(file.container_version));
  Line(&output.text, "made from", file.framework);
  Line(&output.text, "batch", file.batch);
  Line(&output.text, "inference", file.inference_type);
  Line(&output.text, "memory",
       FormatBytes(file.weight_bytes) + " weights, " +
           FormatBytes(file.internal_bytes) + " internal, " +
           FormatBytes(file.other_bytes) + " other" +
           (file.sizes_stored ? "" : " (summed up from its tensors)"));
  Line(&output.text, "layers",
       std::to_string(on_npu) + " on the NPU, " + std::to_string(on_cpu) +
           " on the CPU");
  output.text += "\n" + PortsText(inputs, outputs);
  return output;
}

namespace {

Json CommandJson(const rknpu::WrittenRegister& written) {
  Json command = {{"register", written.name},
                  {"number", written.command.reg},
                  {"value", written.command.value}};
  if (written.tensor != nullptr) command["tensor"] = written.tensor->name;
  return command;
}

// Null where a task does not write the register.
Json CommandJson(const std::optional<rknpu::WrittenRegister>& written) {
  return written.has_value() ? CommandJson(*written) : Json();
}

Json TaskJson(const std::optional<uint32_t>& task, uint32_t enable_mask) {
  if (!task.has_value()) return {};
  return {{"task", *task}, {"blocks", rknpu::BlocksText(enable_mask)}};
}

// Of `bytes`, which are read from `path`.
Expected<rknpu::ProgramFile> ReadProgram(const std::string& path,
                                         std::span<const std::byte> bytes) {
  Expected<rknpu::ProgramFile> program = rknpu::Read(bytes);
  if (program) return program;
  return Error{program.error().code,
               "'" + path + "': " + program.error().message};
}

}  // namespace

Output ProgramOutput(const rknpu::ProgramFile& file) {
  Output output;
  Json tasks = Json::array();
  for (const rknpu::TaskList& list : file.lists) {
    for (uint32_t t = list.first; t < list.first + list.count; ++t) {
      const rknpu::TaskEntry& task = file.tasks[t];
      const rknpu::Node& node = file.nodes[task.node];
      Json commands = Json::array();
      for (const rknpu::WrittenRegister& written :
           rknpu::CommandsOf(file, task)) {
        commands.push_back(CommandJson(written));
      }
      tasks.push_back({{"task", t},
                       {"cores", list.cores},
                       {"core", list.core},
                       {"layer", task.node},
                       {"op_type", node.type},
                       {"full_name", node.name},
                       {"blocks", rknpu::BlocksText(task.enable_mask)},
                       {"commands", std::move(commands)}});
    }
  }
  output.json = {{"tasks", std::move(tasks)}};
  output.text = rknpu::ProgramText(file);
  return output;
}

Output DifferenceOutput(const rknpu::ProgramFile& first,
                        const rknpu::ProgramFile& second) {
  const rknpu::ProgramDifference difference = rknpu::Compare(first, second);
  Json tasks = Json::array();
  for (const rknpu::TaskDifference& task : difference.tasks) {
    Json registers = Json::array();
    for (const rknpu::RegisterDifference& one : task.registers) {
      registers.push_back({{"first", CommandJson(one.first)},
                           {"second", CommandJson(one.second)}});
    }
    tasks.push_back({{"cores", task.list.cores},
                     {"core", task.list.core},
                     {"full_name", task.layer},
                     {"first", TaskJson(task.first, task.first_enable)},
                     {"second", TaskJson(task.second, task.second_enable)},
                     {"registers", std::move(registers)}});
  }
  Output output;
  output.json = {{"same", difference.same}, {"differences", std::move(tasks)}};
  output.text = rknpu::DifferenceText(difference);
  return output;
}

namespace {

// What the daemon says that runs it, where there is one. No error is one of the
// file's.
void AddRunBy(const InfoOptions& options, Output& output) {
  if (options.daemon.empty() || options.program) return;
  const Expected<RunBy> asked = AskWhoRuns(options.daemon, options.file);
  if (asked && asked->by.empty()) return;
  const RunBy run_by = asked ? *asked : RunBy{"none", asked.error().message};
  output.json["run_by"] = run_by.by;
  output.json["run_by_because"] = run_by.because;
  Line(&output.text, "runs on", run_by.by + ": " + run_by.because);
}

// What can be said of a file whose layout is not known.
Output UnknownOutput(const std::string& path, uint64_t bytes,
                     const std::string& what) {
  Output output{{{"format", "rknn"}, {"file", path}, {"bytes", bytes}}, ""};
  Line(&output.text, ".rknn model", path + ", " + FormatBytes(bytes));
  Line(&output.text, "layout", what);
  return output;
}

}  // namespace

Expected<Output> Info(const InfoOptions& options) {
  const std::string& path = options.file;
  const Expected<std::vector<std::byte>> bytes = ReadFile(path);
  if (!bytes) return bytes.error();
  const rknn_file::Kind kind = rknn_file::KindOf(*bytes);
  if (kind == rknn_file::Kind::kOther) {
    if (!options.program) return OnnxOutput(path, *bytes);
    return Error{Code::kInvalidArgument,
                 "'" + path +
                     "' is no compiled model (.rknn): only those hold what an "
                     "NPU is told to do"};
  }
  const Expected<rknn_file::Description> file =
      kind == rknn_file::Kind::kRknn
          ? rknn_file::Read(*bytes)
          : Error{Code::kUnimplemented,
                  std::string("it is ") + rknn_file::KindName(kind) +
                      ", of which nothing more can be read"};
  if (!file) {
    // The vendor's library may know more of it.
    Output output = UnknownOutput(path, bytes->size(), file.error().message);
    AddRunBy(options, output);
    if (output.json.value("run_by", "none") != "none") return output;
    return Error{file.error().code, "'" + path + "': " + file.error().message};
  }
  Output output = RknnOutput(path, bytes->size(), *file);
  AddRunBy(options, output);
  if (!options.program) return output;
  const Expected<rknpu::ProgramFile> program = ReadProgram(path, *bytes);
  if (!program) return program.error();
  Output tasks;
  if (options.diff.empty()) {
    tasks = ProgramOutput(*program);
  } else {
    const Expected<std::vector<std::byte>> other_bytes = ReadFile(options.diff);
    if (!other_bytes) return other_bytes.error();
    const Expected<rknpu::ProgramFile> other =
        ReadProgram(options.diff, *other_bytes);
    if (!other) return other.error();
    tasks = DifferenceOutput(*program, *other);
  }
  output.json.update(tasks.json);
  output.text += "\n" + tasks.text;
  return output;
}

}  // namespace rknnd::client
