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
// Runs are waited for, or started (context_runs.cc). With
// RKNN_FLAG_ASYNC_MASK and nothing but own memory there are two banks of it on
// each side, so that a frame is written while another one is read:
//   set of bindings   0      1      2      3
//   inputs in bank    0      1      0      1
//   outputs in bank   0      0      1      1
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
#include "client/rknnrt/outcome.h"
#include "client/session/target.h"

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
  uint64_t frame = 0;   // as it was given, or as counted
  uint64_t serial = 0;  // 0: none yet; the first is 1
  RunReport report;
};

// What a started run is to differ in.
struct RunOptions {
  uint64_t frame = 0;  // 0: counted
  uint64_t deadline_ns = 0;
  uint32_t timeout_ms = 0;
  uint32_t set = 0;
  bool shared = false;
  std::optional<int> fence_in;  // borrowed
  bool fence_out = false;
  uint32_t notice = 0;  // its end is a queue's to tell
};

// One that was started.
struct Submitted {
  RunRef run;
  uint64_t frame = 0;
  uint64_t serial = 0;
  base::UniqueFd fence_out;
};

// One that has ended.
struct EndedRun {
  uint64_t frame = 0;
  uint32_t set = 0;
  base::Code code = base::Code::kUnknown;
  std::string text;
  RunReport report;
};

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
  // That failure, for a call that needs a chosen shape.
  [[nodiscard]] Outcome NoShape() const;
  // Not ok where the program cannot use that set of bindings.
  [[nodiscard]] Outcome CheckSet(uint32_t set) const;
  [[nodiscard]] Target& target() const { return *target_; }
  [[nodiscard]] const std::shared_ptr<Target>& shared_target() const {
    return target_;
  }
  // Not ok, and says what the SoC `has` instead, where its runtime lacks
  // `limit`.
  [[nodiscard]] Outcome CheckLimit(rknnd_v1_DeviceLimit limit,
                                   const char* has) const;
  [[nodiscard]] const CopyCounters& copies() const { return copies_; }
  // Of the runs that have ended by now, as the counters above are then.
  [[nodiscard]] LastRun last_run();
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
  Outcome BindMemory(const Buffer& memory, const rknn_tensor_attr& attr,
                     uint32_t set = 0);
  Outcome SetInternalMemory(const Buffer& memory);
  Outcome SetWeightMemory(const std::shared_ptr<const TensorMemory>& memory);
  // Of a frame's planes; null: none.
  using PlaneMemory = std::array<const Buffer*, RKNND_MAX_PLANES>;
  Outcome BindFrame(uint32_t index, const rknnd_frame& frame,
                    const PlaneMemory& memory);
  Outcome PlaceFrame(uint32_t index, const rknnd_frame& frame,
                     rknnd_placement* placement) const;
  Outcome Run(rknn_run_extend* extend);
  // Starts a run and does not wait for it.
  Outcome Submit(const RunOptions& options, Submitted* submitted);
  enum class Which : uint8_t { kThatFrame, kOldest, kNewest };
  enum class Waited : uint8_t { kEnded, kNotYet, kNone };
  // Waits for a run that was started and not told of; a queue's are told of by
  // their queue. kNone: there is none such.
  Waited Wait(Which which, uint64_t frame, base::Nanoseconds deadline,
              EndedRun* ended);
  // For all that are on their way.
  void AwaitRuns();
  // So many runs were begun.
  [[nodiscard]] uint64_t runs() const;
  // A queue has told the program how that run ended.
  void MarkReported(uint64_t serial);
  // No queue ever will.
  void MarkAbandoned(uint64_t serial);
  Outcome GetOutputs(std::span<rknn_output> outputs,
                     rknn_output_extend* extend);
  void ReleaseOutputs(std::span<rknn_output> outputs);

  // The target's text, kept until the next call.
  std::span<char> PerfText();
  // The rows of that table, kept until the next call of this.
  base::Expected<std::span<const rknnd_layer>> PerfLayers();
  // What computes each layer of the model, kept until the next call of this.
  base::Expected<std::span<const rknnd_kernel>> Kernels();

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

  // A run that was started, until it was told how it ended.
  struct Started {
    RunRef run;
    uint64_t frame = 0, serial = 0;
    uint32_t set = 0;
    uint8_t in_bank = 0, out_bank = 0;
    uint64_t converted_in = 0, converted_out = 0;
    bool async = false;      // by RKNN_FLAG_ASYNC_MASK
    bool queued = false;     // a queue's to tell
    bool abandoned = false;  // nobody will be told of its end
    bool counted = false;    // has ended, and is in the sums
  };

  struct PortSet {
    std::vector<Port> inputs, outputs;
  };

  // What one rknn_input asks for, checked.
  struct InputPlan {
    uint32_t index = 0;
    const void* bytes = nullptr;
    uint64_t size = 0;
    Binding format;  // type, layout and pass_through
  };

  // The range that `memory` is, if this context's target has it.
  base::Expected<MemoryRange> RangeOf(const Buffer& memory) const;
  static Outcome PlanInput(const ModelDescription& model,
                           const rknn_input& input, InputPlan* plan);
  Outcome ApplyInput(const InputPlan& plan, uint32_t bank)
      RKNND_REQUIRES(mutex_);
  // What `bank` lacks of the other one's inputs, but for those of `plans`.
  Outcome CarryOver(std::span<const InputPlan> plans, uint32_t bank)
      RKNND_REQUIRES(mutex_);
  // Binds memory of our own to every output that has none.
  Outcome BindOwnOutputs() RKNND_REQUIRES(mutex_);
  Outcome BindSecondOutputs() RKNND_REQUIRES(mutex_);
  // The bank that the next rknn_inputs_set writes, and the last run that reads
  // it, 0: none.
  uint32_t NextBank(uint64_t* reader) RKNND_REQUIRES(mutex_);
  // What the device converts in each run because of this binding.
  [[nodiscard]] uint64_t ConvertedBytes(Direction direction, uint32_t index,
                                        const Binding& binding) const
      RKNND_REQUIRES(mutex_);
  [[nodiscard]] base::Expected<FrameBinding> PlanFrame(
      uint32_t index, const rknnd_frame& frame,
      const PlaneMemory& memory) const;
  // In the sets of that bank.
  Outcome BindBank(uint32_t bank, uint32_t input, Binding binding)
      RKNND_REQUIRES(mutex_);
  Outcome BindPort(Direction direction, uint32_t index, Source source,
                   const Binding& binding) RKNND_REQUIRES(mutex_);
  Outcome GetOutput(uint32_t index, uint32_t set, rknn_output* output)
      RKNND_REQUIRES(mutex_);
  // The sets whose inputs are in bank 1.
  static constexpr std::array<uint32_t, 2> kSecondBank = {1, 3};
  [[nodiscard]] bool HasOwn(uint32_t set, uint32_t input) const
      RKNND_REQUIRES(mutex_) {
    return !sets_[set].inputs.empty() &&
           sets_[set].inputs[input].source == Source::kOwn;
  }
  Port& PortAt(uint32_t set, Direction direction, uint32_t index)
      RKNND_REQUIRES(mutex_);
  // The one that a run on `set` has.
  [[nodiscard]] const Port& PortOf(uint32_t set, Direction direction,
                                   uint32_t index) const RKNND_REQUIRES(mutex_);
  Outcome CheckRunnable(uint32_t set) RKNND_REQUIRES(mutex_);
  // RKNN_FLAG_ASYNC_MASK is set and can be followed.
  [[nodiscard]] bool IsAsync() const RKNND_REQUIRES(mutex_);
  Outcome RunBlocking(rknn_run_extend* extend, std::optional<int> fence_in);
  Outcome StartRun(const RunOptions& options, bool vendor,
                   Submitted* submitted);
  // Takes note of the started runs that have ended.
  void CountEnded() RKNND_REQUIRES(mutex_);
  void Count(uint64_t serial, uint64_t frame, const RunReport& report,
             uint64_t converted_in, uint64_t converted_out)
      RKNND_REQUIRES(mutex_);
  // Waits for all up to that one.
  void AwaitRuns(uint64_t serial);
  // The last two runs have outputs of their own.
  [[nodiscard]] bool HasPrevious() const RKNND_REQUIRES(mutex_);
  // The run whose outputs are to be given, when it has ended.
  Outcome AwaitOutputs(Started* shown);
  // Under the lock, so that a later sum never comes first, and none after the
  // context's end.
  void ReportCopies() RKNND_REQUIRES(mutex_);

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
  // The last run before that shape: outputs up to it are of another.
  uint64_t shape_run_ RKNND_GUARDED_BY(mutex_) = 0;
  // Of set 0; the others have what differs from it.
  std::vector<Port> inputs_ RKNND_GUARDED_BY(mutex_);
  std::vector<Port> outputs_ RKNND_GUARDED_BY(mutex_);
  std::array<PortSet, RKNND_SETS> sets_ RKNND_GUARDED_BY(mutex_);
  std::shared_ptr<Buffer> output_memory_ RKNND_GUARDED_BY(mutex_);
  std::shared_ptr<Buffer> second_output_memory_ RKNND_GUARDED_BY(mutex_);
  // Where the data of the next run is, and where the outputs of the last
  // asynchronous one go.
  uint32_t in_bank_ RKNND_GUARDED_BY(mutex_) = 0;
  uint32_t out_bank_ RKNND_GUARDED_BY(mutex_) = 0;
  bool runnable_ RKNND_GUARDED_BY(mutex_) = false;
  bool destroyed_ RKNND_GUARDED_BY(mutex_) = false;
  uint64_t runs_ RKNND_GUARDED_BY(mutex_) = 0;
  LastRun last_run_ RKNND_GUARDED_BY(mutex_);
  // In the order of their start.
  std::vector<Started> started_ RKNND_GUARDED_BY(mutex_);
  // The last one that was started, and the one before.
  std::optional<Started> newest_ RKNND_GUARDED_BY(mutex_);
  std::optional<Started> previous_ RKNND_GUARDED_BY(mutex_);
  // The last one that rknn_run waited for and that failed, and why.
  uint64_t failed_ RKNND_GUARDED_BY(mutex_) = 0;
  base::Error failure_ RKNND_GUARDED_BY(mutex_){};
  // The last one that the program has waited for itself.
  uint64_t waited_for_ RKNND_GUARDED_BY(mutex_) = 0;
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
  std::vector<wire::LayerReport> kernel_reports_ RKNND_GUARDED_BY(mutex_);
  std::vector<rknnd_kernel> kernels_ RKNND_GUARDED_BY(mutex_);
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
