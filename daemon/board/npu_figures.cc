#include "daemon/board/npu_figures.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace rknnd::board {
namespace {

// With CONFIG_ROCKCHIP_RKNPU_DEBUG_FS, or _PROC_FS.
constexpr const char* kFolders[] = {"/sys/kernel/debug/rknpu/", "/proc/rknpu/"};

std::optional<std::string> DriverText(const Files& files, const char* name) {
  for (const char* folder : kFolders) {
    std::optional<std::string> text = files.Text(std::string(folder) + name);
    if (text.has_value() && !text->empty()) return text;
  }
  return std::nullopt;
}

// The number that ends before `end`, with blanks in front of it.
std::optional<uint64_t> NumberBefore(const std::string& text, size_t end) {
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  uint64_t number = 0;
  const auto parsed =
      std::from_chars(text.data() + begin, text.data() + end, number);
  if (begin == end || parsed.ec != std::errc()) return std::nullopt;
  return number;
}

std::optional<uint64_t> NumberBehind(const std::string& text,
                                     const std::string& mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return std::nullopt;
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data() + at + mark.size(),
                                      text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return number;
}

void ReadLoad(const std::string& text, NpuFigures* figures) {
  constexpr uint64_t kMost = 100;
  constexpr size_t kMostCores = 8;
  for (size_t at = text.find('%'); at != std::string::npos;
       at = text.find('%', at + 1)) {
    const std::optional<uint64_t> load = NumberBefore(text, at);
    if (!load.has_value() || figures->load.size() == kMostCores) continue;
    figures->load_was_wrong |= *load > kMost;
    figures->load.push_back(static_cast<uint32_t>(std::min(*load, kMost)));
  }
}

}  // namespace

NpuFigures ReadNpuFigures(const Files& files) {
  NpuFigures figures;
  // Neither "freq", which wakes the NPU, nor "volt", at which the driver
  // crashes on boards that have no supply of that name.
  if (const auto text = DriverText(files, "load")) ReadLoad(*text, &figures);
  if (const auto text = DriverText(files, "mm")) {
    figures.sram_total = NumberBehind(*text, "SRAM total size: ");
    figures.sram_used = NumberBehind(*text, "used: ");
  }
  for (const std::string& name : files.List("/sys/class/devfreq")) {
    if (!absl::EndsWith(name, ".npu")) continue;
    figures.hertz =
        files.Number(absl::StrCat("/sys/class/devfreq/", name, "/cur_freq"));
    figures.power = files
                        .Line(absl::StrCat("/sys/devices/platform/", name,
                                           "/power/runtime_status"))
                        .value_or("");
  }
  for (const std::string& name : files.List("/sys/class/thermal")) {
    const std::string zone = absl::StrCat("/sys/class/thermal/", name);
    if (!absl::StartsWith(files.Line(zone + "/type").value_or(""), "npu")) {
      continue;
    }
    if (const auto milli = files.Number(zone + "/temp")) {
      figures.celsius = static_cast<double>(*milli) / 1e3;
    }
  }
  for (const std::string& name : files.List("/sys/class/regulator")) {
    const std::string supply = absl::StrCat("/sys/class/regulator/", name);
    if (!absl::StartsWith(files.Line(supply + "/name").value_or(""),
                          "vdd_npu")) {
      continue;
    }
    // The NPU's own memory has one, too, with a longer name.
    if (absl::StrContains(files.Line(supply + "/name").value_or(""), "mem")) {
      continue;
    }
    figures.microvolts = files.Number(supply + "/microvolts");
  }
  return figures;
}

std::string Describe(const NpuFigures& figures) {
  std::vector<std::string> parts;
  if (!figures.load.empty()) {
    parts.push_back(
        absl::StrCat("load ", absl::StrJoin(figures.load, " %, "), " %"));
  }
  if (figures.hertz.has_value()) {
    parts.push_back(absl::StrCat(*figures.hertz / 1000000, " MHz"));
  }
  if (figures.microvolts.has_value()) {
    parts.push_back(absl::StrFormat(
        "%.3f V", static_cast<double>(*figures.microvolts) / 1e6));
  }
  if (figures.celsius.has_value()) {
    parts.push_back(absl::StrFormat("%.0f C", *figures.celsius));
  }
  if (figures.sram_total.has_value() && figures.sram_used.has_value()) {
    parts.push_back(absl::StrCat("SRAM ", *figures.sram_used / 1024, " of ",
                                 *figures.sram_total / 1024, " KiB used"));
  }
  if (!figures.power.empty()) parts.push_back(figures.power);
  return absl::StrJoin(parts, "; ");
}

}  // namespace rknnd::board
