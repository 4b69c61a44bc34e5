// Nodes that a compiled model leaves to the CPU: Reshape, Transpose, Div,
// ArgMax and Softmax. They read and write tensors as the NPU has them, between
// two jobs of the NPU. Real numbers are computed in float32 and rounded to the
// nearest.
//
// Other nodes are operators that a program computes itself (custom_parts.h).
// Thread: any.

#ifndef DRIVER_RKNPU_DEVICE_CPU_NODE_H_
#define DRIVER_RKNPU_DEVICE_CPU_NODE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "driver/rknpu/device/native_tensor.h"
#include "driver/rknpu/file/program_file.h"

namespace rknnd::rknpu {

class CpuNode {
 public:
  static bool Knows(std::string_view type);
  // `file` outlives the result.
  static absl::StatusOr<CpuNode> Make(const ProgramFile& file, uint32_t node);

  // Where a tensor's bytes are, all of Tensor::bytes.
  using Locate = absl::FunctionRef<std::byte*(uint32_t tensor)>;
  void Run(Locate locate) const;

 private:
  enum class Kind : uint8_t { kReshape, kTranspose, kDiv, kArgMax, kSoftmax };
  static std::optional<Kind> KindOf(std::string_view type);
  struct Value {
    uint32_t index = 0;
    const Tensor* tensor = nullptr;
    NativeTensor native;
  };

  static absl::StatusOr<Value> ValueOf(const ProgramFile& file,
                                       uint32_t tensor);
  absl::Status Bind(const Node& node);
  absl::Status BindTranspose(const Node& node);
  absl::Status BindDiv(const Node& node);
  absl::Status BindAxis(const Node& node);

  static std::vector<float> Load(const Value& value, Locate locate);
  void Store(const std::vector<float>& numbers, Locate locate) const;
  void Move(Locate locate) const;
  [[nodiscard]] std::vector<float> Divide(const std::vector<float>& a,
                                          const std::vector<float>& b) const;
  [[nodiscard]] std::vector<float> ArgMax(const std::vector<float>& x) const;
  [[nodiscard]] std::vector<float> Softmax(const std::vector<float>& x) const;

  Kind kind_ = Kind::kReshape;
  std::vector<Value> inputs_;
  Value output_;
  // For each axis of the output how far its next element lies in the input: of
  // a Transpose, of Div's second input.
  std::vector<size_t> steps_;
  // Elements before, along and behind the axis.
  size_t outer_ = 1, along_ = 1, inner_ = 1;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_DEVICE_CPU_NODE_H_
