// The factory of devices: the only file that names them. Called by the daemon's
// main (or by the in-process target) while it starts.

#include "driver/open_device.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/compound_device.h"
#include "driver/device.h"
#include "driver/known_soc.h"
#include "driver/rknpu/emulated_backend.h"
#include "driver/rknpu/kernel/kernel_backend.h"
#include "driver/rknpu/kernel/npu_node.h"
#include "driver/soft/soc.h"
#include "driver/soft/soft_device.h"

namespace rknnd::driver {
namespace {

constexpr char kAny[] = "auto";
constexpr char kSoftware[] = "soft";
constexpr char kKernel[] = "rknpu";

// The NPU behind the kernel's driver; NOT_FOUND: there is none.
absl::StatusOr<std::unique_ptr<rknpu::KernelBackend>> OpenNpu(
    rknpu::KernelCalls& kernel, const soft::SocProfile& soc,
    const DeviceLog& log) {
  RKNND_ASSIGN_OR_RETURN(const rknpu::NpuNode node, rknpu::FindNpuNode(kernel));
  RKNND_ASSIGN_OR_RETURN(std::unique_ptr<rknpu::KernelBackend> npu,
                         rknpu::KernelBackend::Open(
                             kernel, node, {.cores = soc.cores, .log = log}));
  if (std::string(soc.family) != "rk3588") {
    return absl::FailedPreconditionError(
        absl::StrCat("the NPU at '", node.path,
                     "' is an RK3588's, and the SoC is configured "
                     "as ",
                     soc.name, ": set 'soc' in rknnd.toml (--soc)"));
  }
  return npu;
}

void Tell(const DeviceLog& log, const std::string& text) {
  if (log != nullptr) log(text);
}

}  // namespace

absl::StatusOr<OpenedDevice> OpenDeviceOn(rknpu::KernelCalls& kernel,
                                          const DeviceOptions& options,
                                          const DeviceLog& log) {
  if (options.kind == "rknnrt") {
    return absl::UnimplementedError(
        "device 'rknnrt' is not part of this build: use 'auto', 'rknpu' or "
        "'soft'");
  }
  if (options.kind != kSoftware && options.kind != kAny &&
      options.kind != kKernel) {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", options.kind,
                     "' is unknown: use 'soft', 'rknpu', 'rknnrt' or 'auto'"));
  }
  RKNND_ASSIGN_OR_RETURN(std::unique_ptr<Device> soft,
                         soft::OpenSoftDevice(options));
  RKNND_ASSIGN_OR_RETURN(const soft::SocProfile soc,
                         soft::FindSoc(options.soc));
  if (options.kind != kSoftware) {
    absl::StatusOr<std::unique_ptr<rknpu::KernelBackend>> npu =
        OpenNpu(kernel, soc, log);
    if (npu.ok()) {
      const rknpu::NpuFile& file = (*npu)->file();
      Tell(log, absl::StrCat("compiled models run on the NPU: rknpu ",
                             file.version().Text(), " at '", file.node().path,
                             "'; ONNX models run on the CPU"));
      const NpuOfDevice about = {kKernel, file.version().Text(),
                                 file.total_sram()};
      OpenedDevice opened;
      opened.heap = (*npu)->MakeHeap();
      opened.device = MakeCompoundDevice(std::move(soft), soc.family,
                                         *std::move(npu), options.clock, about);
      return opened;
    }
    if (options.kind == kKernel) return npu.status();
    Tell(log, absl::StrCat("compiled models run on an emulated NPU: ",
                           npu.status().message()));
  }
  OpenedDevice opened;
  opened.device = MakeCompoundDevice(
      std::move(soft), soc.family, rknpu::MakeEmulatedBackend(), options.clock);
  return opened;
}

absl::StatusOr<OpenedDevice> OpenDeviceAndHeap(const DeviceOptions& options,
                                               const DeviceLog& log) {
  // Memory of the driver's may outlive the device, so its calls must, too.
  static rknpu::KernelCalls& kernel = *rknpu::MakeKernelCalls().release();
  return OpenDeviceOn(kernel, options, log);
}

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    const DeviceOptions& options) {
  RKNND_ASSIGN_OR_RETURN(OpenedDevice opened,
                         OpenDeviceAndHeap(options, nullptr));
  return std::move(opened.device);
}

Heaps ProbeHeaps(const HeapConfig& config, std::unique_ptr<Heap> own) {
  if (own == nullptr || !config.order.empty()) return Heaps::Probe(config);
  std::vector<std::unique_ptr<Heap>> heaps;
  heaps.push_back(std::move(own));
  // What serves when the NPU's addresses are used up.
  if (auto heap = OpenUdmabufHeap(); heap.ok()) {
    heaps.push_back(*std::move(heap));
  }
  heaps.push_back(MakeMemfdHeap());
  return Heaps(std::move(heaps), config);
}

absl::Status CheckSoc(const std::string& kind, const std::string& soc) {
  // The vendor's runtime knows by itself.
  if (kind == "rknnrt") return absl::OkStatus();
  return soft::FindSoc(soc).status();
}

}  // namespace rknnd::driver
