#include "daemon/board/start_warnings.h"

#include "absl/strings/str_cat.h"
#include "daemon/board/checks.h"

namespace rknnd::board {
namespace {

constexpr char kChosenByMachine[] = "auto";
constexpr char kSoftware[] = "soft";

// "driver rknpu 0.9.8 at /dev/dri/renderD129"; empty: no NPU.
std::string DescribeNpu(const NpuDriver& npu) {
  switch (npu.kind) {
    case NpuDriver::Kind::kRknpu:
      return absl::StrCat("driver rknpu", npu.version.empty() ? "" : " ",
                          npu.version, npu.nodes.empty() ? "" : " at ",
                          npu.nodes.empty() ? "" : npu.nodes.front());
    case NpuDriver::Kind::kRocket:
      return "driver rocket";
    case NpuDriver::Kind::kNone:
      break;
  }
  return npu.tree_node.empty()
             ? ""
             : absl::StrCat("device tree node '", npu.tree_node,
                            "', without a driver");
}

}  // namespace

std::vector<std::string> StartWarnings(const Files& files,
                                       const std::string& asked,
                                       const std::string& got) {
  std::vector<std::string> lines;
  for (const VendorServer& server : FindVendorServers(files)) {
    lines.push_back(absl::StrCat(DescribeVendorServer(server), "; ",
                                 RemedyForVendorServer(server)));
  }
  // Who asked for the software NPU knows that it answers.
  if (asked != kChosenByMachine || got != kSoftware) return lines;
  const std::string npu = DescribeNpu(FindDriver(files));
  if (!npu.empty()) {
    lines.push_back(absl::StrCat(
        "this machine has an NPU (", npu,
        "), but rknnd cannot use it: the software NPU answers, on the CPU. "
        "'rknnctl doctor' says what is missing; device = \"soft\" in "
        "rknnd.toml says that this is meant"));
  }
  return lines;
}

}  // namespace rknnd::board
