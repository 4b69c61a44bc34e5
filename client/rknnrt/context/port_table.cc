#include "client/rknnrt/context/port_table.h"

#include <algorithm>
#include <utility>

#include "client/include/rknn_api.h"
#include "client/rknnrt/tensor.h"

namespace rknnd::client {

using base::Expected;

namespace {

bool SameFormat(const TensorAttr& native, const Binding& binding) {
  return native.type == binding.type &&
         (native.layout == binding.layout ||
          // Not 4-D: the order is the model's whatever the layout says.
          native.layout == RKNN_TENSOR_UNDEFINED);
}

// Whether the NPU's first or last layer takes memory in this format as it is.
// The daemon counts by the same rule (daemon/core/contexts/binding_set.cc).
bool IsNative(const ModelDescription& model, Direction direction,
              uint32_t index, const Binding& binding) {
  if (binding.pass_through) return true;
  const bool input = direction == Direction::kInput;
  // Pixels: normalisation and quantisation are part of the first layer.
  if (input && model.inputs[index].dims_count == 4 &&
      binding.type == RKNN_TENSOR_UINT8 && binding.layout == RKNN_TENSOR_NHWC) {
    return true;
  }
  const auto& native = input ? model.native_inputs : model.native_outputs;
  const auto& nhwc =
      input ? model.native_nhwc_inputs : model.native_nhwc_outputs;
  return (index < native.size() && SameFormat(native[index], binding)) ||
         (index < nhwc.size() && SameFormat(nhwc[index], binding));
}

bool IsOfProgram(const Port& port) {
  return port.source == PortSource::kProgram;
}

}  // namespace

PortTable::PortTable(Target& target, uint32_t number,
                     std::shared_ptr<const ModelDescription> shape)
    : target_(target), number_(number), shape_(std::move(shape)) {
  sets_[0].inputs.resize(shape_->inputs.size());
  sets_[0].outputs.resize(shape_->outputs.size());
}

void PortTable::SetShape(std::shared_ptr<const ModelDescription> shape) {
  shape_ = std::move(shape);
  for (PortSet& set : sets_) {
    for (const auto direction : {Direction::kInput, Direction::kOutput}) {
      std::vector<Port>& ports = set.of(direction);
      for (uint32_t i = 0; i < ports.size(); ++i) {
        Port& port = ports[i];
        port.stale = true;
        if (port.source == PortSource::kOwn) port.source = PortSource::kNone;
        port.converted = port.frame ? shape_->inputs[i].elements
                         : IsOfProgram(port)
                             ? ConvertedBytes(direction, i, port.binding)
                             : 0;
      }
    }
  }
}

Port& PortTable::At(uint32_t set, Direction direction, uint32_t index) {
  std::vector<Port>& ports = sets_[set].of(direction);
  if (ports.empty()) ports.resize(sets_[0].of(direction).size());
  return ports[index];
}

const Port& PortTable::Of(uint32_t set, Direction direction,
                          uint32_t index) const {
  const std::vector<Port>& ports = sets_[set].of(direction);
  if (!ports.empty() && ports[index].source != PortSource::kNone) {
    return ports[index];
  }
  return sets_[0].of(direction)[index];
}

std::optional<uint32_t> PortTable::FirstUnbound(uint32_t set,
                                                Direction direction) const {
  for (uint32_t i = 0; i < sets_[0].of(direction).size(); ++i) {
    if (Of(set, direction, i).source == PortSource::kNone) return i;
  }
  return std::nullopt;
}

bool PortTable::IsAllOwn() const {
  return std::none_of(sets_[0].inputs.begin(), sets_[0].inputs.end(),
                      IsOfProgram) &&
         std::none_of(sets_[0].outputs.begin(), sets_[0].outputs.end(),
                      IsOfProgram);
}

Conversions PortTable::ConversionsOf(uint32_t set) const {
  Conversions sums;
  for (uint32_t i = 0; i < inputs(); ++i) {
    sums.in += Of(set, Direction::kInput, i).converted;
  }
  for (uint32_t i = 0; i < outputs(); ++i) {
    sums.out += Of(set, Direction::kOutput, i).converted;
  }
  return sums;
}

Outcome PortTable::Bind(Direction direction, uint32_t index, PortSource source,
                        const Binding& binding) {
  Port& port = At(binding.set, direction, index);
  if (port.source == source && port.binding == binding && !port.stale) {
    return {};
  }
  Expected<void> bound = target_.Bind(number_, direction, index, binding);
  if (!bound.ok()) {
    return Failure{std::move(bound).error(), Subject::kContext};
  }
  port.source = source;
  port.binding = binding;
  port.frame.reset();
  port.stale = false;
  port.converted = ConvertedBytes(direction, index, binding);
  return {};
}

Outcome PortTable::BindOfProgram(Direction direction, uint32_t index,
                                 Binding binding) {
  const uint32_t set = binding.set;
  Outcome bound = Bind(direction, index, PortSource::kProgram, binding);
  if (!bound.ok() || direction == Direction::kOutput) return bound;
  At(set, direction, index).own.reset();
  for (const uint32_t second : kSecondBank) {
    if (set != 0 || !HasOwnInput(second, index)) continue;
    binding.set = second;
    bound = Bind(direction, index, PortSource::kProgram, binding);
    if (!bound.ok()) return bound;
    At(second, direction, index).own.reset();
  }
  return {};
}

Outcome PortTable::BindFrame(uint32_t index, FrameBinding binding) {
  Port& port = sets_[0].inputs[index];
  if (port.frame == binding && !port.stale) return {};
  Expected<void> bound = target_.BindFrame(number_, index, binding);
  if (!bound.ok()) return Failure{std::move(bound).error(), Subject::kContext};
  port = {};
  port.source = PortSource::kProgram;
  port.frame = binding;
  port.converted = shape_->inputs[index].elements;
  for (const uint32_t second : kSecondBank) {
    if (!HasOwnInput(second, index)) continue;
    binding.set = second;
    bound = target_.BindFrame(number_, index, binding);
    if (!bound.ok()) {
      return Failure{std::move(bound).error(), Subject::kContext};
    }
    At(second, Direction::kInput, index) = port;
  }
  return {};
}

void PortTable::Clear() {
  for (Port& port : sets_[0].inputs) port = {};
  for (Port& port : sets_[0].outputs) port = {};
  for (size_t set = 1; set < sets_.size(); ++set) sets_[set] = {};
}

bool PortTable::HasOwnInput(uint32_t set, uint32_t index) const {
  return !sets_[set].inputs.empty() &&
         sets_[set].inputs[index].source == PortSource::kOwn;
}

uint64_t PortTable::ConvertedBytes(Direction direction, uint32_t index,
                                   const Binding& binding) const {
  if (IsNative(*shape_, direction, index, binding)) return 0;
  const std::vector<TensorAttr>& tensors =
      direction == Direction::kInput ? shape_->inputs : shape_->outputs;
  return tensors[index].elements * ElementSize(binding.type);
}

}  // namespace rknnd::client
