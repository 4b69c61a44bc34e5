// Which memory the inputs and outputs of a context are: a snapshot that jobs
// hold, so that binding, releasing and destroying are safe while one runs.

#ifndef DAEMON_CORE_CONTEXTS_BINDING_SET_H_
#define DAEMON_CORE_CONTEXTS_BINDING_SET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/contexts/bound_frame.h"
#include "daemon/core/memory/buffer_table.h"
#include "daemon/core/memory/memory_range.h"
#include "daemon/core/models/loaded_model.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

// Internal memory that a program gave.
struct OutsideMemory {
  std::shared_ptr<Buffer> buffer;  // null: none
  MemoryRange range;               // what a run of any shape may write
};

// Some of a model's tensors.
struct TensorChoice {
  std::vector<bool> inputs, outputs;

  [[nodiscard]] std::vector<bool>& of(driver::Direction direction) {
    return direction == driver::Direction::kInput ? inputs : outputs;
  }
};

// Immutable. Keeps model and buffers alive. Thread: any.
class BindingSet {
 public:
  // Nothing is bound. A model that lists shapes has its largest until one is
  // chosen, so that memory may be bound before. `internal_outside`: complete
  // only with internal memory, if the model needs any.
  static std::shared_ptr<const BindingSet> Empty(
      std::shared_ptr<const LoadedModel> model, bool internal_outside = false);

  // This set with one binding changed; `buffer` null takes it away. What the
  // request says is checked here, in words for who wrote the program.
  absl::StatusOr<std::shared_ptr<const BindingSet>> With(
      const BindRequest& request, std::shared_ptr<Buffer> buffer) const;

  // The same with a frame in place of an input's tensor, until other memory is
  // bound there.
  absl::StatusOr<std::shared_ptr<const BindingSet>> WithFrame(
      const FrameRequest& request, PlaneBuffers buffers) const;

  // This set with other internal memory; `buffer` null takes it away. Large
  // enough for every shape, or refused.
  absl::StatusOr<std::shared_ptr<const BindingSet>> WithInternal(
      const MemoryRequest& request, std::shared_ptr<Buffer> buffer) const;

  // The same memory for another row of the model's shapes, chosen by the
  // client. What does not fit there is left out; CheckComplete says why.
  [[nodiscard]] std::shared_ptr<const BindingSet> ForRow(uint32_t row) const;
  [[nodiscard]] uint32_t row() const { return row_; }
  // Not yet: nothing can run.
  [[nodiscard]] bool chosen() const { return chosen_; }

  // This set with all of `base`, which is for the same row, but the tensors
  // that `own` names.
  [[nodiscard]] std::shared_ptr<const BindingSet> Over(
      const BindingSet& base, const TensorChoice& own) const;

  [[nodiscard]] std::span<const driver::TensorBinding> inputs() const {
    return inputs_.bindings;
  }
  [[nodiscard]] std::span<const driver::TensorBinding> outputs() const {
    return outputs_.bindings;
  }
  [[nodiscard]] const OutsideMemory& internal() const { return internal_; }
  // What no other job may use while one of this set runs; null: nothing.
  [[nodiscard]] const MemoryRange* alone() const {
    return internal_.range.begin == internal_.range.end ? nullptr
                                                        : &internal_.range;
  }
  [[nodiscard]] bool complete() const {
    return chosen_ && inputs_.unbound == 0 && outputs_.unbound == 0 &&
           !lacks_internal_ && conflict_.empty();
  }
  // Names the first tensor without memory, or two things that are the same
  // memory and must not be; OK when complete.
  [[nodiscard]] absl::Status CheckComplete() const;
  // Bytes that the device converts in one run, because a tensor is bound in
  // another type or layout than the NPU's own.
  [[nodiscard]] uint64_t converted(driver::Direction direction) const {
    return (direction == driver::Direction::kInput ? inputs_ : outputs_)
        .converted;
  }
  // Equal for two sets of one model, both complete, exactly when their runs
  // read the same memory in the same form and give answers of the same form.
  [[nodiscard]] const std::string& run_key() const { return run_key_; }
  // The bytes of output `index` that a run writes, from its offset on.
  [[nodiscard]] uint64_t output_bytes(size_t index) const {
    return outputs_.needed[index];
  }
  // How often `buffer` is bound here, and how often among those tensors.
  [[nodiscard]] uint32_t Count(const Buffer* buffer) const;
  [[nodiscard]] uint32_t Count(const Buffer* buffer,
                               const TensorChoice& among) const;

 private:
  struct Side {
    std::vector<driver::TensorBinding> bindings;
    std::vector<std::shared_ptr<Buffer>> buffers;
    std::vector<uint64_t> sizes;   // usable, as the client said
    std::vector<uint64_t> needed;  // of them, from the offset on
    // Inputs that are frames; their first plane's memory is in the above.
    std::vector<std::shared_ptr<const BoundFrame>> frames;
    std::vector<std::string> lost;      // why a change of shape unbound it
    std::vector<uint64_t> conversions;  // bytes, of each
    uint64_t converted = 0;             // their sum
    size_t unbound = 0;

    // Tensor i of a side of as many.
    void Take(const Side& other, size_t i);
    [[nodiscard]] uint32_t Count(const Buffer* buffer, size_t i) const;
  };

  BindingSet() = default;
  [[nodiscard]] absl::Status CheckIndex(driver::Direction direction,
                                        uint32_t index) const;
  // The bytes of it that a run uses.
  [[nodiscard]] absl::StatusOr<uint64_t> Check(const BindRequest& request,
                                               const Buffer& buffer) const;

  // With `buffer` in place of what was there; checked, or null.
  void Put(const BindRequest& request, std::shared_ptr<Buffer> buffer,
           uint64_t needed);
  // The same with a frame, which is checked.
  void PutFrame(std::shared_ptr<const BoundFrame> frame);
  // The same frame for the shape of row_, or nothing and why it does not fit.
  std::string Refit(const BoundFrame& frame);
  void NoteRunKey();
  // Looks for memory that is bound twice. Not an error before a run: programs
  // exchange buffers one by one.
  void NoteConflict();
  [[nodiscard]] std::string UseName(size_t use) const;
  [[nodiscard]] const driver::ProgramInfo& program() const {
    return model_->program(row_);
  }

  std::shared_ptr<const LoadedModel> model_;
  uint32_t row_ = 0;
  bool chosen_ = true;
  bool lacks_internal_ = false;
  Side inputs_, outputs_;
  OutsideMemory internal_;
  std::string conflict_;  // in words; empty: none
  std::string run_key_;   // empty while not all is bound
};

// Whether a range that a client named lies inside `buffer` and may be written;
// `name` for the message.
absl::Status CheckRange(const MemoryRequest& request, const Buffer& buffer,
                        const std::string& name);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_CONTEXTS_BINDING_SET_H_
