// The factory of devices: the only file that names them. Called by the daemon's
// main (or by the in-process target) while it starts.

#include "absl/strings/str_cat.h"
#include "driver/compound_device.h"
#include "driver/device.h"
#include "driver/known_soc.h"
#include "driver/rknpu/emulated_backend.h"
#include "driver/soft/soc.h"
#include "driver/soft/soft_device.h"

namespace rknnd::driver {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    const DeviceOptions& options) {
  // "auto" takes a real NPU where this build can drive one; none can yet.
  if (options.kind == "soft" || options.kind == "auto") {
    absl::StatusOr<std::unique_ptr<Device>> soft =
        soft::OpenSoftDevice(options);
    if (!soft.ok()) return soft;
    const absl::StatusOr<soft::SocProfile> soc = soft::FindSoc(options.soc);
    if (!soc.ok()) return soc.status();
    return MakeCompoundDevice(*std::move(soft), soc->family,
                              rknpu::MakeEmulatedBackend(), options.clock);
  }
  if (options.kind == "rknnrt") {
    return absl::UnimplementedError(
        "device 'rknnrt' is not part of this build: use 'soft'");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device '", options.kind,
                   "' is unknown: use 'soft', 'rknnrt' or 'auto'"));
}

absl::Status CheckSoc(const std::string& kind, const std::string& soc) {
  // A real NPU is the SoC that it is.
  if (kind == "rknnrt") return absl::OkStatus();
  return soft::FindSoc(soc).status();
}

}  // namespace rknnd::driver
