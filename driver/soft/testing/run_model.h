// Runs models on a device in tests: memory, bindings and the wait for the
// answer in one call. Linked into tests only.

#ifndef DRIVER_SOFT_TESTING_RUN_MODEL_H_
#define DRIVER_SOFT_TESTING_RUN_MODEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"
#include "driver/device.h"
#include "driver/memory/heap.h"

namespace rknnd::soft::testing {

// Internal memory of models that are bound from now on comes from there, as
// some devices reach no other; null: from a memfd. It outlives them.
void TakeInternalMemoryFrom(driver::Heap* heap);

// Memory as clients have it: a memfd, mapped by the device and by the test.
class TestMemory {
 public:
  TestMemory(driver::Device& device, uint64_t size);
  // Of a heap's; null: as above.
  TestMemory(driver::Device& device, uint64_t size, driver::Heap* heap);
  ~TestMemory();
  TestMemory(const TestMemory&) = delete;
  TestMemory& operator=(const TestMemory&) = delete;

  [[nodiscard]] driver::Memory* memory() const { return memory_.get(); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  base::UniqueFd fd_;
  uint64_t size_;
  std::byte* data_ = nullptr;
  std::unique_ptr<driver::Memory> memory_;
};

// One tensor of a run: its format, and its bytes (of an output: the answer).
struct TestTensor {
  driver::TensorFormat format;
  std::vector<std::byte> bytes;
};

// A model with memory bound to all its ports, ready to run again and again.
class BoundModel {
 public:
  // Formats of `inputs` and `outputs`, one for each port.
  static absl::StatusOr<std::unique_ptr<BoundModel>> Make(
      driver::Device& device, const driver::Model& model,
      const std::vector<driver::TensorFormat>& inputs,
      const std::vector<driver::TensorFormat>& outputs, uint32_t row = 0);

  driver::JobResult Run(uint32_t core = 0,
                        std::vector<int64_t>* layer_times = nullptr);
  // Once, each layer's output told.
  driver::JobResult RunDumped(driver::LayerSink& sink);
  // On all cores of a mask at once; each with internal memory of its own, which
  // a batch is for, or all in that of the lowest.
  driver::JobResult RunGang(uint32_t core_mask, bool own_arenas = false,
                            std::vector<int64_t>* layer_times = nullptr);
  // Once with other memory behind one input.
  driver::JobResult RunWithInput(size_t i, driver::Memory* memory,
                                 uint32_t core_mask = 1);
  // Once with a frame in place of one input.
  driver::JobResult RunWithFrame(size_t i, const driver::Frame& frame,
                                 std::vector<int64_t>* layer_times = nullptr);
  // Of all runs from now on; outlives them.
  void set_stop(const std::atomic<bool>* stop) { stop_ = stop; }
  [[nodiscard]] TestMemory& input(size_t i) { return *inputs_[i]; }
  [[nodiscard]] TestMemory& output(size_t i) { return *outputs_[i]; }

  ~BoundModel();

 private:
  class KeepResult;

  BoundModel(driver::Device& device, const driver::Model& model, uint32_t row);

  driver::Device& device_;
  const driver::Model& model_;
  const uint32_t row_;  // of ModelInfo::programs
  std::vector<std::unique_ptr<TestMemory>> inputs_, outputs_;
  std::vector<driver::TensorBinding> input_bindings_, output_bindings_;
  std::unique_ptr<TestMemory> arena_;
  std::vector<std::unique_ptr<TestMemory>> gang_arenas_;
  const std::atomic<bool>* stop_ = nullptr;
  std::unique_ptr<KeepResult> listener_;
};

// Runs once; fills the bytes of `outputs`.
absl::Status RunOnce(driver::Device& device, const driver::Model& model,
                     const std::vector<TestTensor>& inputs,
                     std::vector<TestTensor>& outputs);

// Runs once on floats: the model's first input, and its first output.
absl::StatusOr<std::vector<float>> RunFloats(driver::Device& device,
                                             const driver::Model& model,
                                             const std::vector<float>& input);

// Format in the model's own axis order: NCHW where it is 4-D.
driver::TensorFormat PlainFormat(const driver::TensorAttr& attr,
                                 driver::TensorType type);

// Where ../shared is; empty when it is missing.
std::string SharedFolder();
std::vector<std::byte> ReadFile(const std::string& path);

}  // namespace rknnd::soft::testing

#endif  // DRIVER_SOFT_TESTING_RUN_MODEL_H_
