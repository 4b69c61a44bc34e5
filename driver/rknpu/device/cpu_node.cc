#include "driver/rknpu/device/cpu_node.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/half.h"

namespace rknnd::rknpu {
namespace {

// Tables of places have 4 bytes for each element.
constexpr size_t kMostElements = size_t{1} << 26;

absl::Status Refuse(const Node& node, const std::string& why) {
  return absl::UnimplementedError(
      absl::StrCat("node '", node.name, "' (", node.type, "): ", why));
}

template <class T>
void Convert(const std::vector<std::byte>& dense, std::vector<float>& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    T number;
    std::memcpy(&number, dense.data() + i * sizeof(T), sizeof number);
    numbers[i] = static_cast<float>(number);
  }
}

// What a number of another type can hold; what is no number becomes 0.
template <class T>
T Limited(float number) {
  if constexpr (std::is_floating_point_v<T>) {
    return number;
  } else {
    constexpr auto kMost = static_cast<float>(std::numeric_limits<T>::max());
    if (number >= kMost) return std::numeric_limits<T>::max();
    if (number <= -kMost) return std::numeric_limits<T>::min();
    return std::isnan(number) ? T{0} : static_cast<T>(number);
  }
}

template <class T>
void ConvertBack(const std::vector<float>& numbers,
                 std::vector<std::byte>& dense) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    const T number = Limited<T>(numbers[i]);
    std::memcpy(dense.data() + i * sizeof(T), &number, sizeof number);
  }
}

// Distances between neighbours of each axis, row-major.
std::vector<size_t> StepsOf(const std::vector<uint32_t>& shape) {
  std::vector<size_t> steps(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) steps[i - 1] = steps[i] * shape[i];
  return steps;
}

// For each element of `shape` the sum of its coordinates times `steps`.
std::vector<uint32_t> Places(const std::vector<uint32_t>& shape,
                             const std::vector<size_t>& steps) {
  const size_t elements = std::accumulate(
      shape.begin(), shape.end(), size_t{1},
      [](size_t product, uint32_t dim) { return product * dim; });
  std::vector<uint32_t> places(elements);
  std::vector<uint32_t> at(shape.size());
  size_t place = 0;
  for (uint32_t& entry : places) {
    entry = static_cast<uint32_t>(place);
    for (size_t axis = shape.size(); axis-- > 0;) {
      place += steps[axis];
      if (++at[axis] < shape[axis]) break;
      place -= steps[axis] * shape[axis];
      at[axis] = 0;
    }
  }
  return places;
}

bool MeansTheSame(const Tensor& a, const Tensor& b) {
  return a.type == b.type && a.scales == b.scales &&
         a.zero_points == b.zero_points;
}

}  // namespace

absl::StatusOr<CpuNode::Value> CpuNode::ValueOf(const ProgramFile& file,
                                                uint32_t tensor) {
  Value value;
  value.index = tensor;
  value.tensor = &file.tensors[tensor];
  const TensorClass kind = value.tensor->kind;
  if (!value.tensor->in_internal_memory() && kind != TensorClass::kWeights &&
      kind != TensorClass::kConstant && kind != TensorClass::kGenerated) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", value.tensor->name, "' has no numbers"));
  }
  RKNND_ASSIGN_OR_RETURN(value.native, NativeTensor::Make(*value.tensor));
  if (value.native.elements() > kMostElements) {
    return absl::UnimplementedError(
        absl::StrCat("tensor '", value.tensor->name, "' has ",
                     value.native.elements(), " elements"));
  }
  if (value.tensor->type == ElementType::kInt8 &&
      value.tensor->scales.size() != 1) {
    return absl::UnimplementedError(
        absl::StrCat("tensor '", value.tensor->name, "' has ",
                     value.tensor->scales.size(), " scales, not one"));
  }
  return value;
}

std::optional<CpuNode::Kind> CpuNode::KindOf(std::string_view type) {
  constexpr std::pair<std::string_view, Kind> kKinds[] = {
      {"Reshape", Kind::kReshape},
      {"Transpose", Kind::kTranspose},
      {"Div", Kind::kDiv},
      {"ArgMax", Kind::kArgMax},
      {"exSoftmax13", Kind::kSoftmax},
      {"Softmax", Kind::kSoftmax}};
  for (const auto& [name, kind] : kKinds) {
    if (name == type) return kind;
  }
  return std::nullopt;
}

bool CpuNode::Knows(std::string_view type) { return KindOf(type).has_value(); }

absl::StatusOr<CpuNode> CpuNode::Make(const ProgramFile& file, uint32_t n) {
  const Node& node = file.nodes[n];
  const std::optional<Kind> kind = KindOf(node.type);
  if (!kind) {
    return Refuse(node,
                  "the file leaves it to the CPU, and its operator is not "
                  "known here");
  }
  CpuNode made;
  made.kind_ = *kind;
  // Shapes of a Reshape and scratch follow the inputs that count.
  const size_t inputs = made.kind_ == Kind::kDiv ? 2 : 1;
  if (node.inputs.size() < inputs || node.outputs.empty()) {
    return Refuse(node, "it lacks inputs or outputs");
  }
  for (size_t i = 0; i < inputs; ++i) {
    absl::StatusOr<Value> value = ValueOf(file, node.inputs[i]);
    if (!value.ok()) return Refuse(node, std::string(value.status().message()));
    made.inputs_.push_back(*std::move(value));
  }
  absl::StatusOr<Value> output = ValueOf(file, node.outputs[0]);
  if (!output.ok()) return Refuse(node, std::string(output.status().message()));
  made.output_ = *std::move(output);
  if (!made.output_.tensor->in_internal_memory()) {
    return Refuse(node, "it writes a constant");
  }
  RKNND_RETURN_IF_ERROR(made.Bind(node));
  return made;
}

absl::Status CpuNode::Bind(const Node& node) {
  const size_t in = inputs_[0].native.elements();
  const size_t out = output_.native.elements();
  switch (kind_) {
    case Kind::kReshape:
      if (in == out) return absl::OkStatus();
      return Refuse(node, absl::StrCat(in, " elements become ", out));
    case Kind::kTranspose:
      return BindTranspose(node);
    case Kind::kDiv:
      return BindDiv(node);
    case Kind::kArgMax:
    case Kind::kSoftmax:
      return BindAxis(node);
  }
  return absl::OkStatus();
}

absl::Status CpuNode::BindTranspose(const Node& node) {
  const std::vector<uint32_t>& shape = inputs_[0].tensor->shape;
  const std::vector<int32_t>& order = node.attributes.permutation;
  std::vector<size_t> axes(order.begin(), order.end());
  std::vector<size_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool is_order = sorted.size() == shape.size() &&
                  output_.tensor->shape.size() == shape.size();
  for (size_t i = 0; is_order && i < sorted.size(); ++i) {
    is_order = sorted[i] == i;
  }
  // Only axes that are there, from here on.
  for (size_t i = 0; is_order && i < axes.size(); ++i) {
    is_order = output_.tensor->shape[i] == shape[axes[i]];
  }
  if (!is_order) {
    return Refuse(node, "its permutation does not lead from shape to shape");
  }
  const std::vector<size_t> steps = StepsOf(shape);
  std::vector<size_t> turned;
  for (const size_t axis : axes) turned.push_back(steps[axis]);
  steps_ = std::move(turned);
  return absl::OkStatus();
}

// The second input has the first one's axes, or fewer, or 1 in their place.
absl::Status CpuNode::BindDiv(const Node& node) {
  const std::vector<uint32_t>& shape = inputs_[0].tensor->shape;
  const std::vector<uint32_t>& by = inputs_[1].tensor->shape;
  if (output_.tensor->shape != shape || by.size() > shape.size()) {
    return Refuse(node, "its shapes are not known to fit each other");
  }
  const std::vector<size_t> own = StepsOf(by);
  std::vector<size_t> steps(shape.size(), 0);
  const size_t missing = shape.size() - by.size();
  for (size_t i = 0; i < by.size(); ++i) {
    if (by[i] == 1) continue;
    if (by[i] != shape[missing + i]) {
      return Refuse(node, "its shapes are not known to fit each other");
    }
    steps[missing + i] = own[i];
  }
  steps_ = std::move(steps);
  return absl::OkStatus();
}

absl::Status CpuNode::BindAxis(const Node& node) {
  const std::vector<uint32_t>& shape = inputs_[0].tensor->shape;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = node.attributes.axis;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) {
    return Refuse(node, absl::StrCat("it has no axis ", node.attributes.axis));
  }
  for (int64_t i = 0; i < rank; ++i) {
    size_t& part = i < axis ? outer_ : i == axis ? along_ : inner_;
    part *= shape[static_cast<size_t>(i)];
  }
  const size_t expected =
      kind_ == Kind::kSoftmax ? outer_ * along_ * inner_ : outer_ * inner_;
  if (output_.native.elements() != expected) {
    return Refuse(node, "its output has another number of elements");
  }
  return absl::OkStatus();
}

std::vector<float> CpuNode::Load(const Value& value, Locate locate) {
  std::vector<std::byte> dense(value.native.dense_bytes());
  value.native.Unpack(locate(value.index), dense.data());
  std::vector<float> numbers(value.native.elements());
  const Tensor& tensor = *value.tensor;
  switch (tensor.type) {
    case ElementType::kInt8:
      Convert<int8_t>(dense, numbers);
      for (float& number : numbers) {
        number = (number - static_cast<float>(tensor.zero_points[0])) *
                 tensor.scales[0];
      }
      break;
    case ElementType::kFloat16:
      for (size_t i = 0; i < numbers.size(); ++i) {
        base::Half half = 0;
        std::memcpy(&half, dense.data() + i * sizeof half, sizeof half);
        numbers[i] = base::HalfToFloat(half);
      }
      break;
    case ElementType::kFloat32:
      Convert<float>(dense, numbers);
      break;
    case ElementType::kInt16:
      Convert<int16_t>(dense, numbers);
      break;
    case ElementType::kInt32:
      Convert<int32_t>(dense, numbers);
      break;
    case ElementType::kInt64:
      Convert<int64_t>(dense, numbers);
      break;
    case ElementType::kNone:
    case ElementType::kWords:
      break;
  }
  return numbers;
}

void CpuNode::Store(const std::vector<float>& numbers, Locate locate) const {
  std::vector<std::byte> dense(output_.native.dense_bytes());
  const Tensor& tensor = *output_.tensor;
  switch (tensor.type) {
    case ElementType::kInt8:
      for (size_t i = 0; i < numbers.size(); ++i) {
        const float steps = std::nearbyint(numbers[i] / tensor.scales[0]) +
                            static_cast<float>(tensor.zero_points[0]);
        // What is no number becomes the lowest.
        const float bound = steps > -128.0F ? std::min(steps, 127.0F) : -128.0F;
        dense[i] = static_cast<std::byte>(static_cast<int8_t>(bound));
      }
      break;
    case ElementType::kFloat16:
      for (size_t i = 0; i < numbers.size(); ++i) {
        const base::Half half = base::FloatToHalf(numbers[i]);
        std::memcpy(dense.data() + i * sizeof half, &half, sizeof half);
      }
      break;
    case ElementType::kFloat32:
      ConvertBack<float>(numbers, dense);
      break;
    case ElementType::kInt32:
      ConvertBack<int32_t>(numbers, dense);
      break;
    case ElementType::kInt64:
      ConvertBack<int64_t>(numbers, dense);
      break;
    case ElementType::kInt16:
    case ElementType::kNone:
    case ElementType::kWords:
      break;
  }
  output_.native.Pack(dense.data(), locate(output_.index));
}

// Reshape and Transpose keep the bytes where both tensors read them alike.
void CpuNode::Move(Locate locate) const {
  const Value& input = inputs_[0];
  const std::vector<uint32_t> from = kind_ == Kind::kTranspose
                                         ? Places(output_.tensor->shape, steps_)
                                         : std::vector<uint32_t>();
  if (!MeansTheSame(*input.tensor, *output_.tensor)) {
    const std::vector<float> numbers = Load(input, locate);
    std::vector<float> moved(numbers.size());
    for (size_t i = 0; i < moved.size(); ++i) {
      moved[i] = numbers[from.empty() ? i : from[i]];
    }
    Store(moved, locate);
    return;
  }
  std::vector<std::byte> dense(input.native.dense_bytes());
  input.native.Unpack(locate(input.index), dense.data());
  if (!from.empty()) {
    const size_t size = input.native.element_bytes();
    std::vector<std::byte> turned(dense.size());
    for (size_t i = 0; i < from.size(); ++i) {
      std::memcpy(turned.data() + i * size, dense.data() + from[i] * size,
                  size);
    }
    dense = std::move(turned);
  }
  output_.native.Pack(dense.data(), locate(output_.index));
}

std::vector<float> CpuNode::Divide(const std::vector<float>& a,
                                   const std::vector<float>& b) const {
  const std::vector<uint32_t> from = Places(output_.tensor->shape, steps_);
  std::vector<float> quotients(a.size());
  for (size_t i = 0; i < a.size(); ++i) quotients[i] = a[i] / b[from[i]];
  return quotients;
}

std::vector<float> CpuNode::ArgMax(const std::vector<float>& x) const {
  std::vector<float> places(outer_ * inner_);
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t first = i / inner_ * along_ * inner_ + i % inner_;
    size_t best = 0;
    for (size_t k = 1; k < along_; ++k) {
      if (x[first + k * inner_] > x[first + best * inner_]) best = k;
    }
    places[i] = static_cast<float>(best);
  }
  return places;
}

std::vector<float> CpuNode::Softmax(const std::vector<float>& x) const {
  std::vector<float> parts(x.size());
  for (size_t i = 0; i < outer_ * inner_; ++i) {
    const size_t first = i / inner_ * along_ * inner_ + i % inner_;
    float most = x[first];
    for (size_t k = 1; k < along_; ++k) {
      most = std::max(most, x[first + k * inner_]);
    }
    float sum = 0;
    for (size_t k = 0; k < along_; ++k) {
      const size_t at = first + k * inner_;
      parts[at] = std::exp(x[at] - most);
      sum += parts[at];
    }
    for (size_t k = 0; k < along_; ++k) parts[first + k * inner_] /= sum;
  }
  return parts;
}

void CpuNode::Run(Locate locate) const {
  switch (kind_) {
    case Kind::kReshape:
    case Kind::kTranspose:
      return Move(locate);
    case Kind::kDiv:
      return Store(Divide(Load(inputs_[0], locate), Load(inputs_[1], locate)),
                   locate);
    case Kind::kArgMax:
      return Store(ArgMax(Load(inputs_[0], locate)), locate);
    case Kind::kSoftmax:
      return Store(Softmax(Load(inputs_[0], locate)), locate);
  }
}

}  // namespace rknnd::rknpu
