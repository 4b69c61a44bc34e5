// See cpu_name.h.

#include "bench/peers/cpu_name.h"

#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

namespace rknnd::bench {
namespace {

// Arm's parts in boards with an NPU of Rockchip, and in those of others who may
// measure: the main ID registers of their technical reference manuals.
struct Part {
  std::string_view number, name;
};
constexpr Part kArmParts[] = {
    {"0xd03", "Cortex-A53"},  {"0xd04", "Cortex-A35"},  {"0xd05", "Cortex-A55"},
    {"0xd07", "Cortex-A57"},  {"0xd08", "Cortex-A72"},  {"0xd09", "Cortex-A73"},
    {"0xd0b", "Cortex-A76"},  {"0xd0c", "Neoverse N1"}, {"0xd41", "Cortex-A78"},
    {"0xd40", "Neoverse V1"}, {"0xd49", "Neoverse N2"}};
constexpr std::string_view kArm = "0x41";

std::string NameOfPart(std::string_view implementer, std::string_view number) {
  for (const Part& part : kArmParts) {
    if (implementer == kArm && part.number == number) {
      return std::string(part.name);
    }
  }
  return "part " + std::string(number) + " of implementer " +
         std::string(implementer);
}

// What stands behind "key   : "; empty: this is another line.
std::string ValueOf(const std::string& line, std::string_view key) {
  const size_t colon = line.find(": ");
  if (!line.starts_with(key) || colon == std::string::npos) return "";
  return line.substr(colon + 2);
}

}  // namespace

std::string CpuNameOf(std::istream& cpuinfo, const std::string& board) {
  std::vector<std::pair<std::string, int>> parts;  // in the kernel's order
  std::string implementer;
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::string model = ValueOf(line, "model name");
    if (!model.empty()) return model;
    if (auto value = ValueOf(line, "CPU implementer"); !value.empty()) {
      implementer = std::move(value);
    }
    const std::string part = ValueOf(line, "CPU part");
    if (part.empty()) continue;
    std::string name = NameOfPart(implementer, part);
    if (parts.empty() || parts.back().first != name) {
      parts.emplace_back(std::move(name), 0);
    }
    ++parts.back().second;
  }
  std::string names = board;
  for (const auto& [name, count] : parts) {
    if (!names.empty()) names += ", ";
    names += std::to_string(count) + " x " + name;
  }
  return names.empty() ? "unknown CPU" : names;
}

std::string CpuName() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::ifstream tree("/proc/device-tree/model");
  std::string board;
  std::getline(tree, board, '\0');
  return CpuNameOf(cpuinfo, board);
}

}  // namespace rknnd::bench
