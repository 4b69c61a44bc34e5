// One rknn_context of this process: its model's attributes, what is bound to
// its inputs and outputs, and the general path (rknn_inputs_set,
// rknn_outputs_get), which copies between the program's arrays and memory the
// device reads and writes. The device converts types and layouts of inputs;
// here bytes are only copied in, and converted on their way out.
//
// Two ways to give a tensor its memory:
//   own       rknn_inputs_set made it, or rknn_run for an output left unbound
//   program's rknn_set_io_mem
//
// The lock is held over a call on this context, its requests to the target
// included, but never while a run is waited for. Two contexts share none.

#ifndef CLIENT_RKNNRT_CONTEXT_H_
#define CLIENT_RKNNRT_CONTEXT_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/posix/expected.h"
#include "base/posix/mutex.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/rknnrt/buffer.h"
#include "client/rknnrt/memory_registry.h"
#include "client/rknnrt/status_map.h"
#include "client/rknnrt/target.h"

namespace rknnd::client {

// Bytes copied or converted, by direction and reason: proof of how little.
struct CopyCounters {
  std::atomic<uint64_t> to_device_inputs_set{0};
  std::atomic<uint64_t> to_device_conversion{0};
  std::atomic<uint64_t> from_device_outputs_get{0};
  std::atomic<uint64_t> from_device_conversion{0};
};

// Where a context's model came from.
struct ModelOrigin {
  ModelId id{};
  std::optional<rknn_tensor_mem> memory;  // the program's, that holds its bytes
};

// The last run that succeeded.
struct LastRun {
  uint64_t frame = 0;  // 0: none yet; the first is 1
  RunReport report;
};

// An error and what it was about: the C API's number follows from both.
struct Failure {
  base::Error error;
  Subject subject = Subject::kContext;
};
// Empty: it worked.
using Outcome = std::optional<Failure>;

// Thread: any.
class Context {
 public:
  // Takes over the context `number` of `target`.
  Context(uint32_t number, uint32_t flags, std::shared_ptr<Target> target,
          std::shared_ptr<const ModelDescription> model);

  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] uint32_t flags() const { return flags_; }
  // At its largest shape, where it lists several.
  [[nodiscard]] const ModelDescription& model() const { return *model_; }
  // At the shape of the next run; null when none is chosen yet.
  [[nodiscard]] std::shared_ptr<const ModelDescription> Chosen() const;
  // That failure.
  [[nodiscard]] Outcome NoShape() const;
  [[nodiscard]] const std::shared_ptr<const ModelDescription>& shared_model()
      const {
    return model_;
  }
  [[nodiscard]] Target& target() const { return *target_; }
  [[nodiscard]] const std::shared_ptr<Target>& shared_target() const {
    return target_;
  }
  // A failure that says what the SoC `has` instead, where its runtime lacks
  // `limit`.
  [[nodiscard]] Outcome CheckLimit(rknnd_v1_DeviceLimit limit,
                                   const char* has) const;
  [[nodiscard]] const CopyCounters& copies() const { return copies_; }
  [[nodiscard]] LastRun last_run() const;
  [[nodiscard]] ModelOrigin origin() const;
  void set_origin(const ModelOrigin& origin);
  // Memory the program brought for the model: what it gave for the weights, or
  // else what holds the model's bytes.
  [[nodiscard]] std::optional<rknn_tensor_mem> ModelMemory() const;

  // Takes the context away from the target and frees results that were not
  // released. Called once, when no handle leads here any more; a run of another
  // thread may still be on its way.
  base::Expected<void> Destroy();

  // Data set before, of another shape, is to be set again.
  Outcome SetShapes(std::span<const rknn_tensor_attr> attrs);
  Outcome SetInputs(std::span<const rknn_input> inputs);
  Outcome BindMemory(const Buffer& memory, const rknn_tensor_attr& attr);
  Outcome SetInternalMemory(const Buffer& memory);
  Outcome SetWeightMemory(const std::shared_ptr<const TensorMemory>& memory);
  // Of a frame's planes; null: none.
  using PlaneMemory = std::array<const Buffer*, RKNND_MAX_PLANES>;
  Outcome BindFrame(uint32_t index, const rknnd_frame& frame,
                    const PlaneMemory& memory);
  Outcome PlaceFrame(uint32_t index, const rknnd_frame& frame,
                     rknnd_placement* placement) const;
  Outcome Run(rknn_run_extend* extend);
  Outcome GetOutputs(std::span<rknn_output> outputs,
                     rknn_output_extend* extend);
  void ReleaseOutputs(std::span<rknn_output> outputs);

  // The target's text, kept until the next call.
  std::span<char> PerfText();
  // The rows of that table, kept until the next call of this.
  base::Expected<std::span<const rknnd_layer>> PerfLayers();

 private:
  enum class Source : uint8_t { kNone, kOwn, kProgram };

  struct Port {
    Source source = Source::kNone;
    Binding binding;
    std::optional<FrameBinding> frame;  // instead
    // Inputs: memory of our own. Outputs share outputs_.
    std::shared_ptr<Buffer> own;
    // Bytes that the device converts in each run.
    uint64_t converted = 0;
    // Bound before the shape changed: the target may have taken it away.
    bool stale = false;
  };

  struct InputPlan;

  // The range that `memory` is, if this context's target has it.
  base::Expected<MemoryRange> RangeOf(const Buffer& memory) const;
  static Outcome PlanInput(const ModelDescription& model,
                           const rknn_input& input, InputPlan* plan);
  Outcome ApplyInput(const InputPlan& plan) RKNND_REQUIRES(mutex_);
  // Binds memory of our own to every output that has none.
  Outcome BindOwnOutputs() RKNND_REQUIRES(mutex_);
  // What the device converts in each run because of this binding.
  [[nodiscard]] uint64_t ConvertedBytes(Direction direction, uint32_t index,
                                        const Binding& binding) const
      RKNND_REQUIRES(mutex_);
  [[nodiscard]] base::Expected<FrameBinding> PlanFrame(
      uint32_t index, const rknnd_frame& frame,
      const PlaneMemory& memory) const;
  Outcome BindPort(Direction direction, uint32_t index, Source source,
                   const Binding& binding) RKNND_REQUIRES(mutex_);
  Outcome GetOutput(uint32_t index, rknn_output* output) RKNND_REQUIRES(mutex_);
  Outcome CheckRunnable() RKNND_REQUIRES(mutex_);
  // Under the lock, so that a later sum never comes first, and none after the
  // context's end.
  void ShowCopies() RKNND_REQUIRES(mutex_);

  const uint32_t number_;
  const uint32_t flags_;
  const std::shared_ptr<Target> target_;
  const std::shared_ptr<const ModelDescription> model_;
  const uint32_t limits_;
  CopyCounters copies_;

  mutable base::Mutex mutex_;
  // What tensors are taken to be: as in the shape of the next run, or until one
  // is chosen as in the largest.
  std::shared_ptr<const ModelDescription> shape_ RKNND_GUARDED_BY(mutex_);
  bool shape_chosen_ RKNND_GUARDED_BY(mutex_) = false;
  std::vector<InputShape> asked_ RKNND_GUARDED_BY(mutex_);
  // The last frame before that shape: outputs up to it are of another.
  uint64_t shape_frame_ RKNND_GUARDED_BY(mutex_) = 0;
  std::vector<Port> inputs_ RKNND_GUARDED_BY(mutex_);
  std::vector<Port> outputs_ RKNND_GUARDED_BY(mutex_);
  std::shared_ptr<Buffer> output_memory_ RKNND_GUARDED_BY(mutex_);
  bool runnable_ RKNND_GUARDED_BY(mutex_) = false;
  bool destroyed_ RKNND_GUARDED_BY(mutex_) = false;
  uint64_t frames_ RKNND_GUARDED_BY(mutex_) = 0;
  LastRun last_run_ RKNND_GUARDED_BY(mutex_);
  ModelOrigin origin_ RKNND_GUARDED_BY(mutex_);
  // The program may destroy it at any time.
  std::weak_ptr<const TensorMemory> weight_memory_ RKNND_GUARDED_BY(mutex_);
  // Results that rknn_outputs_get allocated and that wait for their release:
  // nothing else is ever freed on a program's word.
  std::vector<void*> results_ RKNND_GUARDED_BY(mutex_);
  std::string perf_text_ RKNND_GUARDED_BY(mutex_);
  // The second points into the first.
  std::vector<wire::LayerReport> layer_reports_ RKNND_GUARDED_BY(mutex_);
  std::vector<rknnd_layer> layers_ RKNND_GUARDED_BY(mutex_);
};

// Which output each entry of rknn_outputs_get means. Indices 0..n-1 in any
// order are used; all 0 with n > 1 is by position. Anything else names an
// output twice, or one that is not there.
base::Expected<std::vector<uint32_t>> ResolveOutputs(
    std::span<const rknn_output> outputs, size_t model_outputs);

// Finds the tensor that rknn_set_io_mem means: by name, and where an input and
// an output share it by what else the attribute says.
struct TensorMatch {
  Direction direction = Direction::kInput;
  uint32_t index = 0;
};
base::Expected<TensorMatch> MatchTensor(const ModelDescription& model,
                                        const rknn_tensor_attr& attr);

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CONTEXT_H_
