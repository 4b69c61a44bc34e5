// One rknn_context of this process: its model's attributes, what is bound to
// its inputs and outputs (port_table.h), its runs (run_record.h), and the
// general path (rknn_inputs_set, rknn_outputs_get), which copies between the
// program's arrays and memory of the library's own (own_memory.h). The device
// converts types and layouts of inputs; here bytes are only copied in, and
// converted on their way out.
//
// The lock is held over a call on this context, its requests to the target
// included, but never while a run is waited for. Two contexts share none.

#ifndef CLIENT_RKNNRT_CONTEXT_CONTEXT_H_
#define CLIENT_RKNNRT_CONTEXT_CONTEXT_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/posix/mutex.h"
#include "base/values/expected.h"
#include "client/include/rknn_api.h"
#include "client/include/rknnd.h"
#include "client/rknnrt/buffer.h"
#include "client/rknnrt/context/layer_tables.h"
#include "client/rknnrt/context/own_memory.h"
#include "client/rknnrt/context/port_table.h"
#include "client/rknnrt/context/run_record.h"
#include "client/rknnrt/memory_registry.h"
#include "client/rknnrt/outcome.h"
#include "client/session/target.h"

namespace rknnd::client {

class CustomOperators;
class Matmul;

// Where a context's model came from.
struct ModelOrigin {
  ModelId id{};
  std::optional<rknn_tensor_mem> memory;  // the program's, that holds its bytes
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

// What the model's inputs and outputs are bound to.
struct RunBindings {
  std::vector<Binding> inputs, outputs;
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
  // Null: it has none that are registered. Set as matmul() is.
  [[nodiscard]] std::shared_ptr<CustomOperators> custom() const;
  // The context under this one's number that has `custom`, of the model `whole`
  // in the target. This one is not to be used any more.
  base::Expected<std::shared_ptr<Context>> Become(
      const std::shared_ptr<ModelSource>& whole,
      std::shared_ptr<CustomOperators> custom);
  // Null: it is one of a model. Set before anybody else has its handle.
  [[nodiscard]] std::shared_ptr<Matmul> matmul() const;
  void set_matmul(std::shared_ptr<Matmul> matmul);
  // The program's sizeof(rknn_tensor_attr), which only a query tells.
  [[nodiscard]] uint32_t attr_size() const {
    return attr_size_.load(std::memory_order_relaxed);
  }
  void set_attr_size(uint32_t size) {
    attr_size_.store(size, std::memory_order_relaxed);
  }
  // Memory the program brought for the model: what it gave for the weights, or
  // else what holds the model's bytes.
  [[nodiscard]] std::optional<rknn_tensor_mem> ModelMemory() const;

  // Takes the context away from the target and frees results that were not
  // released. Called once, when no handle leads here any more; a run of another
  // thread may still be on its way.
  base::Expected<void> Destroy();

  // In force from the next run on; any number a program gave.
  Outcome SetCoreMask(uint32_t mask);
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
  enum class Waited : uint8_t { kEnded, kNotYet, kNone };
  // Waits for a run that was started and not told of; a queue's are told of by
  // their queue. kNone: there is none such.
  Waited Wait(WhichRun which, uint64_t frame, base::Nanoseconds deadline,
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
  [[nodiscard]] LayerTables& layer_tables() { return layer_tables_; }

 private:
  // The range that `memory` is, if this context's target has it.
  base::Expected<MemoryRange> RangeOf(const Buffer& memory) const;
  [[nodiscard]] base::Expected<FrameBinding> PlanFrame(
      uint32_t index, const rknnd_frame& frame,
      const PlaneMemory& memory) const;
  // What a run on `set` has.
  [[nodiscard]] RunBindings BindingsOf(uint32_t set) const
      RKNND_REQUIRES(mutex_);
  // Not ok where the SoC's runtime has no memory of its own for tensors.
  [[nodiscard]] Outcome CheckGeneralPath() const;
  Outcome CheckRunnable(uint32_t set) RKNND_REQUIRES(mutex_);
  // RKNN_FLAG_ASYNC_MASK is set and can be followed.
  [[nodiscard]] bool IsAsync() const RKNND_REQUIRES(mutex_);
  Outcome RunBlocking(rknn_run_extend* extend, std::optional<int> fence_in);
  Outcome StartRun(const RunOptions& options, bool vendor,
                   Submitted* submitted);
  // Waits for all up to that one.
  void AwaitRuns(uint64_t serial);
  // The run whose outputs are to be given, when it has ended.
  Outcome AwaitOutputs(RecordedRun* shown);
  Outcome GetOutput(uint32_t index, uint32_t set, rknn_output* output)
      RKNND_REQUIRES(mutex_);
  // Under the lock, so that a later sum never comes first, and none after the
  // context's end.
  void ReportCopies() RKNND_REQUIRES(mutex_);

  const uint32_t number_;
  const uint32_t flags_;
  const std::shared_ptr<Target> target_;
  const std::shared_ptr<const ModelDescription> model_;
  const uint32_t limits_;
  CopyCounters copies_;
  LayerTables layer_tables_;
  std::atomic<uint32_t> attr_size_ = sizeof(rknn_tensor_attr);

  mutable base::Mutex mutex_;
  // Their shape is that of the next run, or until one is chosen the largest.
  PortTable ports_ RKNND_GUARDED_BY(mutex_);
  OwnMemory own_ RKNND_GUARDED_BY(mutex_);
  RunRecord record_ RKNND_GUARDED_BY(mutex_);
  bool shape_chosen_ RKNND_GUARDED_BY(mutex_) = false;
  std::vector<InputShape> asked_ RKNND_GUARDED_BY(mutex_);
  bool runnable_ RKNND_GUARDED_BY(mutex_) = false;
  bool destroyed_ RKNND_GUARDED_BY(mutex_) = false;
  ModelOrigin origin_ RKNND_GUARDED_BY(mutex_);
  std::shared_ptr<Matmul> matmul_ RKNND_GUARDED_BY(mutex_);
  std::shared_ptr<CustomOperators> custom_ RKNND_GUARDED_BY(mutex_);
  // The program may destroy it at any time.
  std::weak_ptr<const TensorMemory> weight_memory_ RKNND_GUARDED_BY(mutex_);
  // Results that rknn_outputs_get allocated and that wait for their release:
  // nothing else is ever freed on a program's word.
  std::vector<void*> results_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CONTEXT_CONTEXT_H_
