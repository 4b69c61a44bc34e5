#include "driver/custom/custom_model.h"

#include <cstring>
#include <utility>

namespace rknnd::custom {
namespace {

using base::Code;
using base::Error;
using base::Expected;

// No list has more entries, whatever bytes say.
constexpr uint32_t kMostEntries = 1 << 16;

class Writer {
 public:
  void Number(uint32_t number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void Bytes(const void* data, size_t size) {
    Number(static_cast<uint32_t>(size));
    bytes_.append(static_cast<const char*>(data), size);
  }
  void Text(const std::string& text) { Bytes(text.data(), text.size()); }
  void Numbers(const std::vector<uint32_t>& numbers) {
    Number(static_cast<uint32_t>(numbers.size()));
    for (const uint32_t number : numbers) Number(number);
  }
  void Ports(const std::vector<Port>& ports) {
    Number(static_cast<uint32_t>(ports.size()));
    for (const Port& port : ports) {
      Number(port.between ? 1 : 0);
      Number(port.index);
    }
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After the first number that is not there all others are 0, and lists empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  uint32_t Number() {
    uint32_t number = 0;
    if (bytes_.size() < sizeof number) {
      good_ = false;
      return 0;
    }
    std::memcpy(&number, bytes_.data(), sizeof number);
    bytes_.remove_prefix(sizeof number);
    return number;
  }
  uint32_t Count() {
    const uint32_t count = Number();
    // An entry has at least a byte.
    good_ = good_ && count <= kMostEntries && count <= bytes_.size();
    return good_ ? count : 0;
  }
  std::string_view Bytes() {
    const uint32_t size = Number();
    if (size > bytes_.size()) good_ = false;
    if (!good_) return {};
    const std::string_view bytes = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return bytes;
  }
  std::vector<uint32_t> Numbers() {
    std::vector<uint32_t> numbers(Count());
    for (uint32_t& number : numbers) number = Number();
    return numbers;
  }
  std::vector<uint32_t> Indexes(size_t below) {
    std::vector<uint32_t> indexes = Numbers();
    for (const uint32_t index : indexes) good_ = good_ && index < below;
    return indexes;
  }
  std::vector<Port> Ports(size_t tensors) {
    std::vector<Port> ports(Count());
    for (Port& port : ports) {
      port.between = Number() != 0;
      port.index = Number();
      good_ = good_ && (!port.between || port.index < tensors);
    }
    return ports;
  }
  void Fail() { good_ = false; }
  // All was there, and nothing is left.
  [[nodiscard]] bool done() const { return good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

}  // namespace

std::string Write(const Model& model) {
  Writer to;
  to.Number(static_cast<uint32_t>(model.tensors.size()));
  for (const Tensor& tensor : model.tensors) {
    to.Text(tensor.name);
    to.Number(tensor.type);
    to.Numbers(tensor.dims);
  }
  to.Number(static_cast<uint32_t>(model.operators.size()));
  for (const Operator& op : model.operators) {
    to.Text(op.name);
    to.Text(op.type);
    to.Number(op.is_known ? 1 : 0);
    to.Numbers(op.inputs);
    to.Numbers(op.outputs);
    to.Number(static_cast<uint32_t>(op.attributes.size()));
    for (const Attribute& attribute : op.attributes) {
      to.Text(attribute.name);
      to.Number(attribute.type);
      to.Number(attribute.count);
      to.Bytes(attribute.data.data(), attribute.data.size());
    }
  }
  to.Number(static_cast<uint32_t>(model.parts.size()));
  for (const Part& part : model.parts) {
    to.Ports(part.inputs);
    to.Ports(part.outputs);
  }
  return to.Take();
}

Expected<Model> Read(std::string_view bytes) {
  Reader from(bytes);
  Model model;
  model.tensors.resize(from.Count());
  for (Tensor& tensor : model.tensors) {
    tensor.name = from.Bytes();
    tensor.type = from.Number();
    tensor.dims = from.Numbers();
  }
  model.operators.resize(from.Count());
  for (Operator& op : model.operators) {
    op.name = from.Bytes();
    op.type = from.Bytes();
    op.is_known = from.Number() != 0;
    op.inputs = from.Indexes(model.tensors.size());
    op.outputs = from.Indexes(model.tensors.size());
    op.attributes.resize(from.Count());
    for (Attribute& attribute : op.attributes) {
      attribute.name = from.Bytes();
      attribute.type = from.Number();
      attribute.count = from.Number();
      const std::string_view data = from.Bytes();
      const auto* const first = reinterpret_cast<const std::byte*>(data.data());
      attribute.data.assign(first, first + data.size());
    }
  }
  model.parts.resize(from.Count());
  for (Part& part : model.parts) {
    part.inputs = from.Ports(model.tensors.size());
    part.outputs = from.Ports(model.tensors.size());
  }
  if (model.parts.size() != model.operators.size() + 1) from.Fail();
  if (!from.done()) {
    return Error{Code::kDataLoss,
                 "what the daemon says of the model's custom operators is "
                 "damaged"};
  }
  return model;
}

}  // namespace rknnd::custom
