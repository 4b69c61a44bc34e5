// One run of a model: what it needs, and who is told of its layers and its end.

#ifndef DRIVER_JOB_H_
#define DRIVER_JOB_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "driver/device_memory.h"
#include "driver/frame.h"
#include "driver/model.h"
#include "driver/tensor.h"

namespace rknnd::driver {

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

}  // namespace rknnd::driver

#endif  // DRIVER_JOB_H_
