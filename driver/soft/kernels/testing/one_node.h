// A graph of one node, to test an operator's shape rule and kernel by
// themselves. Linked into tests only.

#ifndef DRIVER_SOFT_KERNELS_TESTING_ONE_NODE_H_
#define DRIVER_SOFT_KERNELS_TESTING_ONE_NODE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft::testing {

// Weight memory of one test.
class TestWeights final : public WeightStore {
 public:
  absl::StatusOr<const std::byte*> Store(
      size_t size, absl::FunctionRef<void(std::byte*)> fill) override;
  [[nodiscard]] size_t stored() const { return stored_; }

 private:
  size_t stored_ = 0;
  std::vector<std::shared_ptr<std::byte[]>> kept_;  // copies of a node share
};

class OneNode {
 public:
  explicit OneNode(const std::string& type, int opset = 13);

  // Inputs in order; "values" are given with each run, "constants" known.
  OneNode& Values(Shape shape, std::vector<float> values);
  OneNode& Floats(Shape shape, std::vector<float> values);
  OneNode& Ints(Shape shape, std::vector<int64_t> values);
  OneNode& NoInput();
  // Input `i` is of another type, whatever its numbers are.
  OneNode& OfType(DataType type, size_t i = 0);
  OneNode& With(const std::string& name, Attribute value);
  // Fusion's: the tensor to add looks like the output.
  OneNode& Then(Activation activation, float alpha = 0.0F, float beta = 0.0F);
  OneNode& Plus(Shape shape, std::vector<float> values);

  // Empty for an operator that is written out as others.
  [[nodiscard]] absl::StatusOr<std::vector<InferredOutput>> Infer() const;
  // The first output, dense. `block` above 1: inputs and output are blocked
  // where the operator allows it; `padding_is_zero` says whether the blocked
  // output's padding is.
  absl::StatusOr<std::vector<float>> Run(int block = 1);
  // The same computed in the parts of a gang of `cores`, last part first; how
  // many there were.
  absl::StatusOr<std::vector<float>> RunInParts(uint32_t cores, int block = 1);
  [[nodiscard]] uint32_t parts() const { return parts_; }
  [[nodiscard]] bool padding_is_zero() const { return padding_is_zero_; }
  // Whether the last run had a blocked input and output.
  [[nodiscard]] bool was_blocked() const { return was_blocked_; }
  // Weights that kernels have stored so far.
  [[nodiscard]] size_t weights() const { return weights_.stored(); }
  // The kernel, kept for runs by several threads.
  absl::StatusOr<std::unique_ptr<Kernel>> Make();

 private:
  struct Tensors {
    std::vector<TensorSpec> inputs, outputs;
  };
  [[nodiscard]] absl::StatusOr<Tensors> Specs(int block);
  absl::StatusOr<std::vector<float>> Compute(uint32_t cores, int block);

  Graph graph_;
  std::vector<std::vector<float>> values_;  // per input; constants too
  std::vector<float> added_;
  Shape added_shape_;
  TestWeights weights_;
  bool padding_is_zero_ = true, was_blocked_ = false;
  uint32_t parts_ = 1;
};

// Numbers between -1 and 1, the same for the same seed.
std::vector<float> Noise(int64_t count, uint32_t seed = 1);

}  // namespace rknnd::soft::testing

#endif  // DRIVER_SOFT_KERNELS_TESTING_ONE_NODE_H_
