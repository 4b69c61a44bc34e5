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
//   Load(bytes) -> Model          once per model, any thread, may take seconds
//   Attach(fd, offset, size)      once per buffer or arena, any thread
//   Submit(job) -> OnJobDone      hot path: no allocation, no lock held over it

#ifndef DRIVER_DEVICE_H_
#define DRIVER_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "driver/tensor.h"

namespace rknnd::driver {

struct DeviceInfo {
  std::string kind;     // "soft", "rknnrt"
  std::string soc;      // "rk3588"
  uint32_t cores = 0;   // at least 1; core c is bit c of a mask
  std::string driver;   // version of what lies below, "0.9.8"
  std::string runtime;  // as RKNN_QUERY_SDK_VERSION's api_version
  uint64_t sram_total = 0;
};

// Memory by name, so that a device may live in another process. Borrowed for
// the call; the device keeps its own reference to the memory, not to the fd.
struct MemoryRef {
  int fd = -1;
  uint64_t offset = 0;
  uint64_t size = 0;
};

enum class MemoryAccess { kRead, kReadWrite };

// Memory a device can reach; detached when destroyed, which must not happen
// while a job uses it. Thread: any.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual uint64_t size() const = 0;
  // Zeroes a range that lies inside; called on arenas between jobs. Devices
  // whose memory the CPU cannot reach clear it themselves and do nothing here.
  virtual void Clear(uint64_t /*offset*/, uint64_t /*bytes*/) {}
};

struct LayerInfo {
  std::string name;  // of the ONNX node it came from
  std::string type;  // "Conv", "ConvRelu", "InputOperator"
  std::string input_shape, output_shape;
};

// One input-shape row of a model, ready to run. It is a list of segments;
// between two segments nothing lives in internal memory, so another job may
// use the arena there.
struct ProgramInfo {
  std::vector<TensorAttr> inputs, outputs;
  std::vector<TensorAttr> native_inputs, native_outputs;
  uint64_t internal_size = 0;
  uint32_t segments = 1;
  std::vector<LayerInfo> layers;
};

struct ModelInfo {
  std::string name;  // the graph's
  uint64_t weight_size = 0;
  std::string custom_string;
  std::string target_platform;
  // One per shape row; a fixed-shape model has one.
  std::vector<ProgramInfo> programs;
};

enum class Direction { kInput, kOutput };

// A loaded network: weights and programs. Immutable; destroyed only when no
// job uses it. Thread: any.
class Model {
 public:
  virtual ~Model() = default;
  [[nodiscard]] virtual const ModelInfo& info() const = 0;

  // The bytes that memory in `format` must have to be bound there, or which
  // number cannot be. `index` and `program` are in range.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CheckBinding(
      uint32_t program, Direction direction, uint32_t index,
      const TensorFormat& format) const = 0;
};

struct TensorBinding {
  Memory* memory = nullptr;
  uint64_t offset = 0;
  TensorFormat format;
};

struct JobResult {
  absl::Status status;                       // OK carries no allocation
  base::Nanoseconds started = 0, ended = 0;  // on the core, device's clock
};

// Told when a job is over. Called exactly once per Submit, on the submitting
// thread before Submit returns or on a thread of the device; must not block.
class JobListener {
 public:
  virtual ~JobListener() = default;
  virtual void OnJobDone(JobResult result) = 0;
};

// All that a run needs; the caller keeps it and everything it points to alive
// and unchanged until OnJobDone.
struct JobRequest {
  const Model* model = nullptr;
  uint32_t program = 0;
  uint32_t first_segment = 0, segment_count = 1;
  uint32_t core = 0;  // a gang job: the lowest of its cores
  uint32_t core_mask = 1;
  std::span<const TensorBinding> inputs, outputs;
  // Room for ProgramInfo::internal_size bytes from `internal_offset`. May be
  // memory that a client maps: tensors only, nothing read from it is trusted.
  Memory* internal = nullptr;
  uint64_t internal_offset = 0;
  // Nanoseconds per layer, where asked for; else empty.
  std::span<int64_t> layer_times;
  JobListener* listener = nullptr;
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  // Compiles a model. `bytes` are read during the call only; `options` is the
  // text of MODEL.yml, or empty. Errors name operator, node and model.
  // Thread: any.
  virtual absl::StatusOr<std::unique_ptr<Model>> Load(
      std::span<const std::byte> bytes, const std::string& options,
      const std::string& name) = 0;

  // Makes memory reachable: maps it and faults every page in, so that a hole
  // or lack of memory is an error here. Thread: any.
  virtual absl::StatusOr<std::unique_ptr<Memory>> Attach(
      const MemoryRef& memory, MemoryAccess access) = 0;

  // Starts a job on its core. May run it on the calling thread. Thread: any,
  // one job per core at a time.
  virtual void Submit(const JobRequest& job) = 0;

  // Prepares the calling thread for Submit (thread-local state of kernels).
  virtual void EnterWorker() {}
};

struct DeviceOptions {
  std::string kind = "auto";  // "soft", "rknnrt", "auto"
  std::string soc = "rk3588";
  const base::Clock* clock = nullptr;
};

// The only place that names devices. kUnimplemented for a kind this build
// lacks, naming it.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    const DeviceOptions& options);

}  // namespace rknnd::driver

#endif  // DRIVER_DEVICE_H_
