#include "driver/rknpu/text/program_diff.h"

#include <map>
#include <tuple>
#include <utility>

#include "base/values/printable.h"

namespace rknnd::rknpu {
namespace {

// Where a task belongs: its list, its layer, and which of its tasks it is.
using Place = std::tuple<uint32_t, uint32_t, std::string, uint32_t>;

struct PlacedTask {
  Place place;
  TaskList list;
  uint32_t task = 0;
};

std::vector<PlacedTask> TasksOf(const ProgramFile& file) {
  std::vector<PlacedTask> tasks;
  for (const TaskList& list : file.lists) {
    std::map<std::string, uint32_t> counts;
    for (uint32_t t = list.first; t < list.first + list.count; ++t) {
      const std::string& layer = file.nodes[file.tasks[t].node].name;
      tasks.push_back(
          {{list.cores, list.core, layer, counts[layer]++}, list, t});
    }
  }
  return tasks;
}

// By register. A task of a real file writes none of them twice with different
// values; of what one may have, the last is what holds.
std::map<uint16_t, WrittenRegister> RegistersOf(const ProgramFile& file,
                                                uint32_t task) {
  std::map<uint16_t, WrittenRegister> registers;
  for (WrittenRegister& written : CommandsOf(file, file.tasks[task])) {
    const uint16_t number = written.command.reg;
    registers.insert_or_assign(number, std::move(written));
  }
  return registers;
}

bool Alike(const WrittenRegister& a, const WrittenRegister& b) {
  const bool same_tensor = a.tensor == nullptr || b.tensor == nullptr
                               ? a.tensor == b.tensor
                               : a.tensor->name == b.tensor->name;
  return same_tensor && a.command.value == b.command.value;
}

std::vector<RegisterDifference> CompareTasks(const ProgramFile& first,
                                             uint32_t first_task,
                                             const ProgramFile& second,
                                             uint32_t second_task) {
  std::vector<RegisterDifference> differences;
  const auto a = RegistersOf(first, first_task);
  auto b = RegistersOf(second, second_task);
  for (const auto& [number, written] : a) {
    const auto found = b.find(number);
    if (found == b.end()) {
      differences.push_back({written, std::nullopt});
      continue;
    }
    if (!Alike(written, found->second)) {
      differences.push_back({written, found->second});
    }
    b.erase(found);
  }
  for (const auto& [number, written] : b) {
    differences.push_back({std::nullopt, written});
  }
  return differences;
}

std::string ValueText(const std::optional<WrittenRegister>& written) {
  if (!written.has_value()) return "not written";
  std::string text = HexText(written->command.value, 8);
  if (written->tensor != nullptr) {
    text +=
        " from the start of '" + base::Printable(written->tensor->name) + "'";
  }
  return text;
}

std::string TaskText(const TaskDifference& task) {
  std::string text = "  " + ListText(task.list) + ", layer '" +
                     base::Printable(task.layer) + "', ";
  if (!task.second.has_value()) {
    return text + "task " + std::to_string(*task.first) +
           ": only the first file has it\n";
  }
  if (!task.first.has_value()) {
    return text + "task " + std::to_string(*task.second) +
           ": only the second file has it\n";
  }
  text += "task " + std::to_string(*task.first);
  if (task.first != task.second) {
    text += " (" + std::to_string(*task.second) + ")";
  }
  text += ":\n";
  if (task.first_enable != task.second_enable) {
    text += "    blocks: " + BlocksText(task.first_enable) + " -> " +
            BlocksText(task.second_enable) + "\n";
  }
  for (const RegisterDifference& difference : task.registers) {
    const WrittenRegister& named =
        difference.first.has_value() ? *difference.first : *difference.second;
    text += "    " + named.name + ": " + ValueText(difference.first) + " -> " +
            ValueText(difference.second) + "\n";
  }
  return text;
}

}  // namespace

ProgramDifference Compare(const ProgramFile& first, const ProgramFile& second) {
  ProgramDifference difference;
  difference.first_platform = first.platform;
  difference.second_platform = second.platform;
  const std::vector<PlacedTask> others = TasksOf(second);
  std::map<Place, uint32_t> left;
  for (const PlacedTask& task : others) left.emplace(task.place, task.task);
  for (const PlacedTask& task : TasksOf(first)) {
    TaskDifference found;
    found.list = task.list;
    found.layer = std::get<2>(task.place);
    found.first = task.task;
    const auto other = left.find(task.place);
    if (other != left.end()) {
      found.second = other->second;
      found.first_enable = first.tasks[task.task].enable_mask;
      found.second_enable = second.tasks[other->second].enable_mask;
      found.registers = CompareTasks(first, task.task, second, other->second);
      left.erase(other);
      if (found.registers.empty() &&
          found.first_enable == found.second_enable) {
        ++difference.same;
        continue;
      }
    }
    difference.tasks.push_back(std::move(found));
  }
  for (const PlacedTask& task : others) {
    if (!left.contains(task.place)) continue;
    TaskDifference found;
    found.list = task.list;
    found.layer = std::get<2>(task.place);
    found.second = task.task;
    difference.tasks.push_back(std::move(found));
  }
  return difference;
}

std::string DifferenceText(const ProgramDifference& difference) {
  uint32_t changed = 0;
  uint32_t only_first = 0;
  uint32_t only_second = 0;
  for (const TaskDifference& task : difference.tasks) {
    if (!task.second.has_value()) {
      ++only_first;
    } else if (!task.first.has_value()) {
      ++only_second;
    } else {
      ++changed;
    }
  }
  std::string text = "tasks: " + std::to_string(difference.same) + " alike, " +
                     std::to_string(changed) + " changed, " +
                     std::to_string(only_first) + " only in the first file, " +
                     std::to_string(only_second) + " only in the second\n";
  if (difference.first_platform != difference.second_platform) {
    text += "the programs are for " +
            base::Printable(difference.first_platform) + " and " +
            base::Printable(difference.second_platform) +
            ", whose registers are not all the same: the names are those of "
            "the RK3588\n";
  }
  for (const TaskDifference& task : difference.tasks) text += TaskText(task);
  return text;
}

}  // namespace rknnd::rknpu
