#include "driver/rknpu/testing/task_writer.h"

#include "driver/rknpu/registers/registers.h"

namespace rknnd::rknpu::testing {

Registers SmallConvolution() {
  return {{0x100c, 0},
          {0x1020, 8U << 16 | 4},
          {0x1024, 16},
          {0x1030, 512},
          {0x1038, 0x01010020},
          {0x1070, 0},
          {0x107c, 32},
          {0x1080, 0},
          {0x1110, 0},
          {0x3018, 31},
          {0x400c, 0x1e4},
          {0x4010, 0},
          {0x4020, 0},
          {0x4024, 512},
          {0x4038, 0},
          {0x403c, 0x1f001f},
          {0x4050, 1U << 2},
          {0x4058, 31},
          {0x405c, 3U << 16 | 7},
          {0x40c0, 1024}};
}

TaskWriter::TaskWriter() : spec_(SmallProgram()) {
  spec_.tensors[1].bytes = 512;
  spec_.tensors[1].data.assign(512, '\1');
  spec_.tensors[2].native_shape = {1, 1, 4, 8, 16};
  spec_.tensors[2].bytes = 512;
  spec_.tensors[3].native_shape = {1, 2, 4, 8, 16};
  spec_.tensors[3].offset = 512;
  spec_.weight_bytes = 512;
  spec_.internal_bytes = 1536;
  spec_.nodes.resize(1);
  spec_.nodes[0].tasks = {0};
  spec_.commands.clear();
  spec_.tasks.clear();
  spec_.relocations.clear();
  spec_.list_starts.clear();
}

TaskWriter& TaskWriter::Node(const std::string& name) {
  NodeSpec node;
  node.type = "Conv";
  node.name = name;
  node.tasks = {0};
  spec_.nodes.push_back(node);
  return *this;
}

TaskWriter& TaskWriter::Add(uint32_t enable_mask, const Registers& registers,
                            const std::map<uint16_t, std::string>& addresses) {
  std::vector<uint64_t>& words = spec_.commands;
  const size_t first = words.size();
  for (const auto& [number, value] : registers) {
    const auto address = addresses.find(number);
    if (address != addresses.end()) {
      const auto place =
          relocations_.emplace(address->second, spec_.relocations.size());
      if (place.second) spec_.relocations.push_back({address->second, {}});
      spec_.relocations[place.first->second].places.push_back(
          {value, static_cast<uint32_t>(words.size())});
    }
    for (const BlockInfo& block : Blocks()) {
      if (block.page != number >> 12) continue;
      words.push_back(Encode({block.target, value, number}));
    }
  }
  const auto count = static_cast<uint32_t>(words.size() - first);
  if (!spec_.tasks.empty()) {
    const TaskEntry& last = spec_.tasks.back();
    const size_t link = last.commands / sizeof(uint64_t) + last.words;
    words[link] =
        Encode({0x0101, static_cast<uint32_t>(first * sizeof(uint64_t)), 0x10});
    words[link + 1] = Encode({0x0101, (count + kChainWords + 1) / 2 - 1, 0x14});
  }
  words.push_back(0);
  words.push_back(Encode({0x0101, 0, 0x14}));
  words.push_back(Encode({kSyncTarget, 0, 0}));
  words.push_back(Encode({kEnableTarget, enable_mask, 8}));
  while (words.size() % 8 != 0) words.push_back(0);
  TaskEntry task;
  task.node = static_cast<uint32_t>(spec_.nodes.size() - 1);
  task.enable_mask = enable_mask;
  task.interrupt_mask = enable_mask == 0x60 ? 0xc00 : 0x300;
  task.words = count;
  task.commands = first * sizeof(uint64_t);
  spec_.tasks.push_back(task);
  ++spec_.nodes.back().tasks[0];
  return *this;
}

ProgramSpec CopyProgram() {
  Registers registers = {{0x4004, 0xe},     {0x5004, 0xe},
                         {0x400c, 0x1e5},   {0x4010, 0},
                         {0x4014, 0},       {0x4020, 0},
                         {0x4024, 512},     {0x4038, 0},
                         {0x403c, 0xf000f}, {0x4040, 0x53},
                         {0x4050, 2},       {0x4054, 0},
                         {0x4058, 15},      {0x405c, 3U << 16 | 7},
                         {0x4060, 0x53},    {0x4070, 0x383},
                         {0x407c, 0},       {0x4080, 0},
                         {0x4084, 1},       {0x4088, 0},
                         {0x40c0, 512},     {0x40c4, 0},
                         {0x500c, 7},       {0x5010, 3},
                         {0x5014, 15},      {0x5018, 0},
                         {0x501c, 0},       {0x5020, 0},
                         {0x5028, 0},       {0x502c, 0},
                         {0x5034, 1},       {0x5038, 0},
                         {0x5040, 0},       {0x5044, 0x7801},
                         {0x5048, 0},       {0x504c, 0},
                         {0x5064, 0},       {0x506c, 0}};
  for (uint16_t number = 0x4090; number <= 0x40ac; number += 4) {
    registers[number] = 0;
  }
  TaskWriter writer;
  writer.Node("copy").Add(0x18, registers, {{0x4020, "y"}, {0x5018, "x"}});
  ProgramSpec spec = writer.spec();
  spec.tensors[2].shape = {1, 16, 4, 8};
  spec.tensors[3].shape = {1, 16, 4, 8};
  spec.tensors[3].native_shape = {1, 1, 4, 8, 16};
  return spec;
}

}  // namespace rknnd::rknpu::testing
