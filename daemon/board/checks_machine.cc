// What the NPU works with: memory, clocks, the limits of this process.

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/board/checks.h"
#include "daemon/core/models/slow_layers.h"

namespace rknnd::board {
namespace {

using transport::BoardClock;
using transport::Finding;
using Level = Finding::Level;

// One fd for each buffer, of which a board has had 1,500 in use, and eight for
// each session: ten times that.
constexpr uint64_t kFilesWanted = 16384;
// As the kernel has it by itself.
constexpr uint64_t kMapsWanted = 65530;
// The kernel keeps some of 4 GiB for itself.
constexpr uint64_t kAbove4G = uint64_t{4200} * 1024;  // KiB
// Of the highest; governors step by more than that.
constexpr double kAtTheTop = 0.98;

// A line of /proc/meminfo, in KiB.
std::optional<uint64_t> MemInfo(const Files& files, const char* name) {
  const std::string text = files.Text("/proc/meminfo").value_or("");
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (const std::string& line : lines) {
    const std::vector<std::string> words = Words(line);
    if (words.size() < 2 || words[0] != absl::StrCat(name, ":")) continue;
    uint64_t kib = 0;
    if (absl::SimpleAtoi(words[1], &kib)) return kib;
  }
  return std::nullopt;
}

std::string Megahertz(uint64_t hz) {
  return absl::StrCat(hz / 1'000'000, " MHz");
}

const char* NameOf(const BoardClock& clock) {
  return clock.name == "npu" ? "NPU" : clock.name == "ddr" ? "DDR" : "CPU";
}

Finding CheckClock(const BoardClock& clock) {
  const std::string check =
      absl::StartsWith(clock.name, "cpu") ? "cpu-clock" : clock.name + "-clock";
  const std::string who =
      absl::StartsWith(clock.name, "cpu") ? clock.name : NameOf(clock);
  const std::string state = absl::StrCat(
      who, " at ", clock.hz == 0 ? "an unknown rate" : Megahertz(clock.hz),
      clock.max_hz == 0 ? "" : absl::StrCat(" of ", Megahertz(clock.max_hz)),
      clock.governor.empty()
          ? ""
          : absl::StrCat(", governor '", clock.governor, "'"),
      clock.pinned ? ", pinned by an operator" : "");
  if (clock.governor == "powersave") {
    return {check, Level::kWarning, state,
            "it is kept at its lowest rate: choose another governor (echo "
            "performance, or the kernel's default), or 'rknnctl perf "
            "--fix-freq' while you measure"};
  }
  const bool low = clock.hz != 0 && clock.max_hz != 0 &&
                   static_cast<double>(clock.hz) <
                       kAtTheTop * static_cast<double>(clock.max_hz);
  if (!low) return {check, Level::kOk, state, ""};
  // Slow is what an idle clock is there for: it becomes a finding where the
  // governor will not raise it for the NPU's work.
  const bool fixed = clock.governor == "userspace";
  return {check, fixed ? Level::kWarning : Level::kNote, state,
          fixed ? "it is fixed below its highest rate: write the highest to "
                  "userspace/set_freq, or choose another governor"
                : "the governor raises it under load; where figures are lower "
                  "than published, measure with 'rknnctl perf --fix-freq'"};
}

void CheckHeaps(const Files& files, const DaemonFacts& here, Findings* out) {
  const std::vector<std::string> heaps = files.List("/dev/dma_heap");
  const bool udmabuf = files.Exists("/dev/udmabuf");
  std::string text = absl::StrCat("buffers come from ", here.heaps);
  if (!heaps.empty()) {
    absl::StrAppend(&text, "; /dev/dma_heap has ", absl::StrJoin(heaps, ", "));
  }
  if (!heaps.empty() || udmabuf) {
    out->push_back({"heaps", Level::kOk, text, ""});
  } else {
    out->push_back({"heaps", Level::kNote,
                    text + "; there is neither /dev/dma_heap nor /dev/udmabuf",
                    "to share buffers with cameras, RGA or a display, use a "
                    "kernel with CONFIG_DMABUF_HEAPS or CONFIG_UDMABUF, and "
                    "let the daemon open those nodes"});
  }
  if (!heaps.empty() && files.Exists("/dev/rga") &&
      std::none_of(heaps.begin(), heaps.end(),
                   [](const std::string& heap) {
                     return absl::StrContains(heap, "dma32");
                   }) &&
      MemInfo(files, "MemTotal").value_or(0) > kAbove4G) {
    out->push_back({"heap-dma32", Level::kNote,
                    "no heap below 4 GB, and this board has more memory than "
                    "that: RGA2 cannot reach all buffers",
                    "use the heaps 'system-dma32' or 'cma' of the vendor's "
                    "kernel for what RGA works on"});
  }
}

}  // namespace

void CheckMemory(const Files& files, const DaemonFacts& here,
                 const NpuDriver& npu, Findings* out) {
  CheckHeaps(files, here, out);
  const std::optional<uint64_t> cma = MemInfo(files, "CmaTotal");
  const uint64_t cma_free = MemInfo(files, "CmaFree").value_or(0);
  if (cma.has_value() && *cma > 0) {
    out->push_back({"cma", Level::kOk,
                    absl::StrCat(cma_free / 1024, " MiB of ", *cma / 1024,
                                 " MiB of contiguous memory are free"),
                    ""});
  }
  if (npu.kind == NpuDriver::Kind::kRknpu && !npu.device.empty()) {
    if (files.Exists(npu.device + "/iommu_group")) {
      out->push_back(
          {"iommu", Level::kOk, "the NPU works behind an IOMMU", ""});
    } else {
      out->push_back(
          {"iommu", Level::kWarning,
           absl::StrCat("the NPU works without IOMMU: its buffers must be "
                        "contiguous, and ",
                        cma_free / 1024, " MiB of such memory are free"),
           "switch on the NPU's iommu node in the device tree, or reserve "
           "more contiguous memory (cma=512M on the kernel's command line)"});
    }
  }
  const uint64_t total = MemInfo(files, "MemTotal").value_or(0);
  const bool rk356x = absl::StartsWith(here.device.soc, "rk356");
  if (npu.kind == NpuDriver::Kind::kRknpu && rk356x && total > kAbove4G) {
    out->push_back({"ram-above-4g", Level::kWarning,
                    absl::StrCat(here.device.soc, " with ", total / 1024,
                                 " MiB of memory: some kernels place the "
                                 "NPU's page tables above 4 GB, which its "
                                 "IOMMU cannot reach"),
                    "if the first job fails: use a kernel with the IOMMU's "
                    "GFP_DMA32 fix (Armbian 10366), or boot with mem=3840M"});
  }
  // Not ours, but what frames are scaled and decoded by.
  for (const auto& [check, node, what] :
       {std::array{"rga", "/dev/rga", "2D accelerator (RGA)"},
        std::array{"mpp", "/dev/mpp_service", "video codecs (MPP)"}}) {
    if (files.Exists(node)) {
      out->push_back(
          {check, Level::kOk, absl::StrCat("'", node, "' is there"), ""});
    } else if (npu.kind == NpuDriver::Kind::kRknpu) {
      out->push_back({check, Level::kNote,
                      absl::StrCat("no '", node, "': this kernel has no ", what,
                                   " driver of the vendor"),
                      "frames are converted by the CPU; a kernel of the "
                      "board's vendor has it"});
    }
  }
}

void CheckModels(const DaemonFacts& here, Findings* out) {
  for (const std::string& slow : here.slow_models) {
    out->push_back(
        {"slow-layers", Level::kWarning, slow, core::kSlowLayersRemedy});
  }
  if (here.slow_models.empty()) {
    out->push_back({"slow-layers", Level::kOk,
                    "no loaded model has layers that a reference loop computes",
                    ""});
  }
}

void CheckLimits(const Files& files, const DaemonFacts& here, Findings* out) {
  if (here.open_files < kFilesWanted) {
    out->push_back({"fd-limit", Level::kWarning,
                    absl::StrCat("the daemon may have ", here.open_files,
                                 " files open; each buffer is one"),
                    "set LimitNOFILE=65536 in its service, or 'ulimit -n "
                    "65536' before it is started"});
  } else {
    out->push_back({"fd-limit", Level::kOk,
                    absl::StrCat(here.open_files, " files may be open"), ""});
  }
  // Nothing here is locked but where devices pin what they map.
  constexpr uint64_t kLockedWanted = uint64_t{64} << 20;
  if (here.locked_bytes < kLockedWanted && !here.root) {
    out->push_back(
        {"memlock-limit", Level::kNote,
         absl::StrCat("the daemon may lock ", here.locked_bytes / 1024,
                      " KiB of memory; some kernels count pinned "
                      "buffers against that"),
         "set LimitMEMLOCK=infinity in its service"});
  } else {
    out->push_back(
        {"memlock-limit", Level::kOk, "memory may be locked as needed", ""});
  }
  const std::optional<uint64_t> maps =
      files.Number("/proc/sys/vm/max_map_count");
  if (maps.has_value() && *maps < kMapsWanted) {
    out->push_back({"map-limit", Level::kWarning,
                    absl::StrCat("a process may have ", *maps,
                                 " mappings (vm.max_map_count), and each "
                                 "buffer takes one"),
                    "sysctl vm.max_map_count=65530 or more"});
  }
}

void CheckClocks(const std::vector<BoardClock>& clocks, Findings* out) {
  for (const BoardClock& clock : clocks) out->push_back(CheckClock(clock));
  const bool npu =
      std::any_of(clocks.begin(), clocks.end(),
                  [](const BoardClock& clock) { return clock.name == "npu"; });
  const bool ddr =
      std::any_of(clocks.begin(), clocks.end(),
                  [](const BoardClock& clock) { return clock.name == "ddr"; });
  if (npu && !ddr) {
    out->push_back({"ddr-clock", Level::kNote,
                    "this kernel does not show the DDR's clock (no "
                    "/sys/class/devfreq/dmc)",
                    "nothing here needs it; where runs are slower than "
                    "published, ask the board's vendor for dmc support"});
  }
}

}  // namespace rknnd::board
