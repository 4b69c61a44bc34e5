// A model inside a worker: loaded once by rknn_init, with a context for each
// lane and set of memory, made by rknn_dup_context where the library can.
//
//   Load            main thread: rknn_init, and all that can be asked
//   Run             a lane's thread: binds what has changed, rknn_run
//   DropForgotten   any thread: no context keeps memory that is gone
//
// The library is known to fail where several threads make and destroy memory at
// once: all of its functions but rknn_run are called one at a time.

#ifndef DRIVER_RKNNRT_WORKER_HOSTED_MODEL_H_
#define DRIVER_RKNNRT_WORKER_HOSTED_MODEL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "driver/rknnrt/protocol.h"
#include "driver/rknnrt/worker/library.h"
#include "driver/rknnrt/worker/memories.h"

namespace rknnd::rknnrt {

// What the library is told of a model's shape, and tells of it.
struct ShapeRow {
  std::vector<rknn_tensor_attr> inputs, outputs, native_inputs, native_outputs;
};

class HostedModel {
 public:
  // `library` and `calls`, which is held around calls into it, outlive the
  // model. The file has `size` bytes.
  static base::Expected<std::unique_ptr<HostedModel>> Load(
      const Library& library, base::Mutex& calls, base::UniqueFd file,
      size_t size, uint32_t cores);
  ~HostedModel();
  HostedModel(const HostedModel&) = delete;
  HostedModel& operator=(const HostedModel&) = delete;

  [[nodiscard]] const LoadedModel& about() const { return about_; }
  [[nodiscard]] const std::vector<ShapeRow>& rows() const { return rows_; }

  // `record`: what the set is bound to from now on; null: what it is. On the
  // thread of the lane.
  base::Expected<void> Run(uint32_t lane, uint32_t set, const RunRecord* record,
                           const Memories& memories);
  // Lanes that run do so by themselves, when they have run. Thread: any.
  void DropForgotten();
  // Has the library write the model's weights to `memory`, from `offset` on.
  base::Expected<void> CopyWeights(const NamedMemory& memory, uint64_t offset);

 private:
  struct BoundMemory {
    rknn_tensor_mem* mem = nullptr;
    std::shared_ptr<NamedMemory> memory;
  };
  struct Context {
    rknn_context handle = 0;
    bool is_bound = false;
    uint32_t program = 0, core_mask = 0;
    std::vector<BoundMemory> memories;
  };
  struct LaneContexts {
    base::Mutex mutex;  // held while one of them runs
    std::array<Context, kSets> sets RKNND_GUARDED_BY(mutex);
    // Some memory may be forgotten. Set before the mutex is tried, looked at
    // after it was given back: one of the two sees to it.
    std::atomic<bool> has_forgotten{false};
  };

  HostedModel(const Library& library, base::Mutex& calls, base::UniqueFd file,
              size_t size, uint32_t cores)
      : library_(library),
        calls_(calls),
        file_(std::move(file)),
        size_(size),
        cores_(cores) {}

  base::Expected<rknn_context> Init(uint32_t flags) RKNND_REQUIRES(calls_);
  base::Expected<void> Ask() RKNND_REQUIRES(calls_);
  base::Expected<void> AskShapes() RKNND_REQUIRES(calls_);
  base::Expected<ShapeRow> AskRow(bool current) RKNND_REQUIRES(calls_);
  base::Expected<void> Rebind(Context& context, const RunRecord& record,
                              const Memories& memories);
  base::Expected<void> MakeContext(Context& context) RKNND_REQUIRES(calls_);
  base::Expected<void> SetShape(rknn_context context, uint32_t row)
      RKNND_REQUIRES(calls_);
  base::Expected<void> Bind(Context& context, const RunRecord& record,
                            uint32_t tensor, const Memories& memories)
      RKNND_REQUIRES(calls_);
  base::Expected<void> BindInternal(Context& context, const RunRecord& record,
                                    const Memories& memories)
      RKNND_REQUIRES(calls_);
  base::Expected<rknn_tensor_mem*> MakeMemory(Context& context, uint32_t id,
                                              uint64_t offset, uint64_t bytes,
                                              const Memories& memories)
      RKNND_REQUIRES(calls_);
  void LetGo(Context& context, std::vector<BoundMemory>& memories)
      RKNND_REQUIRES(calls_);
  void DropForgotten(LaneContexts& lane);
  base::Expected<void> RunOn(LaneContexts& lane, uint32_t set,
                             const RunRecord* record, const Memories& memories);

  const Library& library_;
  base::Mutex& calls_;
  const base::UniqueFd file_;
  const size_t size_;
  const uint32_t cores_;
  uint32_t flags_ = 0;      // of rknn_init
  rknn_context first_ = 0;  // asked, duplicated, and never run
  LoadedModel about_ = {};
  std::vector<ShapeRow> rows_;
  std::array<LaneContexts, kMostLanes> lanes_;
};

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_WORKER_HOSTED_MODEL_H_
