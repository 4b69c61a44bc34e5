// One device for both kinds of file: ONNX models run on the software NPU,
// compiled ones (.rknn) as programs of an NPU, real or emulated. The file
// decides. Everything else, memory and cores among it, is the software NPU's.

#ifndef DRIVER_COMPOUND_DEVICE_H_
#define DRIVER_COMPOUND_DEVICE_H_

#include <memory>
#include <optional>
#include <string>

#include "base/posix/clock.h"
#include "driver/device.h"
#include "driver/rknpu/backend.h"

namespace rknnd::driver {

// Of a real NPU, what DeviceInfo says otherwise than the software NPU's.
struct NpuOfDevice {
  std::string kind, driver;
  uint64_t sram = 0;  // bytes that its driver gives
};

// `soft` is a soft::SoftDevice. The NPU behind `backend` is one of `platform`.
// `clock` outlives the device; null is CLOCK_MONOTONIC.
std::unique_ptr<Device> MakeCompoundDevice(
    std::unique_ptr<Device> soft, const std::string& platform,
    std::unique_ptr<rknpu::Backend> backend, const base::Clock* clock,
    const std::optional<NpuOfDevice>& npu = std::nullopt);

}  // namespace rknnd::driver

#endif  // DRIVER_COMPOUND_DEVICE_H_
