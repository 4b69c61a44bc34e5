#include "client/ctl/reports/sram.h"

#include <sys/utsname.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

using Align = Table::Align;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPagesPerRow = 32;  // the kernel's
// 4 GiB, more than any SoC has: a map of it can still be drawn.
constexpr uint64_t kMostPages = uint64_t{1} << 20;
constexpr std::string_view kOption = "CONFIG_ROCKCHIP_RKNPU_SRAM";
constexpr unsigned kFirstDriver = 8;  // 0.8.0 was the first with SRAM

template <class... Values>
std::string Format(const char* format, Values... values) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string Bitmap(const wire::Report& report) {
  const uint64_t pages = std::min(report.sram_total / kPage, kMostPages);
  std::string map(pages, '.');
  for (const wire::SramWindow& window : report.sram_windows) {
    const uint64_t first = std::min(window.offset / kPage, pages);
    const uint64_t count = std::min(window.size / kPage, pages - first);
    map.replace(first, count, count, '*');
  }
  return map;
}

// "shared, core 0: 3 contexts"
std::string Holder(const wire::SramWindow& window) {
  std::string text = Printable(window.holder);
  if (window.contexts > 0)
    text += ": " + FormatCount(window.contexts, "context");
  return text;
}

// "0.7.2" is below 0.8.0; what is no version is not.
bool TooOld(const std::string& version) {
  unsigned major = 0;
  unsigned minor = 0;
  return std::sscanf(version.c_str(), "%u.%u", &major, &minor) == 2 &&
         major == 0 && minor < kFirstDriver;
}

// A text, packed or not; nothing when it cannot be read.
std::optional<std::string> ReadPacked(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(
      gzopen(path.c_str(), "rbe"), &gzclose);
  if (file == nullptr) return std::nullopt;
  constexpr size_t kMost = size_t{4} << 20;  // a configuration has 300 KiB
  std::string text;
  std::array<char, 16384> block;
  for (int got = 1; got > 0 && text.size() < kMost;) {
    got = gzread(file.get(), block.data(), block.size());
    if (got < 0) return std::nullopt;
    text.append(block.data(), static_cast<size_t>(got));
  }
  return text;
}

// Whether the kernel was built with the option, if that can be told.
std::optional<bool> HasOption(const std::string& root,
                              const std::string& release) {
  const std::string files[] = {root + "/proc/config.gz",
                               root + "/boot/config-" + release};
  for (const std::string& path : files) {
    auto config = ReadPacked(path);
    if (!config.has_value() || config->empty()) continue;
    config->insert(0, "\n");
    std::string line = "\n";
    line += kOption;
    line += "=y";
    return config->find(line) != std::string::npos;
  }
  return std::nullopt;
}

// Whether the NPU's node names SRAM, if there is such a node.
std::optional<bool> TreeHasSram(const std::string& root) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::optional<bool> has;
  for (const auto& entry :
       fs::directory_iterator(root + "/proc/device-tree", error)) {
    if (!entry.path().filename().string().starts_with("npu@")) continue;
    std::error_code ignored;
    has = has.value_or(false) ||
          fs::exists(entry.path() / "rockchip,sram", ignored);
  }
  return has;
}

}  // namespace

Output SramOutput(const wire::Report& report, const std::string& why_none) {
  const uint64_t total = report.sram_total;
  const std::string bitmap = Bitmap(report);
  Output output;
  Json windows = Json::array();
  Table table({{"START"},
               {"END"},
               {"SIZE", Align::kRight},
               {"SAVED A RUN", Align::kRight},
               {"HOLDER"}});
  for (const wire::SramWindow& w : report.sram_windows) {
    windows.push_back({{"offset", w.offset},
                       {"size", w.size},
                       {"holder", w.holder},
                       {"core_mask", w.core_mask},
                       {"contexts", w.contexts},
                       {"saved", w.saved}});
    const uint64_t start = report.sram_base + w.offset;
    table.Add({Format("0x%08" PRIx64, start),
               Format("0x%08" PRIx64, start + w.size), FormatBytes(w.size),
               FormatBytes(w.saved), Holder(w)});
  }
  output.json = {{"total", total},           {"free", report.sram_free},
                 {"base", report.sram_base}, {"page", kPage},
                 {"bitmap", bitmap},         {"windows", windows}};
  if (total == 0) {
    output.json["why"] = why_none;
    output.text = why_none + "\n";
    return output;
  }
  output.text = Format("SRAM region: [0x%016" PRIx64 ", 0x%016" PRIx64
                       "), SRAM size: 0x%" PRIx64 "\n",
                       report.sram_base, report.sram_base + total, total) +
                "SRAM bitmap: \"*\" - used, \".\" - free (1bit = 4KB)\n";
  for (uint64_t page = 0; page < bitmap.size(); page += kPagesPerRow) {
    output.text += Format("[%03" PRIu64 "] [", page / kPagesPerRow) +
                   bitmap.substr(page, kPagesPerRow) + "]\n";
  }
  output.text += Format(
      "SRAM total size: %" PRIu64 ", used: %" PRIu64 ", free: %" PRIu64 "\n",
      total, total - std::min(total, report.sram_free), report.sram_free);
  if (!windows.empty()) output.text += "\n" + table.ToString();
  return output;
}

std::string WhyNoSram(const wire::Report& report, const std::string& root,
                      const std::string& release) {
  const std::string soc = Printable(report.soc);
  std::string why;
  if (!std::string_view(report.soc).starts_with("rk3588")) {
    why = "the NPU of " + soc + " has none; the RK3588's has 956 KiB";
  } else if (TooOld(report.driver)) {
    why = "driver " + Printable(report.driver) +
          " < 0.8.0: update the kernel (the vendor asks for 0.9.2)";
  } else if (HasOption(root, release) == false) {
    why = std::string(kOption) +
          " not set: build the kernel with it, and with CONFIG_NO_GKI";
  } else if (TreeHasSram(root) == false) {
    why =
        "no rockchip,sram in the device tree: give the node npu@... a part "
        "of the system SRAM at 0xff001000";
  } else {
    why = std::string(kOption) +
          " not set, no rockchip,sram in the device tree, or driver < 0.8.0: "
          "which of them cannot be told here (see dmesg | grep -i rknpu)";
  }
  return "no SRAM: " + why + "; running without, slower only by DDR contention";
}

std::string WhyNoSram(const wire::Report& report) {
  struct utsname name {};
  (void)uname(&name);
  return WhyNoSram(report, "", name.release);
}

}  // namespace rknnd::client
