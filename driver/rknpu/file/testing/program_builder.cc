#include "driver/rknpu/file/testing/program_builder.h"

#include <utility>

#include "driver/rknn_file/testing/flatbuffer_writer.h"

namespace rknnd::rknpu::testing {
namespace {

using rknn_file::testing::Writer;

template <class T>
void Append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Writer::Fields FieldsOf(const TensorSpec& tensor, uint32_t buffer) {
  return {{0, Writer::Number(tensor.type)},
          {1, Writer::Number(tensor.layout)},
          {2, Writer::Number(tensor.kind)},
          {3, Writer::Numbers(tensor.native_shape)},
          {4, Writer::Numbers(tensor.shape)},
          {5, Writer::Text(tensor.name)},
          {10, Writer::Numbers(tensor.scales)},
          {11, Writer::Numbers(tensor.zero_points)},
          {12, Writer::Number(tensor.bytes)},
          {13, Writer::Number(tensor.offset)},
          {14, Writer::Number(tensor.compressed)},
          {18, Writer::Number(buffer)}};
}

Writer::Fields FieldsOf(const NodeSpec& node) {
  Writer::Fields fields = {{1, Writer::Text(node.type)},
                           {2, Writer::Text(node.name)},
                           {3, Writer::Number(node.device)},
                           {4, Writer::Numbers(node.inputs)},
                           {5, Writer::Numbers(node.outputs)},
                           {9, Writer::Text(node.document)},
                           {10, Writer::Numbers(node.tasks)},
                           {11, Writer::Numbers(node.table_tasks)}};
  if (!node.kernel.empty()) {
    fields[7] = Writer::Number(uint8_t{1});
    fields[8] = Writer::Table({{1, Writer::Numbers(std::vector<int32_t>{1, 1})},
                               {2, Writer::Number(uint32_t{1})},
                               {3, Writer::Numbers(node.kernel)},
                               {4, Writer::Numbers(node.pads)},
                               {5, Writer::Numbers(node.strides)}});
  }
  if (!node.permutation.empty()) {
    fields[7] = Writer::Number(uint8_t{25});
    fields[8] = Writer::Table({{0, Writer::Numbers(node.permutation)}});
  }
  return fields;
}

Writer::Fields FieldsOf(const RelocationSpec& relocation) {
  std::vector<uint64_t> places;
  for (const RelocationSpec::Place& place : relocation.places) {
    places.push_back(uint64_t{place.word} << 32 | place.addend);
  }
  return {{0, Writer::Text(relocation.tensor)}, {1, Writer::Numbers(places)}};
}

std::string BytesOf(const std::vector<TaskEntry>& tasks) {
  std::string bytes;
  for (const TaskEntry& task : tasks) {
    for (const uint32_t number :
         {task.flags, task.node, task.enable_mask, task.interrupt_mask,
          task.interrupt_clear, task.interrupt_status, task.words,
          task.first_word}) {
      Append(bytes, number);
    }
    Append(bytes, task.commands);
  }
  return bytes;
}

std::string BytesOf(const std::vector<uint64_t>& words) {
  std::string bytes;
  for (const uint64_t word : words) Append(bytes, word);
  return bytes;
}

template <class Spec>
Writer::Field TablesOf(const std::vector<Spec>& specs) {
  std::vector<Writer::Fields> tables;
  for (const Spec& spec : specs) tables.push_back(FieldsOf(spec));
  return Writer::Tables(tables);
}

}  // namespace

ProgramSpec SmallProgram() {
  ProgramSpec spec;
  spec.tensors = {{.layout = 0, .kind = 0},
                  {.name = "w",
                   .layout = 65,
                   .kind = 4,
                   .native_shape = {1, 1, 1, 1, 2, 16},
                   .shape = {2, 3, 1, 1},
                   .bytes = 32,
                   .data = std::string(32, '\1')},
                  {.name = "x",
                   .kind = 1,
                   .native_shape = {1, 1, 4, 16, 3},
                   .shape = {1, 3, 4, 16},
                   .scales = {0.5F},
                   .zero_points = {-3},
                   .bytes = 192},
                  {.name = "y",
                   .kind = 2,
                   .native_shape = {1, 1, 4, 16, 16},
                   .shape = {1, 2, 4, 16},
                   .scales = {0.25F},
                   .zero_points = {7},
                   .bytes = 1024,
                   .offset = 192}};
  spec.weight_bytes = 64;
  spec.internal_bytes = 1216;
  spec.nodes = {{.type = "InputOperator",
                 .name = "InputOperator:x",
                 .device = 0,
                 .outputs = {2}},
                {.type = "Conv",
                 .name = "Conv:c",
                 .inputs = {2, 1},
                 .outputs = {3},
                 .tasks = {1, 1, 0, 1, 0, 0},
                 .kernel = {1, 1},
                 .pads = {0, 0, 0, 0},
                 .strides = {1, 1}},
                {.type = "OutputOperator",
                 .name = "OutputOperator:y",
                 .device = 0,
                 .inputs = {3}}};
  spec.inputs = {2};
  spec.outputs = {3};
  // Two addresses, another register, and the chain's four words.
  spec.commands = {
      0x0201000000001070, 0x0201000000001110, 0x1001000000404020, 0,
      0x0101000000000014, 0x0041000000000000, 0x00810000000d0008, 0};
  spec.relocations = {{"x", {{0, 0}}}, {"w", {{0, 1}}}, {"y", {{64, 2}}}};
  spec.commands[2] = 0x1001000000404020;
  const TaskEntry task = {.node = 1,
                          .enable_mask = 0xd,
                          .interrupt_mask = 0x300,
                          .interrupt_clear = 0x1ffff,
                          .words = 3};
  spec.tasks = {task, task, task};
  spec.list_starts = {0, 0, 0, 1, 2};
  return spec;
}

std::string Build(ProgramSpec spec) {
  spec.tensors.push_back({.name = "regcmd",
                          .type = 13,
                          .layout = 0,
                          .kind = 9,
                          .data = BytesOf(spec.commands)});
  spec.tensors.push_back({.name = "task",
                          .type = 13,
                          .layout = 0,
                          .kind = 10,
                          .data = BytesOf(spec.tasks)});
  std::vector<Writer::Fields> buffers = {{}};
  std::vector<Writer::Fields> tensors;
  for (const TensorSpec& tensor : spec.tensors) {
    uint32_t buffer = 0;
    if (!tensor.data.empty()) {
      buffer = static_cast<uint32_t>(buffers.size());
      buffers.push_back({{0, Writer::Text(tensor.data)}});
    }
    tensors.push_back(FieldsOf(tensor, buffer));
  }
  const Writer::Fields graph = {{0, Writer::Tables(tensors)},
                                {1, TablesOf(spec.nodes)},
                                {2, Writer::Numbers(spec.inputs)},
                                {3, Writer::Numbers(spec.outputs)},
                                {7, TablesOf(spec.relocations)},
                                {10, Writer::Numbers(spec.list_starts)}};
  const Writer::Fields root = {
      {0, Writer::Number(uint32_t{6})},
      {1, Writer::Text("RKNPU v2")},
      {2, Writer::Tables(std::vector<Writer::Fields>(spec.graphs, graph))},
      {7, Writer::Text("2.3.2(compiler version: 2.3.2 (abc@2025-04-01))")},
      {8, Writer::Text(spec.platform)},
      {9, Writer::Text("ONNX")},
      {14, Writer::Text(spec.batch)},
      {16, Writer::Text(spec.shapes)},
      {19, Writer::Table({{0, Writer::Number(spec.weight_bytes)},
                          {1, Writer::Number(spec.internal_bytes)},
                          {2, Writer::Number(spec.generated_bytes)}})},
      {20, Writer::Tables(buffers)}};
  const std::string section = Writer().Finish(root);
  std::string file("RKNN\0\0\0\0", 8);
  Append(file, spec.container);
  Append(file, uint64_t{section.size()});
  file.append(40, '\0');
  file += section;
  const std::string json = "{}";
  Append(file, uint64_t{json.size()});
  return file + json;
}

}  // namespace rknnd::rknpu::testing
