// The NPU's driver: which one, how old, what it was built and wired for.

#include <algorithm>
#include <charconv>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/board/checks.h"
#include "daemon/board/npu_figures.h"

namespace rknnd::board {
namespace {

using transport::Finding;
using Level = Finding::Level;

// Below these the driver lacks, or breaks, what they say.
constexpr Version kFirstWithSram = {0, 8, 0};
constexpr Version kFirstSound = {0, 9, 6};

constexpr char kTree[] = "/proc/device-tree/";

// Device tree strings end with a zero.
std::string TreeText(const Files& files, const std::string& path) {
  const std::optional<std::string> text = files.Text(path);
  return text.has_value() ? text->substr(0, text->find('\0')) : "";
}

void FindNodes(const Files& files, NpuDriver* npu) {
  for (const std::string& name : files.List("/sys/class/drm")) {
    // "card1" and "renderD129", and no connectors ("card0-HDMI-A-1").
    if (absl::StrContains(name, "-")) continue;
    const std::string device = absl::StrCat("/sys/class/drm/", name, "/device");
    if (absl::AsciiStrToLower(files.LinkName(device + "/driver")) != "rknpu") {
      continue;
    }
    npu->nodes.push_back("/dev/dri/" + name);
    npu->device = device;
  }
  if (files.Exists("/dev/rknpu")) npu->nodes.emplace_back("/dev/rknpu");
}

std::string DriverVersion(const Files& files) {
  for (const char* path :
       {"/sys/module/rknpu/version", "/sys/kernel/debug/rknpu/version",
        "/proc/rknpu/version"}) {
    // "RKNPU driver: v0.9.8", or the number alone.
    const std::string line = files.Line(path).value_or("");
    const size_t digit = line.find_first_of("0123456789");
    if (digit != std::string::npos) return line.substr(digit);
  }
  return "";
}

// A line of the kernel's configuration, where the distribution left one.
// nullopt: it did not.
std::optional<bool> HasKernelOption(const Files& files, const char* option) {
  const std::string release =
      files.Line("/proc/sys/kernel/osrelease").value_or("");
  std::ifstream config(absl::StrCat(files.root(), "/boot/config-", release));
  if (!config) return std::nullopt;
  for (std::string line; std::getline(config, line);) {
    if (absl::StartsWith(line, absl::StrCat(option, "="))) return true;
  }
  return false;
}

std::string DisabledText(const NpuDriver& npu) {
  return absl::StrCat("the NPU is switched off in the device tree (node '",
                      npu.tree_node, "', status '", npu.tree_status, "')");
}

Finding WithoutDriver(const NpuDriver& npu, bool soft) {
  if (npu.kind == NpuDriver::Kind::kRocket) {
    return {"driver", Level::kWarning,
            "this kernel has the mainline driver 'rocket' for the NPU, which "
            "the vendor's runtime cannot use",
            "boot a kernel of the board's vendor, or load the rknpu module "
            "that is built outside the kernel"};
  }
  if (!npu.tree_status.empty() && npu.tree_status != "okay" &&
      npu.tree_status != "ok") {
    return {"driver", Level::kWarning, DisabledText(npu),
            "set its status, and that of its iommu node, to 'okay' by a "
            "device tree overlay, and boot again"};
  }
  if (!npu.tree_node.empty()) {
    return {"driver", Level::kWarning,
            absl::StrCat("this board has an NPU ('", npu.tree_node,
                         "'), but its kernel has no driver for it"),
            "boot a kernel of the board's vendor (CONFIG_ROCKCHIP_RKNPU)"};
  }
  if (soft) {
    return {"driver", Level::kNote,
            "this machine has no NPU: the software NPU answers for ONNX "
            "models, an emulated NPU of rk3588 for .rknn files",
            ""};
  }
  return {"driver", Level::kError, "no NPU driver in this kernel",
          "boot a kernel of the board's vendor (CONFIG_ROCKCHIP_RKNPU)"};
}

void CheckDriverVersion(const NpuDriver& npu, Findings* out) {
  const std::optional<Version> version = ParseVersion(npu.version);
  if (!version.has_value()) {
    out->push_back({"driver-version", Level::kNote,
                    "the driver's version cannot be read",
                    "mount debugfs (mount -t debugfs none /sys/kernel/debug) "
                    "and let root ask"});
    return;
  }
  if (*version >= kFirstSound) {
    out->push_back({"driver-version", Level::kOk,
                    absl::StrCat("rknpu ", npu.version), ""});
    return;
  }
  out->push_back(
      {"driver-version", Level::kWarning,
       absl::StrCat("rknpu ", npu.version,
                    " is older than 0.9.6: cores 1 and 2 may not answer, a "
                    "signal can fail a job in flight, and there is no second "
                    "address space"),
       "update the kernel to one with rknpu 0.9.6 or later; 0.9.8 is better"});
}

// "fdab0000.npu", "rknpu", "npu0_irq"; no "virtio2-input".
bool NamesNpu(const std::string& line) {
  for (size_t at = line.find("npu"); at != std::string::npos;
       at = line.find("npu", at + 1)) {
    const bool inside_a_word =
        at > 0 && absl::ascii_isalpha(static_cast<unsigned char>(line[at - 1]));
    if (!inside_a_word) return true;
    if (at >= 2 && line.compare(at - 2, 2, "rk") == 0) return true;
  }
  return false;
}

}  // namespace

std::optional<Version> ParseVersion(const std::string& text) {
  Version version{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t i = 0; i < version.size(); ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return std::nullopt;
    const auto parsed = std::from_chars(at, end, version[i]);
    if (parsed.ec != std::errc()) return std::nullopt;
    at = parsed.ptr;
  }
  return version;
}

NpuDriver FindDriver(const Files& files) {
  NpuDriver npu;
  FindNodes(files, &npu);
  for (const std::string& name : files.List(kTree)) {
    if (!absl::StartsWith(name, "npu@") && name != "npu") continue;
    npu.tree_node = name;
    npu.tree_status = TreeText(files, absl::StrCat(kTree, name, "/status"));
    // One of several cores' that is on is enough.
    if (npu.tree_status == "okay") break;
  }
  npu.version = DriverVersion(files);
  if (!npu.nodes.empty() || !npu.version.empty()) {
    npu.kind = NpuDriver::Kind::kRknpu;
  } else if (files.Exists("/sys/bus/platform/drivers/rocket") ||
             files.Exists("/sys/module/rocket")) {
    npu.kind = NpuDriver::Kind::kRocket;
  }
  return npu;
}

namespace {

// The software NPU has none; programs ask for one all the same.
std::string DriverText(const driver::DeviceInfo& device) {
  return device.kind == "soft"
             ? absl::StrCat("no driver (programs are told ", device.driver, ")")
             : absl::StrCat("driver ", device.driver);
}

}  // namespace

void CheckVersions(const DaemonFacts& here, Findings* out) {
  out->push_back(
      {"versions", Level::kOk,
       absl::StrCat("rknnd ", here.version, ", session protocol ",
                    here.protocol, ", device '", here.device.kind, "' as ",
                    here.device.soc, " with ", here.device.cores, " core(s), ",
                    DriverText(here.device), ", runtime ", here.device.runtime),
       ""});
}

void CheckDriver(const Files& files, const DaemonFacts& here,
                 const NpuDriver& npu, Findings* out) {
  const bool soft = here.device.kind == "soft";
  if (npu.kind != NpuDriver::Kind::kRknpu) {
    out->push_back(WithoutDriver(npu, soft));
    return;
  }
  if (soft) {
    out->push_back({"driver", Level::kWarning,
                    "this board has an NPU, but the software NPU answers, and "
                    "an emulated one for .rknn files",
                    "start rknnd with --device auto; its log says why where "
                    "it cannot use the NPU"});
  } else {
    out->push_back({"driver", Level::kOk, "the kernel has driver rknpu", ""});
  }
  CheckDriverVersion(npu, out);

  std::vector<std::string> refused;
  for (const std::string& node : npu.nodes) {
    if (!files.Accessible(node)) refused.push_back(node);
  }
  if (npu.nodes.empty()) {
    out->push_back({"device-node", Level::kError,
                    "the driver is there, but neither a node of it in "
                    "/dev/dri nor /dev/rknpu",
                    "see 'dmesg | grep -i rknpu': the driver did not find "
                    "its hardware, power domain or iommu"});
  } else if (!refused.empty()) {
    out->push_back({"device-node", Level::kError,
                    absl::StrCat("no permission on '",
                                 absl::StrJoin(refused, "', '"), "'"),
                    "only the daemon needs it: add its user to the node's "
                    "group (usermod -aG render rknnd) and restart it. "
                    "Applications need group rknnd, and no device"});
  } else {
    out->push_back(
        {"device-node", Level::kOk,
         absl::StrCat("'", absl::StrJoin(npu.nodes, "', '"), "' can be opened"),
         ""});
  }
}

void CheckSram(const Files& files, const DaemonFacts& here,
               const NpuDriver& npu, Findings* out) {
  if (here.device.kind == "rknpu") {
    out->push_back(
        {"sram", Level::kNote, "rknnd does not use the SRAM of this NPU", ""});
    return;
  }
  if (here.device.sram_total > 0) {
    out->push_back({"sram", Level::kOk,
                    absl::StrCat(here.device.sram_total / 1024, " KiB of SRAM"),
                    ""});
    return;
  }
  constexpr char kWithout[] =
      "running without is slower only by what models wait for DDR";
  const std::optional<Version> version = ParseVersion(npu.version);
  if (npu.kind != NpuDriver::Kind::kRknpu) {
    out->push_back(
        {"sram", Level::kNote,
         absl::StrCat("no SRAM: ", here.device.soc, " has none for its NPU"),
         ""});
  } else if (version.has_value() && *version < kFirstWithSram) {
    out->push_back(
        {"sram", Level::kNote,
         absl::StrCat("no SRAM: driver ", npu.version, " is older than 0.8.0"),
         absl::StrCat("update the kernel; ", kWithout)});
  } else if (HasKernelOption(files, "CONFIG_ROCKCHIP_RKNPU_SRAM") == false) {
    out->push_back({"sram", Level::kNote,
                    "no SRAM: the kernel was built without "
                    "CONFIG_ROCKCHIP_RKNPU_SRAM",
                    absl::StrCat("build it with that option; ", kWithout)});
  } else if (!npu.tree_node.empty() &&
             !files.Exists(
                 absl::StrCat(kTree, npu.tree_node, "/rockchip,sram"))) {
    out->push_back({"sram", Level::kNote,
                    absl::StrCat("no SRAM: node '", npu.tree_node,
                                 "' of the device tree has no "
                                 "'rockchip,sram'"),
                    absl::StrCat("add it by an overlay, taking SRAM from the "
                                 "video decoders; ",
                                 kWithout)});
  } else {
    out->push_back({"sram", Level::kNote,
                    "no SRAM, and the kernel does not say why",
                    absl::StrCat("see 'dmesg | grep -i sram'; ", kWithout)});
  }
}

void CheckNpu(const Files& files, Findings* out) {
  const NpuFigures figures = ReadNpuFigures(files);
  const std::string text = Describe(figures);
  if (text.empty()) return;  // no NPU, or a kernel that tells root only
  if (figures.load_was_wrong) {
    out->push_back({"npu", Level::kWarning,
                    absl::StrCat(text,
                                 "; the driver counted a load above 100 "
                                 "%, as it does after a job that never ended"),
                    "'rknnctl reset' ends such a job, where it is rknnd's; "
                    "else boot the board again"});
    return;
  }
  out->push_back({"npu", Level::kOk, text, ""});
}

void CheckInterrupts(const Files& files, Findings* out) {
  const std::string table = files.Text("/proc/interrupts").value_or("");
  // The slowest CPUs; all, where they are alike.
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  const auto capacity = [&files](const std::string& cpu) {
    return files
        .Number(
            absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/cpu_capacity"))
        .value_or(0);
  };
  for (const std::string& name : files.List("/sys/devices/system/cpu")) {
    if (!absl::StartsWith(name, "cpu") || name.size() < 4 ||
        !absl::ascii_isdigit(static_cast<unsigned char>(name[3]))) {
      continue;
    }
    least = std::min(least, capacity(name.substr(3)));
    most = std::max(most, capacity(name.substr(3)));
  }
  std::vector<std::string> slow;
  size_t seen = 0;
  const std::vector<std::string> lines = absl::StrSplit(table, '\n');
  for (const std::string& line : lines) {
    if (!NamesNpu(line)) continue;
    const std::string number(
        absl::StripAsciiWhitespace(line.substr(0, line.find(':'))));
    std::optional<std::string> cpus = files.Line(
        absl::StrCat("/proc/irq/", number, "/effective_affinity_list"));
    if (!cpus.has_value()) {
      cpus =
          files.Line(absl::StrCat("/proc/irq/", number, "/smp_affinity_list"));
    }
    if (!cpus.has_value() || cpus->empty()) continue;
    ++seen;
    // Where several are allowed the kernel takes the first.
    const std::string first = cpus->substr(0, cpus->find_first_of(",-"));
    if (least < most && capacity(first) == least) {
      slow.push_back(absl::StrCat(number, " on CPU ", first));
    }
  }
  if (seen == 0) return;  // no NPU, or a kernel that hides them
  if (slow.empty()) {
    out->push_back({"irq-affinity", Level::kOk,
                    absl::StrCat(seen,
                                 " NPU interrupt(s), none on a slow "
                                 "CPU of several kinds"),
                    ""});
    return;
  }
  out->push_back({"irq-affinity", Level::kNote,
                  absl::StrCat("NPU interrupts are handled by the slowest "
                               "CPUs: ",
                               absl::StrJoin(slow, ", ")),
                  "for lower latency move them to a fast CPU: echo 4 > "
                  "/proc/irq/NUMBER/smp_affinity_list (as root, at each "
                  "boot)"});
}

}  // namespace rknnd::board
