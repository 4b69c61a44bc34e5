#include "driver/rknpu/text/program_text.h"

#include <algorithm>
#include <cstdio>

#include "base/values/printable.h"

namespace rknnd::rknpu {
namespace {

// The relocation of a word; null: it is no address.
const Relocation* RelocationOf(const ProgramFile& file, uint32_t word) {
  const auto found = std::lower_bound(
      file.relocations.begin(), file.relocations.end(), word,
      [](const Relocation& a, uint32_t b) { return a.word < b; });
  if (found == file.relocations.end() || found->word != word) return nullptr;
  return &*found;
}

std::string Line(const WrittenRegister& written) {
  constexpr size_t kNameWidth = 36;
  std::string line = "    " + written.name;
  if (line.size() < kNameWidth) line.resize(kNameWidth, ' ');
  line += " " + HexText(written.command.value, 8);
  if (written.tensor != nullptr) {
    line +=
        "  from the start of '" + base::Printable(written.tensor->name) + "'";
  }
  return line + "\n";
}

}  // namespace

std::vector<WrittenRegister> CommandsOf(const ProgramFile& file,
                                        const TaskEntry& task) {
  std::vector<WrittenRegister> commands;
  const auto first = static_cast<uint32_t>(task.commands / sizeof(uint64_t));
  for (uint32_t word = first; word < first + task.words; ++word) {
    WrittenRegister written;
    written.command = Decode(file.commands[word]);
    written.name = NameOf(written.command.reg);
    if (const Relocation* address = RelocationOf(file, word)) {
      written.tensor = &file.tensors[address->tensor];
      written.command.value = address->addend;
    }
    commands.push_back(std::move(written));
  }
  return commands;
}

std::string HexText(uint64_t number, int digits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%0*llx", digits,
                static_cast<unsigned long long>(number));
  return text;
}

std::string BlocksText(uint32_t enable_mask) {
  std::string text;
  for (const BlockInfo& block : Blocks()) {
    if ((enable_mask & block.enable) == 0) continue;
    text += (text.empty() ? "" : " ") + std::string(block.name);
  }
  return text;
}

std::string ListText(const TaskList& list) {
  if (list.cores == 1) return "1 core";
  return "core " + std::to_string(list.core) + " of " +
         std::to_string(list.cores);
}

std::string ProgramText(const ProgramFile& file) {
  std::string text;
  for (const TaskList& list : file.lists) {
    text +=
        "tasks of " + ListText(list) + ": " + std::to_string(list.count) + "\n";
    for (uint32_t t = list.first; t < list.first + list.count; ++t) {
      const TaskEntry& task = file.tasks[t];
      const Node& node = file.nodes[task.node];
      text += "  task " + std::to_string(t) + ", layer " +
              std::to_string(task.node) + " " + base::Printable(node.type) +
              " '" + base::Printable(node.name) +
              "': " + BlocksText(task.enable_mask) + ", " +
              std::to_string(task.words) + " commands at " +
              HexText(task.commands, 0) + "\n";
      for (const WrittenRegister& written : CommandsOf(file, task)) {
        text += Line(written);
      }
    }
  }
  return text;
}

}  // namespace rknnd::rknpu
