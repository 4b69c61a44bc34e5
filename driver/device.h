// What an NPU is. One interface, several devices: soft (software NPU), rknnrt
// (the vendor's runtime), and fakes in tests. One conformance suite
// (tests/conformance) runs on every device.
//
// A device knows nothing of clients, sessions or limits. Its caller
// (daemon/core) has checked every argument: indices are in range, bindings fit
// (Model::CheckBinding), offsets lie inside their memory, a core runs one job
// at a time. What the *contents* of a model file or of tensor memory say is
// never trusted, here as elsewhere.
//
//   Load(request) -> Model        once per model, any thread, may take seconds
//   Attach(fd, offset, size)      once per buffer or arena, any thread
//   Submit(job) -> OnJobDone      hot path: no allocation, no lock held over it
//
// What it is given and gives back stand in device_memory.h, model.h with
// model_info.h, and job.h.

#ifndef DRIVER_DEVICE_H_
#define DRIVER_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "driver/device_memory.h"
#include "driver/job.h"
#include "driver/model.h"
#include "driver/model_info.h"

namespace rknnd::driver {

// What the runtime of some SoCs lacks: bits of DeviceInfo::limits. Known to the
// client library too, by the same numbers (proto/rknnd/v1/session.proto).
enum DeviceLimit : uint32_t {
  kZeroCopyOnly = 1U << 0,      // no rknn_inputs_set, no rknn_outputs_get
  kNoFloat32Outputs = 1U << 1,  // outputs are 8-bit or float16
  kNoLayerTimes = 1U << 2,      // PERF_DETAIL stays empty
  kNoDupContext = 1U << 3,
  kNoCoreMask = 1U << 4,   // rknn_set_core_mask is an error
  kAnyCoreMask = 1U << 5,  // any mask is taken, and means the one core
};

struct DeviceInfo {
  std::string kind;     // "soft", "rknpu", "rknnrt"
  std::string soc;      // "rk3588"
  uint32_t cores = 0;   // at least 1; core c is bit c of a mask
  std::string driver;   // version of what lies below, "0.9.8"
  std::string runtime;  // as RKNN_QUERY_SDK_VERSION's api_version
  uint64_t sram_total = 0;
  uint64_t sram_base = 0;  // its address on the SoC's bus, for reports
  // Of it, what each core's internal memory is made with: it really lies there.
  // 0: what programs are told of SRAM is planned, and no byte lies in it.
  uint64_t core_sram = 0;
  // What its MMU maps at one time: weights, internal memory and buffers of all
  // that runs together must fit.
  uint64_t address_space = uint64_t{4} << 30;
  // What made the compiled form of a model; another one cannot read it. Empty:
  // this device compiles to nothing that can be kept.
  std::string compiler;
  uint32_t limits = 0;  // of DeviceLimit
  // Of one core, for reports: its highest clock, and 8-bit multiply-adds a
  // cycle (half as many in half precision). 0: unknown.
  uint32_t mhz = 0, macs_per_cycle = 0;
};

// A model that is not run any more, as its last jobs ended the processes that
// ran them.
struct QuarantinedModel {
  std::string sha256, name;
  std::string why;  // how the last one ended
  uint32_t deaths = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  // Compiles a model. Errors name operator, node and model. Thread: any.
  virtual absl::StatusOr<std::unique_ptr<Model>> Load(
      const LoadRequest& request) = 0;

  // Makes memory reachable: maps it and faults every page in, so that a hole
  // or lack of memory is an error here. Thread: any.
  virtual absl::StatusOr<std::unique_ptr<Memory>> Attach(
      const MemoryRef& memory, MemoryAccess access) = 0;

  // Starts a job on its core. May run it on the calling thread. Thread: any,
  // one job per core at a time.
  virtual void Submit(const JobRequest& job) = 0;

  // Prepares the calling thread for Submit (thread-local state of kernels).
  virtual void EnterWorker() {}

  // Runs the cores at this fraction of their clock, above 0 to 1, from the next
  // job on, as a hot SoC does. False where no clock is modelled. Thread: any.
  virtual bool SetClock(double /*fraction*/) { return false; }

  // Resets the hardware under whatever it runs: jobs in flight fail with
  // ABORTED, once, and may be run again. `done` when none of them is left, on
  // any thread; at once with UNIMPLEMENTED where there is nothing to reset.
  // Must not block. Thread: any, but a worker's.
  virtual void Reset(std::function<void(absl::Status)> done);
  // Since the start, those that the driver made by itself among them.
  [[nodiscard]] virtual uint64_t resets() const { return 0; }

  // Thread: any.
  [[nodiscard]] virtual CacheSyncs cache_syncs() const { return {}; }

  // Processes that ran models and ended when they should not, since the start.
  // Thread: any, as below.
  [[nodiscard]] virtual uint64_t worker_deaths() const { return 0; }
  [[nodiscard]] virtual std::vector<QuarantinedModel> quarantined() const {
    return {};
  }
  // Lets it try again; of its hash the first digits will do. NOT_FOUND.
  virtual absl::Status EndQuarantine(const std::string& sha256);
};

// The vendor's library, where compiled models run that nothing else can.
struct HostedLibraryOptions {
  std::string path;  // empty: where `rknnd-divert` puts it, if there is one
  // The program that hosts it, and its arguments; empty: it is not hosted.
  std::vector<std::string> worker;
  bool one_for_all = false;  // one process for all models, instead of one each
  uint32_t most_deaths = 3;  // of workers, until a model is in quarantine
  // What a job may take before its worker is ended; 0: two seconds.
  base::Nanoseconds job_limit = 0;
};

struct DeviceOptions {
  std::string kind = "auto";  // "soft", "rknpu", "rknnrt", "auto"
  std::string soc = "rk3588";
  bool pace = false;  // a job ends when the SoC would end it
  const base::Clock* clock = nullptr;
  HostedLibraryOptions library = {};
};

// The only place that names devices. kInvalidArgument for a kind that is none,
// naming it; else why this one cannot be opened here.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    const DeviceOptions& options);

}  // namespace rknnd::driver

#endif  // DRIVER_DEVICE_H_
