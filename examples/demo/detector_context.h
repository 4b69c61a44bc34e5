// One context of the detector with memory bound on all sides, so that a run
// copies nothing.

#ifndef EXAMPLES_DEMO_DETECTOR_CONTEXT_H_
#define EXAMPLES_DEMO_DETECTOR_CONTEXT_H_

#include <cstdint>
#include <vector>

#include "client/include/rknnd.hpp"

namespace rknnd::demo {

// Thread: any, one at a time. Throws Error.
class DetectorContext {
 public:
  // Binds memory to every input and output, each in the form that the NPU
  // itself takes.
  explicit DetectorContext(Context context);

  [[nodiscard]] const Context& context() const { return context_; }
  // What input_memory() holds.
  [[nodiscard]] const Tensor& input() const { return input_; }
  [[nodiscard]] const Memory& input_memory() const { return inputs_[0]; }

  void Submit(const RunOptions& options) { context_.Submit(options); }
  // Takes back what waits for a core.
  void Cancel() { context_.Cancel(); }
  // The outputs of the last run, which has ended.
  [[nodiscard]] std::vector<std::vector<float>> Answer() const;
  // Bytes of tensors that this context's runs have copied.
  [[nodiscard]] uint64_t CopiedBytes() const;

 private:
  Context context_;
  Tensor input_;
  std::vector<Tensor> native_outputs_;
  std::vector<Memory> inputs_, outputs_;
};

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_DETECTOR_CONTEXT_H_
