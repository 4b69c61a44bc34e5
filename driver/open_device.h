// Opening a device with all that its owner can be told: beyond OpenDevice
// (device.h), why this one was chosen, and the heap it may bring. Called by the
// daemon's runtime; tests give it a kernel.

#ifndef DRIVER_OPEN_DEVICE_H_
#define DRIVER_OPEN_DEVICE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "driver/device.h"
#include "driver/memory/heap.h"
#include "driver/rknpu/kernel/kernel_calls.h"

namespace rknnd::driver {

struct OpenedDevice {
  std::unique_ptr<Device> device;
  // Memory that the device reaches without a copy, for programs and internal
  // memory; null: any memory is as good. May outlive the device.
  std::unique_ptr<Heap> heap;
};

// A sentence of note: which device was chosen and why, and later what happened
// to it. On any thread.
using DeviceLog = std::function<void(const std::string&)>;

absl::StatusOr<OpenedDevice> OpenDeviceAndHeap(const DeviceOptions& options,
                                               const DeviceLog& log);
// `kernel` outlives the device and all that it gives.
absl::StatusOr<OpenedDevice> OpenDeviceOn(rknpu::KernelCalls& kernel,
                                          const DeviceOptions& options,
                                          const DeviceLog& log);

// The heaps of this machine. The device's own comes first, unless somebody has
// configured which to use.
Heaps ProbeHeaps(const HeapConfig& config, std::unique_ptr<Heap> own);

}  // namespace rknnd::driver

#endif  // DRIVER_OPEN_DEVICE_H_
