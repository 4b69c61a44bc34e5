// One device for all kinds of file: ONNX models run on the software NPU,
// compiled ones (.rknn) as programs of an NPU, real or emulated, and what that
// declines on the vendor's library, where there is one. The file decides, or
// who configures it. Everything else, memory and cores among it, is the
// software NPU's.

#ifndef DRIVER_COMPOUND_DEVICE_H_
#define DRIVER_COMPOUND_DEVICE_H_

#include <memory>
#include <optional>
#include <string>

#include "base/posix/clock.h"
#include "driver/device.h"
#include "driver/rknpu/backend.h"

namespace rknnd::rknnrt {
class RknnrtDevice;
}  // namespace rknnd::rknnrt

namespace rknnd::driver {

// Of a real NPU, what DeviceInfo says otherwise than the software NPU's.
struct NpuOfDevice {
  std::string kind, driver;
  uint64_t sram = 0;  // bytes that its driver gives
};

struct CompoundParts {
  CompoundParts();
  CompoundParts(CompoundParts&& other) noexcept;
  ~CompoundParts();

  std::unique_ptr<Device> soft;  // a soft::SoftDevice
  std::string platform;          // of the NPU behind `backend`
  std::unique_ptr<rknpu::Backend> backend;
  std::optional<NpuOfDevice> npu;
  // The vendor's library, of the same NPU; null: there is none.
  std::unique_ptr<rknnrt::RknnrtDevice> library;
  // Compiled models go to the library, whether `backend` could run them or not.
  bool library_first = false;
};

// `clock` outlives the device; null is CLOCK_MONOTONIC.
std::unique_ptr<Device> MakeCompoundDevice(CompoundParts parts,
                                           const base::Clock* clock);

}  // namespace rknnd::driver

#endif  // DRIVER_COMPOUND_DEVICE_H_
