// The tensors of the graph, and that the memory they are said to live in is the
// memory that the file declares: both sums are exact in every file known.

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "driver/rknn_file/slots.h"
#include "driver/rknpu/file/parts.h"

namespace rknnd::rknpu {
namespace {

using base::Expected;
using rknn_file::FlatTable;
using rknn_file::FlatVector;
namespace slot = rknn_file::tensor_slot;

// Groups of weights have six numbers each.
constexpr size_t kMaxNumbersOfShape = 64;

bool IsKnown(ElementType type) {
  switch (type) {
    case ElementType::kNone:
    case ElementType::kFloat32:
    case ElementType::kInt8:
    case ElementType::kInt16:
    case ElementType::kInt32:
    case ElementType::kInt64:
    case ElementType::kFloat16:
    case ElementType::kWords:
      return true;
  }
  return false;
}

bool IsKnown(Layout layout) {
  switch (layout) {
    case Layout::kPlain:
    case Layout::kNhwc:
    case Layout::kNchw:
    case Layout::kFeature:
    case Layout::kWeights:
      return true;
  }
  return false;
}

bool IsKnown(TensorClass kind) {
  switch (kind) {
    case TensorClass::kNone:
    case TensorClass::kInput:
    case TensorClass::kOutput:
    case TensorClass::kInternal:
    case TensorClass::kWeights:
    case TensorClass::kConstant:
    case TensorClass::kTable:
    case TensorClass::kGenerated:
    case TensorClass::kCommands:
    case TensorClass::kTasks:
      return true;
  }
  return false;
}

template <class Enum>
std::string NumberOf(Enum value) {
  return std::to_string(static_cast<unsigned>(value));
}

Expected<void> CheckKinds(const Tensor& tensor) {
  const std::string what = "tensor '" + tensor.name + "'";
  if (!IsKnown(tensor.type)) {
    return Unsupported(what + " has elements of type " + NumberOf(tensor.type) +
                       ", which is not known");
  }
  if (!IsKnown(tensor.layout)) {
    return Unsupported(what + " has the layout " + NumberOf(tensor.layout) +
                       ", which is not known");
  }
  if (!IsKnown(tensor.kind)) {
    return Unsupported(what + " is of class " + NumberOf(tensor.kind) +
                       ", which is not known");
  }
  if (tensor.in_internal_memory() && ElementBytes(tensor.type) == 0) {
    return Damaged(what + " has no type of elements");
  }
  if (tensor.in_internal_memory() && tensor.type == ElementType::kInt16) {
    return Unsupported(what +
                       " is computed in int16, which is not known; convert "
                       "the model to int8 or float16");
  }
  return {};
}

Expected<Tensor> ReadTensor(Section& section, const FlatTable& table,
                            const Buffers& buffers) {
  Tensor tensor;
  tensor.name = section.Text(table, slot::kName);
  tensor.type = static_cast<ElementType>(table.Number<uint8_t>(slot::kType));
  tensor.layout = static_cast<Layout>(table.Number<uint8_t>(slot::kLayout));
  tensor.kind = static_cast<TensorClass>(table.Number<uint8_t>(slot::kClass));
  Expected<void> known = CheckKinds(tensor);
  if (!known.ok()) return std::move(known).error();
  if (table.Number<uint32_t>(slot::kCompressed) != 0) {
    return Unsupported("the weights '" + tensor.name +
                       "' are compressed; convert the model with a toolkit of "
                       "release 1.6 or later");
  }
  tensor.native_shape = section.Numbers<uint32_t>(table, slot::kNativeShape);
  tensor.shape = section.Numbers<uint32_t>(table, slot::kShape);
  if (std::max(tensor.native_shape.size(), tensor.shape.size()) >
      kMaxNumbersOfShape) {
    return Damaged("the shape of tensor '" + tensor.name + "' has more than " +
                   std::to_string(kMaxNumbersOfShape) + " numbers");
  }
  if (tensor.layout == Layout::kFeature && tensor.native_shape.size() != 5) {
    return Damaged("tensor '" + tensor.name + "' has a native shape of " +
                   std::to_string(tensor.native_shape.size()) +
                   " numbers, not of 5");
  }
  tensor.scales = section.Numbers<float>(table, slot::kScale);
  tensor.zero_points = section.Numbers<int32_t>(table, slot::kZeroPoint);
  if (tensor.scales.size() != tensor.zero_points.size()) {
    return Damaged("tensor '" + tensor.name + "' has " +
                   std::to_string(tensor.scales.size()) + " scales and " +
                   std::to_string(tensor.zero_points.size()) + " zero points");
  }
  tensor.bytes = table.Number<uint32_t>(slot::kBytes);
  tensor.offset = table.Number<uint32_t>(slot::kOffset);
  const auto buffer = table.Number<uint32_t>(slot::kBuffer);
  if (buffer >= buffers.size()) {
    return Damaged("tensor '" + tensor.name + "' has its contents in buffer " +
                   std::to_string(buffer) + " of " +
                   std::to_string(buffers.size()));
  }
  tensor.data = buffers[buffer];
  return tensor;
}

Expected<void> CheckNames(const ProgramFile& file) {
  std::set<std::string_view> names;
  for (const Tensor& tensor : file.tensors) {
    if (tensor.name.empty()) continue;
    if (!names.insert(tensor.name).second) {
      return Damaged("two tensors are named '" + tensor.name + "'");
    }
  }
  return {};
}

// At most 65536 tensors of less than 4 GiB each: sums fit 64 bits.
Expected<void> CheckMemory(const ProgramFile& file) {
  uint64_t weights = 0;
  uint64_t generated = 0;
  uint64_t internal = 0;
  for (const Tensor& tensor : file.tensors) {
    const uint64_t padded = (tensor.bytes + rknn_file::kConstantAlignment - 1) /
                            rknn_file::kConstantAlignment *
                            rknn_file::kConstantAlignment;
    const bool is_weights = tensor.kind == TensorClass::kWeights ||
                            tensor.kind == TensorClass::kConstant;
    if (is_weights) weights += padded;
    if (tensor.kind == TensorClass::kGenerated) generated += padded;
    if (tensor.in_internal_memory()) {
      internal = std::max(internal, tensor.offset + tensor.bytes);
    }
  }
  const struct {
    const char* what;
    uint64_t declared, found;
  } sums[] = {{"weights", file.weight_bytes, weights},
              {"internal tensors", file.internal_bytes, internal},
              {"generated constants", file.generated_bytes, generated}};
  for (const auto& sum : sums) {
    if (sum.declared == sum.found) continue;
    return Damaged(std::string("its ") + sum.what + " need " +
                   std::to_string(sum.found) + " bytes, the file says " +
                   std::to_string(sum.declared));
  }
  return {};
}

}  // namespace

size_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return 1;
    case ElementType::kInt16:
    case ElementType::kFloat16:
      return 2;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kInt64:
      return 8;
    case ElementType::kNone:
    case ElementType::kWords:
      break;
  }
  return 0;
}

const char* ElementTypeName(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kInt16:
      return "int16";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kNone:
    case ElementType::kWords:
      break;
  }
  return "none";
}

Expected<void> ReadTensors(Section& section, const FlatTable& graph,
                           const Buffers& buffers, ProgramFile& file) {
  const FlatVector tables =
      section.Tables(graph, rknn_file::graph_slot::kTensors);
  if (tables.size() > kMaxTensors) {
    return Damaged("it has " + std::to_string(tables.size()) + " tensors");
  }
  file.tensors.reserve(tables.size());
  for (uint32_t i = 0; i < tables.size(); ++i) {
    Expected<Tensor> tensor =
        ReadTensor(section, graph.TableAt(tables, i), buffers);
    if (!tensor.ok()) return std::move(tensor).error();
    file.tensors.push_back(*std::move(tensor));
  }
  Expected<void> named = CheckNames(file);
  return named.ok() ? CheckMemory(file) : named;
}

}  // namespace rknnd::rknpu
