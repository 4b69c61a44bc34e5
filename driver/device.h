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

#ifndef DRIVER_DEVICE_H_
#define DRIVER_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "driver/frame.h"
#include "driver/tensor.h"

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
  std::string kind;     // "soft", "rknnrt"
  std::string soc;      // "rk3588"
  uint32_t cores = 0;   // at least 1; core c is bit c of a mask
  std::string driver;   // version of what lies below, "0.9.8"
  std::string runtime;  // as RKNN_QUERY_SDK_VERSION's api_version
  uint64_t sram_total = 0;
  uint64_t sram_base = 0;  // its address on the SoC's bus, for reports
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

// Where memory came from, which says who may write it and by which caches.
enum class MemoryOrigin : uint8_t {
  kBrought,       // a program's fd: anybody writes it, unannounced
  kCachedHeap,    // ours: programs write it, and devices they hand it to
  kUncachedHeap,  // ours, and no CPU caches it
};

// Memory by name, so that a device may live in another process. Borrowed for
// the call; the device keeps its own reference to the memory, not to the fd.
struct MemoryRef {
  int fd = -1;
  uint64_t offset = 0;
  uint64_t size = 0;
  MemoryOrigin origin = MemoryOrigin::kBrought;
};

enum class MemoryAccess { kRead, kReadWrite };
// Whose writes the other is to see, where the CPU's cache hides them.
enum class CacheSide { kToDevice, kFromDevice, kBoth };

// DMA_BUF_IOCTL_SYNC and its like: how often it was issued for this device's
// jobs, and how often it was left out where it could matter: nothing had
// changed sides since the last one, or the program does it itself
// (RKNN_FLAG_DISABLE_FLUSH_*). Memory without caches counts nowhere.
struct CacheSyncs {
  uint64_t done = 0, skipped = 0;
};

// Memory a device can reach; detached when destroyed, which must not happen
// while a job uses it. Thread: any.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual uint64_t size() const = 0;
  // Zeroes a range that lies inside; called on arenas between jobs. Devices
  // whose memory the CPU cannot reach clear it themselves and do nothing here.
  virtual void Clear(uint64_t /*offset*/, uint64_t /*bytes*/) {}
  // The program says that it has written, or is about to read
  // (rknn_mem_sync), where the kernel has no call for that memory. Devices that
  // share the CPU's caches have nothing to do.
  virtual void Synchronize(CacheSide /*side*/) {}
  // The CPU copies a part of `from` to `offset`, with what the caches of this
  // need: an answer goes to a further reader. `from` is of the same device,
  // and no program's; both ranges lie inside. DATA_LOSS: pages of this memory
  // went away meanwhile.
  virtual absl::Status CopyFrom(const Memory& from, uint64_t from_offset,
                                uint64_t offset, uint64_t bytes);
};

struct LayerInfo {
  std::string name;  // of the ONNX node it came from
  std::string type;  // "Conv", "ConvRelu", "InputOperator"
  std::string input_shape, output_shape;
  std::string data_type;  // what it computes in: "INT8", "FLOAT16"
  // What a device without an NPU computes it with: "bytes avx2", "oneDNN
  // jit:avx2", "loops".
  std::string kernel;
  // No kernel is made for this CPU and shape: tens of times slower than others.
  bool is_slow = false;
  bool on_cpu = false;  // not the NPU's work: conversions of inputs, outputs
  bool splits = false;  // the cores of a gang share it out
  // By the SoC's timing model, on one core of it, in cycles of that core.
  uint64_t ddr_cycles = 0, npu_cycles = 0;
  uint64_t ddr_bytes = 0;  // read and written, weights included
  uint64_t ddr_read = 0;   // of them, read: what the vendor's tables call RW
  uint64_t macs = 0;
  // What pace makes of it, at the highest clock with the memory to itself.
  base::Nanoseconds modelled = 0;
};

// One tensor of internal memory, as the memory tables of the reports show it.
struct TensorPlace {
  std::string name;          // of the ONNX value
  std::string data_type;     // "INT8", "FLOAT16"
  std::string shape;         // "1,32,112,112": as the model has it
  std::string native_shape;  // "1,2,112,112,16": as the NPU has it
  uint32_t user = 0;         // index in ProgramInfo::layers: its first reader
  // Tensors of one number share bytes: one is part of the other, or is written
  // over what nobody reads any more.
  uint32_t storage = 0;
  uint32_t first = 0, last = 0;    // steps between which it is alive
  uint64_t offset = 0, size = 0;   // in internal memory
  uint64_t written = 0, read = 0;  // bytes of a run, each reader's counted
  [[nodiscard]] uint64_t traffic() const { return written + read; }
};

// Which of a program's tensors lie in SRAM, chosen by the DDR traffic that
// saves; tensors alive at once never share a byte of it. A forecast: on the
// board the runtime's own choice may differ.
struct SramPlan {
  struct Entry {
    uint32_t tensor = 0;  // index in ProgramInfo::tensors
    uint64_t offset = 0;  // from the start of the SRAM
    uint64_t hit = 0;     // its bytes that lie there, from its start
    uint64_t saved = 0;   // DDR bytes of a run that this saves
  };
  uint64_t size = 0;           // of the SRAM planned for
  uint64_t used = 0;           // of it, whole pages
  uint64_t saved = 0;          // sum over the entries
  std::vector<Entry> entries;  // by tensor
};
// SRAM is handed out in pages.
inline constexpr uint64_t kSramPage = 4096;

// One input-shape row of a model, ready to run. It is a list of segments;
// between two segments nothing lives in internal memory, so another job may
// use the arena there.
struct ProgramInfo {
  std::vector<TensorAttr> inputs, outputs;
  std::vector<TensorAttr> native_inputs, native_outputs;
  uint64_t internal_size = 0;
  uint32_t segments = 1;
  // rknn_batch_size: a job computes so many slices of the inputs, one after
  // the other on a core. Attributes count all of them, layers and internal_size
  // one.
  uint32_t batch = 1;
  std::vector<LayerInfo> layers;
  // What the SoC takes for one slice of it by the timing model: one core at its
  // highest clock, no other busy. 0: no model. For admission; not a
  // measurement.
  base::Nanoseconds modelled = 0;
  // What this device itself is expected to take for that, before any run was
  // measured; 0: as modelled.
  base::Nanoseconds expected = 0;
  std::vector<TensorPlace> tensors;  // of internal memory, by first step
  SramPlan sram;                     // with all of the SoC's SRAM
};

struct ModelInfo {
  std::string name;  // the graph's
  uint64_t weight_size = 0;
  std::string custom_string;
  std::string target_platform;
  // One per shape row; a fixed-shape model has one.
  std::vector<ProgramInfo> programs;
  // The row of the largest inputs, all of a row together.
  uint32_t largest = 0;
  // Why no job of it can run, in words for its user: a file that this device
  // can only describe. Such a model has one program, without layers.
  absl::Status runnable;
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

  // What a context of this model that got `bytes` of SRAM keeps in it: empty
  // where the device knows of none.
  [[nodiscard]] virtual SramPlan PlanSram(uint32_t /*program*/,
                                          uint64_t /*bytes*/) const {
    return {};
  }

  // The bytes that each plane of `frame` must have to be converted into input
  // `index`, or which number of it cannot be. What is accepted is ready to run:
  // whatever the conversion needs is there.
  [[nodiscard]] virtual absl::StatusOr<FrameSizes> CheckFrame(
      uint32_t program, uint32_t index, const FrameFormat& frame) const;

  // The weights as the device holds them, ModelInfo::weight_size bytes, for a
  // program that asks for a copy (rknn_set_weight_mem). Nothing reads it again.
  virtual absl::Status CopyWeights(Memory& to, uint64_t offset) const;

  // The bytes there for this model, run or not, that no other one pays for: its
  // weights, and what a compiled one's commands take. Models share what is
  // alike; the sum over all that are loaded is what the device holds. Grows
  // when a model goes that paid for what this one uses too. Thread: any.
  [[nodiscard]] virtual uint64_t held_weights() const {
    return info().runnable.ok() ? info().weight_size : 0;
  }

  // The compiled form, from which Load makes the same model again in less time
  // (LoadRequest::compiled), in pieces of any size; the first error of `write`
  // ends it. UNIMPLEMENTED: there is none. Thread: any one after Load, before
  // Finish; jobs may run.
  virtual absl::Status WriteCompiled(
      absl::FunctionRef<absl::Status(std::span<const std::byte>)> write);
  // What Load left for later so as to answer sooner; then what only loading
  // needed is let go. Jobs may run before and meanwhile: they wait for what
  // they need of it. An error: some jobs will fail with it. Thread: any one
  // after Load, once.
  virtual absl::Status Finish() { return absl::OkStatus(); }
};

struct TensorBinding {
  Memory* memory = nullptr;
  uint64_t offset = 0;
  TensorFormat format;
  // Memory the program brought: it synchronises the CPU's caches itself, before
  // and after the run.
  bool program_syncs = false;
  // An input that is a camera's frame, to be converted on the way in; null: a
  // tensor. `memory` and `offset` are then its first plane's.
  const Frame* frame = nullptr;
};

struct JobResult {
  absl::Status status;                       // OK carries no allocation
  base::Nanoseconds started = 0, ended = 0;  // on the core, device's clock
};

// One layer's output as people read it: row-major, axes in the model's order.
// 8-bit and half-precision numbers come as the real numbers they stand for.
struct LayerTensor {
  uint32_t layer = 0;  // index in ProgramInfo::layers
  std::string_view name;
  TensorType type = TensorType::kFloat32;
  std::span<const int64_t> shape;
  std::span<const std::byte> bytes;
};

// Told each layer's outputs as they are computed, in order. An error ends the
// job with it.
class LayerSink {
 public:
  virtual ~LayerSink() = default;
  // On the thread that runs the job; the tensor is gone afterwards.
  virtual absl::Status OnLayer(const LayerTensor& tensor) = 0;
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
  // A gang job has several: they share each layer that can be shared. The
  // answer is the same: of 8-bit layers to the bit, of others as if summed in
  // another order. All of them are the job's until it is done.
  uint32_t core_mask = 1;
  std::span<const TensorBinding> inputs, outputs;
  // Room for ProgramInfo::internal_size bytes from `internal_offset`. May be
  // memory that a client maps: tensors only, nothing read from it is trusted.
  Memory* internal = nullptr;
  uint64_t internal_offset = 0;
  // Gang jobs of a model with ProgramInfo::batch above 1: as much room, from
  // offset 0, for each further core in their order. Then each core computes
  // slices of its own; without, all work in `internal`, slice after slice.
  std::span<Memory* const> gang_internal;
  // Nanoseconds per layer, where asked for; else empty.
  std::span<int64_t> layer_times;
  // The program asked for the same, of all its memory.
  bool keep_input_caches = false, keep_output_caches = false;
  // Null but for runs that are dumped, which are slow and may allocate.
  LayerSink* layer_sink = nullptr;
  // Becomes true, by any thread, once nobody wants the answer: a device that
  // can then ends the job soon, with CANCELLED. Null: that does not happen.
  const std::atomic<bool>* stop = nullptr;
  // Since when the job waits for its core, by the device's clock; 0: since now.
  // Where the SoC's time is modelled it may start before Submit, by what a
  // thread takes to get there, but never before this.
  base::Nanoseconds submitted = 0;
  JobListener* listener = nullptr;
};

// What Load is given. Bytes are read during the call only, and not trusted.
struct LoadRequest {
  std::span<const std::byte> bytes;  // the file
  std::string options;               // the text of MODEL.yml, or empty
  std::string name;                  // for messages
  // The file of the model whose weights this one shares, where its own lack
  // them (RKNN_FLAG_SHARE_WEIGHT_MEM); empty: none.
  std::span<const std::byte> weights_of = {};
  // Whether weights that other models have loaded already are used again; if
  // not, this model has a copy of its own.
  bool share_weights = true;
  // What Model::WriteCompiled of the same file, options and
  // DeviceInfo::compiler gave; `bytes` need not be there then. Empty: compile.
  // One that is not good after all is DATA_LOSS.
  std::span<const std::byte> compiled = {};
  // Keeps `compiled` where it is for as long as the model wants to read it,
  // at most until Finish.
  std::shared_ptr<const void> compiled_keeper = nullptr;
  // 64 digits: the hash of bytes and options, by which people name the model.
  // Empty: not known.
  std::string sha256 = {};
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
};

struct DeviceOptions {
  std::string kind = "auto";  // "soft", "rknnrt", "auto"
  std::string soc = "rk3588";
  bool pace = false;  // a job ends when the SoC would end it
  const base::Clock* clock = nullptr;
};

// The only place that names devices. kUnimplemented for a kind this build
// lacks, naming it.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    const DeviceOptions& options);

}  // namespace rknnd::driver

#endif  // DRIVER_DEVICE_H_
