// The library's own memory of a context's tensors: what rknn_inputs_set copies
// into, and what rknn_outputs_get reads from. With RKNN_FLAG_ASYNC_MASK and
// nothing but own memory there are two banks of it on each side, so that a
// frame is written while another one is read:
//   set of bindings   0      1      2      3
//   inputs in bank    0      1      0      1
//   outputs in bank   0      0      1      1
// What a run on its way reads is never written.

#ifndef CLIENT_RKNNRT_CONTEXT_OWN_MEMORY_H_
#define CLIENT_RKNNRT_CONTEXT_OWN_MEMORY_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/values/expected.h"
#include "client/include/rknn_api.h"
#include "client/rknnrt/buffer.h"
#include "client/rknnrt/context/port_table.h"
#include "client/rknnrt/context/run_record.h"
#include "client/rknnrt/outcome.h"
#include "client/session/target.h"

namespace rknnd::client {

// What one rknn_input asks for, checked.
struct InputPlan {
  uint32_t index = 0;
  const void* bytes = nullptr;
  uint64_t size = 0;
  Binding format;  // type, layout and pass_through
};
// `input` as it goes with the tensors of `model`.
base::Expected<InputPlan> PlanInput(const ModelDescription& model,
                                    const rknn_input& input);

// Thread: under its context's lock.
class OwnMemory {
 public:
  // All outlive it, but for the target, which its buffers need.
  OwnMemory(std::shared_ptr<Target> target, PortTable& ports,
            CopyCounters& copies)
      : target_(std::move(target)), ports_(ports), copies_(copies) {}

  // The bank of the next run's inputs, and the set that has it and the first
  // bank of outputs.
  [[nodiscard]] uint32_t in_bank() const { return in_bank_; }
  [[nodiscard]] uint32_t out_bank() const { return out_bank_; }
  // The bank that is to be written next, where `readers` are the runs that read
  // each of them.
  [[nodiscard]] uint32_t NextBank(const std::array<uint64_t, 2>& readers,
                                  bool async) const;
  // Copies what the program gave into that bank, and what it did not give again
  // from the one before.
  Outcome WriteInputs(std::span<const InputPlan> plans, uint32_t bank);
  // Memory for every output that has none.
  Outcome BindOutputs();
  // The next run's outputs go to the other bank.
  Outcome TurnOutputs();
  // Null where nothing was bound.
  [[nodiscard]] const std::shared_ptr<Buffer>& outputs(uint32_t bank) const {
    return output_memory_[bank];
  }
  // The shape has changed: what was given is no data any more.
  void ForgetInputs() { in_bank_ = 0; }
  void Clear();

 private:
  Outcome WriteInput(const InputPlan& plan, uint32_t bank);
  // In the sets of that bank.
  Outcome BindInput(uint32_t bank, uint32_t input, Binding binding);

  const std::shared_ptr<Target> target_;
  PortTable& ports_;
  CopyCounters& copies_;
  std::array<std::shared_ptr<Buffer>, 2> output_memory_;
  uint32_t in_bank_ = 0;
  uint32_t out_bank_ = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_CONTEXT_OWN_MEMORY_H_
