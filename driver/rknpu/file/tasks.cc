// Commands, the table of tasks, the lists it consists of, and the words of the
// commands that are addresses. What the commands say is not looked at here.

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "driver/rknpu/file/parts.h"

namespace rknnd::rknpu {
namespace {

using base::Expected;
using rknn_file::FlatTable;
using rknn_file::FlatVector;

Expected<std::span<const std::byte>> OneOfKind(const ProgramFile& file,
                                               TensorClass kind,
                                               const char* what, size_t unit) {
  const Tensor* found = nullptr;
  for (const Tensor& tensor : file.tensors) {
    if (tensor.kind != kind) continue;
    if (found != nullptr) {
      return Damaged(std::string("it has two tensors of ") + what);
    }
    found = &tensor;
  }
  if (found == nullptr) return std::span<const std::byte>();
  if (found->data.size() % unit != 0) {
    return Damaged(std::string("its ") + what + " have " +
                   std::to_string(found->data.size()) +
                   " bytes, which is no multiple of " + std::to_string(unit));
  }
  return found->data;
}

template <class T>
T NumberAt(std::span<const std::byte> bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

TaskEntry EntryAt(std::span<const std::byte> table, size_t at) {
  TaskEntry entry;
  uint32_t* const numbers[] = {&entry.flags,           &entry.node,
                               &entry.enable_mask,     &entry.interrupt_mask,
                               &entry.interrupt_clear, &entry.interrupt_status,
                               &entry.words,           &entry.first_word};
  for (uint32_t* number : numbers) {
    *number = NumberAt<uint32_t>(table, at);
    at += sizeof *number;
  }
  entry.commands = NumberAt<uint64_t>(table, at);
  return entry;
}

Expected<void> CheckEntry(const TaskEntry& entry, size_t number,
                          const ProgramFile& file) {
  const std::string what = "task " + std::to_string(number);
  if (entry.node >= file.nodes.size()) {
    return Damaged(what + " belongs to node " + std::to_string(entry.node) +
                   " of " + std::to_string(file.nodes.size()));
  }
  constexpr uint64_t kWordBytes = sizeof(uint64_t);
  if (entry.words > kMaxTaskWords) {
    return Damaged(what + " has " + std::to_string(entry.words) +
                   " words of commands, at most " +
                   std::to_string(kMaxTaskWords) + " are known");
  }
  const uint64_t needed = uint64_t{entry.words} + kChainWords;
  if (entry.commands % kWordBytes != 0 ||
      entry.commands / kWordBytes > file.commands.size() ||
      needed > file.commands.size() - entry.commands / kWordBytes) {
    return Damaged(what + " has " + std::to_string(needed) +
                   " words of commands from byte " +
                   std::to_string(entry.commands) + ", the file " +
                   std::to_string(file.commands.size()) + " in all");
  }
  return {};
}

// How many cores the lists are for, by how many numbers a node has.
std::vector<TaskList> ListsOf(size_t counts) {
  if (counts == 6) {
    return {{1, 0}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2}};
  }
  if (counts == 3) return {{1, 0}, {2, 0}, {2, 1}};
  return {{1, 0}};
}

// Lists lie one behind the other, each with the tasks of all nodes in order.
Expected<void> CutLists(ProgramFile& file) {
  if (file.nodes.empty()) return Damaged("it has no nodes");
  const size_t counts = file.nodes.front().task_counts.size();
  for (Node& node : file.nodes) {
    if (counts == 0 || node.task_counts.size() != counts) {
      return Damaged("node '" + node.name + "' has " +
                     std::to_string(node.task_counts.size()) +
                     " numbers of tasks, the first one has " +
                     std::to_string(counts));
    }
  }
  file.lists = ListsOf(counts);
  uint32_t next = 0;
  for (size_t l = 0; l < file.lists.size(); ++l) {
    file.lists[l].first = next;
    for (uint32_t n = 0; n < file.nodes.size(); ++n) {
      Node& node = file.nodes[n];
      const uint32_t count = node.task_counts[l];
      node.first_tasks.push_back(next);
      if (count > file.tasks.size() - next) {
        return Damaged("its nodes have more tasks than its table of " +
                       std::to_string(file.tasks.size()));
      }
      for (uint32_t t = next; t < next + count; ++t) {
        if (file.tasks[t].node == n) continue;
        return Damaged("task " + std::to_string(t) + " belongs to node " +
                       std::to_string(file.tasks[t].node) +
                       ", by the counts of tasks to node " + std::to_string(n));
      }
      next += count;
    }
    file.lists[l].count = next - file.lists[l].first;
  }
  for (Node& node : file.nodes) node.task_counts.resize(file.lists.size());
  return {};
}

// Where RK3588 files say that the lists of two and three cores start.
Expected<void> CheckStarts(Section& section, const FlatTable& graph,
                           const ProgramFile& file) {
  constexpr uint32_t kStarts = 10;
  const std::vector<uint32_t> starts =
      section.Numbers<uint32_t>(graph, kStarts);
  if (starts.size() != 5 || file.lists.size() != kMaxLists) return {};
  if (starts[3] == file.lists[1].first && starts[4] == file.lists[3].first) {
    return {};
  }
  return Damaged("its lists of two and three cores start at tasks " +
                 std::to_string(starts[3]) + " and " +
                 std::to_string(starts[4]) + ", by its nodes at " +
                 std::to_string(file.lists[1].first) + " and " +
                 std::to_string(file.lists[3].first));
}

// One name's places. `seen` has a mark for each word that is taken.
Expected<void> ReadPlaces(Section& section, const FlatTable& table,
                          uint32_t tensor, std::vector<bool>& seen,
                          ProgramFile& file) {
  constexpr uint32_t kPlaces = 1;
  // Structs of two numbers: the addend, then the word.
  for (const uint64_t place : section.Numbers<uint64_t>(table, kPlaces)) {
    const auto word = static_cast<uint32_t>(place >> 32);
    if (word >= seen.size() || seen[word]) {
      return Damaged("the address of '" + file.tensors[tensor].name +
                     "' belongs into word " + std::to_string(word) + " of " +
                     std::to_string(seen.size()) +
                     (word < seen.size() ? ", which has one already" : ""));
    }
    seen[word] = true;
    file.relocations.push_back({tensor, word, static_cast<uint32_t>(place)});
  }
  return {};
}

Expected<void> ReadRelocations(Section& section, const FlatTable& graph,
                               ProgramFile& file) {
  std::map<std::string_view, uint32_t> tensors;
  for (uint32_t i = 0; i < file.tensors.size(); ++i) {
    if (!file.tensors[i].name.empty()) tensors[file.tensors[i].name] = i;
  }
  constexpr uint32_t kRelocations = 7;
  constexpr uint32_t kName = 0;
  const FlatVector tables = section.Tables(graph, kRelocations);
  std::vector<bool> seen(file.commands.size());
  for (uint32_t i = 0; i < tables.size(); ++i) {
    const FlatTable table = graph.TableAt(tables, i);
    const std::string name = section.Text(table, kName);
    const auto tensor = tensors.find(name);
    if (tensor == tensors.end()) {
      return Damaged("its commands name a tensor '" + name +
                     "' that is not there");
    }
    Expected<void> read =
        ReadPlaces(section, table, tensor->second, seen, file);
    if (!read.ok()) return read;
  }
  std::sort(
      file.relocations.begin(), file.relocations.end(),
      [](const Relocation& a, const Relocation& b) { return a.word < b.word; });
  return {};
}

}  // namespace

Expected<void> ReadTasks(Section& section, const FlatTable& graph,
                         ProgramFile& file) {
  Expected<std::span<const std::byte>> bytes =
      OneOfKind(file, TensorClass::kCommands, "commands", sizeof(uint64_t));
  if (!bytes.ok()) return std::move(bytes).error();
  file.commands.resize(bytes->size() / sizeof(uint64_t));
  if (!bytes->empty()) {
    std::memcpy(file.commands.data(), bytes->data(), bytes->size());
  }
  bytes = OneOfKind(file, TensorClass::kTasks, "tasks", kTaskEntryBytes);
  if (!bytes.ok()) return std::move(bytes).error();
  if (bytes->size() / kTaskEntryBytes > kMaxTasks) {
    return Damaged("it has " + std::to_string(bytes->size() / kTaskEntryBytes) +
                   " tasks");
  }
  for (size_t at = 0; at < bytes->size(); at += kTaskEntryBytes) {
    const TaskEntry entry = EntryAt(*bytes, at);
    Expected<void> good = CheckEntry(entry, file.tasks.size(), file);
    if (!good.ok()) return good;
    file.tasks.push_back(entry);
  }
  Expected<void> cut = CutLists(file);
  if (!cut.ok()) return cut;
  Expected<void> starts = CheckStarts(section, graph, file);
  if (!starts.ok()) return starts;
  return ReadRelocations(section, graph, file);
}

}  // namespace rknnd::rknpu
