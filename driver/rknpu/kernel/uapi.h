// The kernel driver's interface, as numbers: what `rknpu` 0.8 to 0.9.8 takes
// and answers. Written from a description of the interface, not from the
// driver's header. The layouts hold on every 64-bit machine.
//
// The driver is built in one of two ways. With DRM its memory has GEM handles
// and its node is among those in /dev/dri; without, memory is dma-bufs, its
// node is /dev/rknpu, and the NPU has no IOMMU.

#ifndef DRIVER_RKNPU_KERNEL_UAPI_H_
#define DRIVER_RKNPU_KERNEL_UAPI_H_

#include <linux/ioctl.h>

#include <cstddef>
#include <cstdint>

namespace rknnd::rknpu::uapi {

struct Action {
  uint32_t flags = 0;  // ActionNumber
  uint32_t value = 0;
};
static_assert(sizeof(Action) == 8);

struct MemCreate {
  uint32_t handle = 0;  // 0: a new one; else what is there is described
  uint32_t flags = 0;   // MemFlag
  uint64_t size = 0;
  uint64_t obj_addr = 0;
  uint64_t dma_addr = 0;
  uint64_t sram_size = 0;
  int32_t iommu_domain_id = 0;  // from here on since 0.9.6
  uint32_t core_mask = 0;
};
static_assert(sizeof(MemCreate) == 48);

struct MemMap {
  uint32_t handle = 0, reserved = 0;
  uint64_t offset = 0;
};
static_assert(sizeof(MemMap) == 16);

struct MemDestroy {
  uint32_t handle = 0, reserved = 0;
  uint64_t obj_addr = 0;
};
static_assert(sizeof(MemDestroy) == 16);

struct MemSync {
  uint32_t flags = 0;  // 1: to the device, 2: from it
  uint32_t reserved = 0;
  uint64_t obj_addr = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};
static_assert(sizeof(MemSync) == 32);

// An array of these lies in a buffer that SUBMIT names.
struct __attribute__((packed)) TaskRow {
  uint32_t flags = 0;
  uint32_t op_idx = 0;
  uint32_t enable_mask = 0;
  uint32_t int_mask = 0;
  uint32_t int_clear = 0;
  uint32_t int_status = 0;
  uint32_t regcfg_amount = 0;
  uint32_t regcfg_offset = 0;
  uint64_t regcmd_addr = 0;
};
static_assert(sizeof(TaskRow) == 40);

struct SubcoreTask {
  uint32_t task_start = 0, task_number = 0;
};

struct Submit {
  uint32_t flags = 0;    // SubmitFlag
  uint32_t timeout = 0;  // milliseconds
  uint32_t task_start = 0;
  uint32_t task_number = 0;
  uint32_t task_counter = 0;
  int32_t priority = 0;
  uint64_t task_obj_addr = 0;
  uint32_t iommu_domain_id = 0, reserved = 0;
  uint64_t task_base_addr = 0;
  int64_t hw_elapse_time = 0;  // nanoseconds
  uint32_t core_mask = 0;
  int32_t fence_fd = -1;
  SubcoreTask subcore_task[5] = {};
};
static_assert(sizeof(Submit) == 104 && offsetof(Submit, subcore_task) == 64);

enum Number : uint32_t {
  kAction = 0,
  kSubmit = 1,
  kMemCreate = 2,
  kMemMap = 3,
  kMemDestroy = 4,
  kMemSync = 5,
};
inline constexpr uint32_t kDrmBase = 0x40;

// The whole ioctl number of a call with an argument of `T`.
template <class T>
constexpr uint64_t Request(bool drm, uint32_t number) {
  return drm ? _IOC(_IOC_READ | _IOC_WRITE, 'd', kDrmBase + number, sizeof(T))
             : _IOC(_IOC_READ | _IOC_WRITE, 'r', number, sizeof(T));
}
static_assert(Request<Submit>(true, kSubmit) == 0xC0686441);
static_assert(Request<MemCreate>(false, kMemCreate) == 0xC0307202);

enum ActionNumber : uint32_t {
  kGetHardwareVersion = 0,
  kGetDriverVersion = 1,  // 908 is 0.9.8
  kGetFrequency = 2,
  // 4 is GET_VOLT: on a board without a supply of that name the kernel crashes.
  kReset = 6,
  kGetIommu = 18,
  kGetTotalSram = 22,
  kGetFreeSram = 23,
};
// What an RK3588 answers to kGetHardwareVersion.
inline constexpr uint32_t kRk3588Hardware = 0x46495245;

enum MemFlag : uint32_t {
  kNonContiguous = 1U << 0,
  kCacheable = 1U << 1,
  kWriteCombine = 1U << 2,
  kKernelMapping = 1U << 3,  // a task table without it crashes the kernel
  kZeroing = 1U << 5,
  kTrySram = 1U << 8,
  kLimitAlignment = 1U << 10,  // since 0.9.7; without, addresses are lost
};

enum SyncFlag : uint32_t { kToDevice = 1, kFromDevice = 2 };

enum SubmitFlag : uint32_t { kPc = 1, kPingPong = 4 };

}  // namespace rknnd::rknpu::uapi

#endif  // DRIVER_RKNPU_KERNEL_UAPI_H_
