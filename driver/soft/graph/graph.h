// The network between import and plan: values and nodes, as ONNX means them.
// Built by import/, rewritten by graph/ passes, read by plan/. Lives only while
// a model is loaded. Floating point values are float32, or float64 where the
// file says so: import widens float16, and I/O is converted at the edge.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_GRAPH_GRAPH_H_
#define DRIVER_SOFT_GRAPH_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"

namespace rknnd::soft {

enum class DataType : uint8_t {
  kFloat32,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kBool,
  kFloat64,
};
size_t SizeOf(DataType type);
inline bool IsFloat(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat64;
}
const char* DataTypeName(DataType type);

using Shape = absl::InlinedVector<int64_t, 6>;

// Product of the dims; RESOURCE_EXHAUSTED where it overflows or exceeds what
// one tensor may hold (kMaxTensorBytes): shapes come from files.
absl::StatusOr<int64_t> ElementCount(const Shape& shape);
std::string ShapeText(const Shape& shape);  // "1x3x240x320"

// No network of this field has a tensor of a GiB; a larger one is an attack or
// a broken file.
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 30;

// A tensor whose contents are known when the model is loaded: dense,
// row-major.
struct Constant {
  DataType type = DataType::kFloat32;
  Shape shape;
  std::vector<std::byte> data;

  template <class T>
  [[nodiscard]] const T* as() const {
    return reinterpret_cast<const T*>(data.data());
  }
  [[nodiscard]] int64_t elements() const;
};

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;  // an optional input left out

struct Value {
  std::string name;
  DataType type = DataType::kFloat32;
  // Unknown until inference; stays unknown behind an operator of a foreign
  // domain that declares no shape.
  std::optional<Shape> shape;
  std::shared_ptr<const Constant> constant;
};

struct Graph;

// The last kind, a body of If, Loop or Scan, is only there until inference has
// written such a node out.
using Attribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>,
                 std::vector<float>, std::vector<std::string>,
                 std::shared_ptr<const Constant>, std::shared_ptr<const Graph>>;

enum class Activation : uint8_t {
  kNone,
  kRelu,
  kLeakyRelu,  // alpha
  kClip,       // alpha: low, beta: high
  kSigmoid,
  kTanh,
  kHardSigmoid,  // alpha, beta
  kHardSwish,
  kSwish,
  kGelu,
  kGeluTanh,  // by its approximation
};

// What fusion has put behind a node: first the addition of one more input
// (same shape as the output), then the activation.
struct Epilogue {
  ValueId add = kNoValue;
  Activation activation = Activation::kNone;
  float alpha = 0.0F, beta = 0.0F;
};

struct Node {
  std::string name;    // never empty: import names the nameless
  std::string type;    // "Conv"
  std::string domain;  // "" is ONNX's own
  int opset = 0;       // of that domain
  std::vector<ValueId> inputs, outputs;
  std::map<std::string, Attribute> attributes;
  Epilogue epilogue;
  // As the reports name it: type, or "ConvRelu", "ConvAddRelu" after fusion.
  std::string layer_type;
  // Part of the layer of the node just before it, whose only reader it is; that
  // one has the name of both.
  bool joins_layer = false;
  // Whether a run that is dumped shows what it makes. Not kept in compiled
  // forms.
  bool shown = true;
};

// One scale and zero point for a whole 8-bit tensor:
// real = scale * (q - zero).
struct Quantization {
  float scale = 1.0F;
  int32_t zero = 0;
};

struct GraphPort {
  // The port's own name: passes may let an output read another value.
  std::string name;
  ValueId value = kNoValue;
  // As the file declares it: FLOAT16 of a half-precision model is float32
  // inside and this outside. ONNX's TensorProto.DataType number.
  int32_t onnx_type = 0;
  // The value is 8-bit and stands for the real numbers the file declares.
  std::optional<Quantization> quantization = {};
  // What else of 8-bit numbers the file declares: what these stand for, where
  // its nodes say so. Nothing is converted by it inside.
  std::optional<Quantization> stands_for = {};
  // Of an image input, for each channel or empty: the application gives x, the
  // network takes (x - mean) / deviation.
  std::vector<float> mean = {}, deviation = {};
  // The dims the file declares, -1 where it gives no number, and where that
  // leaves an input's shape open the words for it.
  std::optional<Shape> declared = {};
  std::string open = {};
  bool shown = true;  // as Node::shown
};

// No network of this field has more nodes, also where functions, branches and
// loops are written out; planning grows with their square.
inline constexpr int kMaxNodes = 1 << 15;

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;        // topologically sorted
  std::vector<GraphPort> inputs;  // initialisers left out
  std::vector<GraphPort> outputs;
  std::map<std::string, std::string> metadata;
  // Of a body: how many of its inputs, the last ones, are values from around
  // it. The node that holds it reads them after its own inputs; one with two
  // bodies, first those of the first.
  size_t captured = 0;

  [[nodiscard]] const Value& value(ValueId id) const {
    return values[static_cast<size_t>(id)];
  }
  [[nodiscard]] Value& value(ValueId id) {
    return values[static_cast<size_t>(id)];
  }
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_GRAPH_GRAPH_H_
