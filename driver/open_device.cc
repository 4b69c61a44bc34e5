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
#include "driver/rknnrt/library_file.h"
#include "driver/rknnrt/rknnrt_device.h"
#include "driver/rknnrt/worker_pool.h"
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
constexpr char kLibrary[] = "rknnrt";

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

// The vendor's library, hosted; null: there is none, or none that can be used,
// where nobody insists on it.
absl::StatusOr<std::unique_ptr<rknnrt::RknnrtDevice>> OpenLibrary(
    const DeviceOptions& options, const soft::SocProfile& soc,
    const DeviceLog& log) {
  static const base::MonotonicClock monotonic;
  const HostedLibraryOptions& about = options.library;
  const bool is_needed = options.kind == kLibrary;
  const std::string path =
      about.path.empty() ? rknnrt::FindLibraryFile() : about.path;
  const auto without = [&](const absl::Status& why)
      -> absl::StatusOr<std::unique_ptr<rknnrt::RknnrtDevice>> {
    if (is_needed) return why;
    Tell(log, absl::StrCat("no model runs on the vendor's library: ",
                           why.message()));
    return std::unique_ptr<rknnrt::RknnrtDevice>();
  };
  if (path.empty()) {
    if (!is_needed) return std::unique_ptr<rknnrt::RknnrtDevice>();
    return absl::NotFoundError(
        "device 'rknnrt' needs the vendor's librknnrt.so: name it by "
        "'library' in table [vendor] of rknnd.toml, or put it where "
        "'rknnd-divert enable' "
        "would, into /usr/lib/rknnd-vendor");
  }
  if (about.worker.empty()) {
    return without(absl::UnimplementedError(
        "only the daemon hosts it, not a program with the target local:"));
  }
  rknnrt::PoolOptions pool;
  absl::StatusOr<rknnrt::LibraryFile> file = rknnrt::CheckLibraryFile(path);
  if (!file.ok()) return without(file.status());
  pool.setup.command = about.worker;
  pool.setup.library = *std::move(file);
  pool.setup.cores = soc.cores;
  pool.one_for_all = about.one_for_all;
  pool.most_deaths = about.most_deaths;
  if (about.job_limit > 0) pool.job_limit = about.job_limit;
  pool.log = log;
  absl::StatusOr<std::unique_ptr<rknnrt::RknnrtDevice>> opened =
      rknnrt::RknnrtDevice::Open(std::move(pool), options.clock == nullptr
                                                      ? monotonic
                                                      : *options.clock);
  if (!opened.ok()) return without(opened.status());
  Tell(log, absl::StrCat(
                is_needed ? "compiled models run" : "what else cannot run runs",
                " on the vendor's library '", path, "', in ",
                about.one_for_all ? "one process for all models"
                                  : "a process for each model"));
  return opened;
}

}  // namespace

absl::StatusOr<OpenedDevice> OpenDeviceOn(rknpu::KernelCalls& kernel,
                                          const DeviceOptions& options,
                                          const DeviceLog& log) {
  if (options.kind != kSoftware && options.kind != kAny &&
      options.kind != kKernel && options.kind != kLibrary) {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", options.kind,
                     "' is unknown: use 'soft', 'rknpu', 'rknnrt' or 'auto'"));
  }
  CompoundParts parts;
  RKNND_ASSIGN_OR_RETURN(parts.soft, soft::OpenSoftDevice(options));
  RKNND_ASSIGN_OR_RETURN(const soft::SocProfile soc,
                         soft::FindSoc(options.soc));
  parts.platform = soc.family;
  parts.library_first = options.kind == kLibrary;
  OpenedDevice opened;
  if (options.kind != kSoftware) {
    absl::StatusOr<std::unique_ptr<rknpu::KernelBackend>> npu =
        OpenNpu(kernel, soc, log);
    if (npu.ok()) {
      const rknpu::NpuFile& file = (*npu)->file();
      Tell(log, absl::StrCat("compiled models run on the NPU: rknpu ",
                             file.version().Text(), " at '", file.node().path,
                             "'; ONNX models run on the CPU"));
      parts.npu = {kKernel, file.version().Text(), file.total_sram()};
      opened.heap = (*npu)->MakeHeap();
      parts.backend = *std::move(npu);
    } else if (options.kind == kKernel) {
      return npu.status();
    } else {
      Tell(log, absl::StrCat("compiled models run on an emulated NPU: ",
                             npu.status().message()));
    }
    RKNND_ASSIGN_OR_RETURN(parts.library, OpenLibrary(options, soc, log));
  }
  if (parts.backend == nullptr) parts.backend = rknpu::MakeEmulatedBackend();
  opened.device = MakeCompoundDevice(std::move(parts), options.clock);
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

absl::Status CheckSoc(const std::string& soc) {
  return soft::FindSoc(soc).status();
}

}  // namespace rknnd::driver
