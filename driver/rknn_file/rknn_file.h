// What a compiled model file (.rknn) says about itself: container, inputs and
// outputs, quantisation, target, versions, memory. It is read, not run: the
// file's commands are for real NPUs. Used by the software NPU, which describes
// such models, and by rknnctl info.
//
// The file comes from a client and is not trusted: every offset is checked,
// what is kept is bounded. Nothing of the vendor's is needed; the layout is
// what can be seen in published files, so that what is unknown says so.

#ifndef DRIVER_RKNN_FILE_RKNN_FILE_H_
#define DRIVER_RKNN_FILE_RKNN_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "driver/rknn_file/container.h"

namespace rknnd::rknn_file {

inline constexpr uint32_t kUnknownType = UINT32_MAX;

struct Tensor {
  std::string name;
  // rknn_tensor_type's number; kUnknownType for one that is not known.
  uint32_t type = kUnknownType;
  std::string type_name;       // "INT8", "type 42"
  std::vector<uint32_t> dims;  // in the model's order, NCHW for pictures
  std::vector<uint32_t> native_dims;
  bool native_blocked = false;  // NC1HWC2
  std::string layout;           // of what a program gives or gets; "" unknown
  bool quantized = false;
  float scale = 1.0F;
  int32_t zero_point = 0;
  uint64_t native_bytes = 0;
};

struct Node {
  std::string type, name;
  bool on_cpu = false;
};

struct Description {
  uint64_t container_version = 0;
  uint64_t main_section_bytes = 0, json_bytes = 0;
  std::string format;            // "RKNPU v2"
  std::string toolkit_version;   // "1.3.4-source_code"
  std::string compiler_version;  // "1.4.2b4 (ba1a7fe97@2023-03-06T22:00:25)"
  std::string target_platform;   // "rk3588"
  std::string framework;         // "ONNX"
  std::string batch;             // "1"; "" unknown
  std::string inference_type;    // "static_shape"; "" unknown
  std::vector<Tensor> inputs, outputs;
  std::vector<Node> nodes;
  // Bytes of weights, of intermediate tensors, and of a third kind (register
  // commands, by all that is known).
  uint64_t weight_bytes = 0, internal_bytes = 0, other_bytes = 0;
  bool sizes_stored = false;  // in the file; else summed up from its tensors
};

// More than real files have; a file that says so is broken or an attack.
inline constexpr uint32_t kMaxPorts = 1024;
inline constexpr uint32_t kMaxNodes = 65536;
inline constexpr uint32_t kMaxTensors = 1U << 20;

// kInvalidArgument says what the file is instead, or which part is damaged.
base::Expected<Description> Read(std::span<const std::byte> bytes);

}  // namespace rknnd::rknn_file

#endif  // DRIVER_RKNN_FILE_RKNN_FILE_H_
