// The container, the model's own fields and the ports; the rest is in
// tensors.cc, nodes.cc and tasks.cc. Field numbers were found in published
// files.

#include "driver/rknpu/file/program_file.h"

#include <algorithm>
#include <utility>

#include "driver/rknn_file/container.h"
#include "driver/rknn_file/flatbuffer.h"
#include "driver/rknn_file/slots.h"
#include "driver/rknpu/file/parts.h"
#include "driver/rknpu/file/section.h"

namespace rknnd::rknpu {
namespace {

using base::Expected;
using rknn_file::FlatTable;
using rknn_file::FlatVector;
namespace graph_slot = rknn_file::graph_slot;
namespace model_slot = rknn_file::model_slot;

constexpr uint64_t kContainer = 6;
constexpr uint32_t kMaxPorts = 1024;
constexpr uint32_t kMaxBatch = 4096;

// The main section of a file of container 6.
Expected<std::span<const std::byte>> FindSection(
    std::span<const std::byte> bytes) {
  using rknn_file::Kind;
  const Kind kind = rknn_file::KindOf(bytes);
  if (kind == Kind::kOther) {
    return base::Error{base::Code::kInvalidArgument, "this is no .rknn file"};
  }
  if (kind != Kind::kRknn) {
    return Unsupported(std::string("it is ") + rknn_file::KindName(kind));
  }
  Expected<rknn_file::Container> container = rknn_file::FindContainer(bytes);
  if (!container.ok()) return std::move(container).error();
  if (container->version != kContainer) {
    return Unsupported(
        "it is of container version " + std::to_string(container->version) +
        "; only version 6 is known well enough (toolkit 1.6 and later): "
        "convert the model again");
  }
  return container->section;
}

Expected<Buffers> ReadBuffers(Section& section, const FlatTable& root) {
  const FlatVector tables = section.Tables(root, model_slot::kBuffers);
  Buffers buffers;
  for (uint32_t i = 0; i < tables.size(); ++i) {
    buffers.push_back(section.Bytes(root.TableAt(tables, i), 0));
  }
  return buffers;
}

// "0": none.
Expected<uint32_t> BatchOf(const std::string& text) {
  uint32_t batch = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || batch > kMaxBatch) {
      return Damaged("its batch is '" + text + "'");
    }
    batch = batch * 10 + static_cast<uint32_t>(c - '0');
  }
  if (batch > kMaxBatch) return Damaged("its batch is '" + text + "'");
  return std::max<uint32_t>(batch, 1);
}

Expected<void> ReadPorts(Section& section, const FlatTable& graph,
                         uint32_t slot, TensorClass kind, const char* what,
                         const ProgramFile& file,
                         std::vector<uint32_t>& ports) {
  ports = section.Numbers<uint32_t>(graph, slot);
  if (ports.empty() || ports.size() > kMaxPorts) {
    return Damaged("it has " + std::to_string(ports.size()) + " " + what);
  }
  for (const uint32_t port : ports) {
    if (port >= file.tensors.size()) {
      return Damaged(std::string("its ") + what + " name tensor " +
                     std::to_string(port) + " of " +
                     std::to_string(file.tensors.size()));
    }
    if (file.tensors[port].kind != kind) {
      return Damaged("tensor '" + file.tensors[port].name + "' is one of its " +
                     what + ", by its class it is none");
    }
  }
  return {};
}

Expected<void> ReadScaling(Section& section, const FlatTable& graph,
                           ProgramFile& file) {
  const FlatVector tables = section.Tables(graph, graph_slot::kScaling);
  for (uint32_t i = 0; i < tables.size(); ++i) {
    const FlatTable table = graph.TableAt(tables, i);
    file.input_scaling.push_back({section.Numbers<float>(table, 0),
                                  section.Numbers<float>(table, 1),
                                  section.Numbers<uint32_t>(table, 2)});
  }
  if (!file.input_scaling.empty() &&
      file.input_scaling.size() != file.inputs.size()) {
    return Damaged("it has means for " +
                   std::to_string(file.input_scaling.size()) + " inputs of " +
                   std::to_string(file.inputs.size()));
  }
  return {};
}

Expected<void> ReadGraph(Section& section, const FlatTable& graph,
                         const Buffers& buffers, ProgramFile& file) {
  Expected<void> read = ReadTensors(section, graph, buffers, file);
  if (read.ok()) read = ReadNodes(section, graph, file);
  if (read.ok()) read = ReadTasks(section, graph, file);
  if (read.ok()) {
    read = ReadPorts(section, graph, graph_slot::kInputs, TensorClass::kInput,
                     "inputs", file, file.inputs);
  }
  if (read.ok()) {
    read = ReadPorts(section, graph, graph_slot::kOutputs, TensorClass::kOutput,
                     "outputs", file, file.outputs);
  }
  if (read.ok()) read = ReadScaling(section, graph, file);
  return read;
}

Expected<void> ReadModel(Section& section, ProgramFile& file) {
  const FlatTable root = section.buffer().Root();
  file.versions = section.Text(root, model_slot::kVersions);
  file.platform = section.Text(root, model_slot::kPlatform);
  file.framework = section.Text(root, model_slot::kFramework);
  const std::string shapes = section.Text(root, model_slot::kShapes);
  if (shapes != "static_shape") {
    return Unsupported("its shapes are dynamic ('" + shapes +
                       "'); convert the model for one shape");
  }
  Expected<uint32_t> batch = BatchOf(section.Text(root, model_slot::kBatch));
  if (!batch.ok()) return std::move(batch).error();
  file.batch = *batch;
  const FlatTable sizes = root.Table(model_slot::kSizes);
  file.weight_bytes = sizes.Number<uint64_t>(0);
  file.internal_bytes = sizes.Number<uint64_t>(1);
  file.generated_bytes = sizes.Number<uint64_t>(2);
  const FlatVector graphs = section.Tables(root, model_slot::kGraphs);
  if (graphs.size() == 0) return Damaged("it has no graph");
  if (graphs.size() != 1) {
    return Unsupported("it has " + std::to_string(graphs.size()) +
                       " graphs, only one is known");
  }
  Expected<Buffers> buffers = ReadBuffers(section, root);
  if (!buffers.ok()) return std::move(buffers).error();
  return ReadGraph(section, root.TableAt(graphs, 0), *buffers, file);
}

}  // namespace

Expected<ProgramFile> Read(std::span<const std::byte> bytes) {
  Expected<std::span<const std::byte>> main = FindSection(bytes);
  if (!main.ok()) return std::move(main).error();
  Section section(*main);
  if (!section.buffer().HasIdentifier("RKNN")) {
    return Damaged("its main section is no RKNN FlatBuffer");
  }
  ProgramFile file;
  Expected<void> read = ReadModel(section, file);
  // What led outside read as absent: that is the cause, not its consequence.
  Expected<void> whole = section.Check();
  if (!whole.ok()) return std::move(whole).error();
  if (!read.ok()) return std::move(read).error();
  return file;
}

}  // namespace rknnd::rknpu
