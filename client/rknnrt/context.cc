// Called on the program's threads with whatever the program gave: every index,
// size and type is checked here before a byte is copied.

#include "client/rknnrt/context.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "client/rknnrt/tensor.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

namespace {

bool SameShape(const TensorAttr& tensor, const rknn_tensor_attr& attr) {
  return attr.n_dims == tensor.dims_count && attr.n_dims <= RKNN_MAX_DIMS &&
         std::equal(attr.dims, attr.dims + attr.n_dims, tensor.dims);
}

// How much of `attr` agrees with one of the descriptions of a tensor. The
// dims decide; the rest settles what they leave open.
int Likeness(const TensorAttr& tensor, const rknn_tensor_attr& attr) {
  return (SameShape(tensor, attr) ? 16 : 0) +
         (tensor.layout == RawNumber(attr.fmt) ? 4 : 0) +
         (tensor.w_stride == attr.w_stride ? 2 : 0) +
         (tensor.type == RawNumber(attr.type) ? 1 : 0);
}

struct Candidate {
  int likeness = -1;
  TensorMatch match;
  bool index_fits = false;  // that of some tensor of the name
};

void Consider(const std::vector<TensorAttr>& tensors, Direction direction,
              const rknn_tensor_attr& attr, Candidate* best) {
  const std::string_view name(attr.name, strnlen(attr.name, sizeof attr.name));
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    if (name != tensors[i].name) continue;
    const int likeness =
        2 * Likeness(tensors[i], attr) + (attr.index == i ? 1 : 0);
    best->index_fits = best->index_fits || attr.index == i;
    if (likeness <= best->likeness) continue;
    best->likeness = likeness;
    best->match = {direction, i};
  }
}

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

}  // namespace

Expected<TensorMatch> MatchTensor(const ModelDescription& model,
                                  const rknn_tensor_attr& attr) {
  Candidate best;
  Consider(model.inputs, Direction::kInput, attr, &best);
  Consider(model.native_inputs, Direction::kInput, attr, &best);
  Consider(model.native_nhwc_inputs, Direction::kInput, attr, &best);
  Consider(model.outputs, Direction::kOutput, attr, &best);
  Consider(model.native_outputs, Direction::kOutput, attr, &best);
  Consider(model.native_nhwc_outputs, Direction::kOutput, attr, &best);
  if (best.likeness >= 0 && !best.index_fits) {
    return Error{
        Code::kInvalidArgument,
        "index " + std::to_string(attr.index) + " does not go with '" +
            std::string(attr.name, strnlen(attr.name, sizeof attr.name)) +
            "', which is " +
            (best.match.direction == Direction::kInput ? "input " : "output ") +
            std::to_string(best.match.index) +
            ": pass an attribute that rknn_query has filled"};
  }
  if (best.likeness >= 0) return best.match;
  std::string names;
  for (const auto* tensors : {&model.inputs, &model.outputs}) {
    for (const TensorAttr& tensor : *tensors) {
      names += names.empty() ? "'" : ", '";
      names += std::string(tensor.name) + "'";
    }
  }
  return Error{
      Code::kInvalidArgument,
      "the model has no input or output named '" +
          std::string(attr.name, strnlen(attr.name, sizeof attr.name)) +
          "', only " + names +
          ": pass an attribute that rknn_query has filled"};
}

Context::Context(uint32_t number, uint32_t flags,
                 std::shared_ptr<Target> target,
                 std::shared_ptr<const ModelDescription> model)
    : number_(number),
      flags_(flags),
      target_(std::move(target)),
      model_(std::move(model)),
      limits_(target_->info().limits) {
  const base::MutexLock lock(mutex_);
  shape_ = model_;
  shape_chosen_ = model_->shapes.empty();
  inputs_.resize(model_->inputs.size());
  outputs_.resize(model_->outputs.size());
}

Expected<void> Context::Destroy() {
  {
    const base::MutexLock lock(mutex_);
    destroyed_ = true;
  }
  Expected<void> done = target_->DestroyContext(number_);
  const base::MutexLock lock(mutex_);
  for (void* result : results_) free(result);  // NOLINT: made by malloc
  results_.clear();
  // Later runs of threads that still hold this context find nothing bound.
  runnable_ = false;
  for (Port& port : inputs_) port = {};
  for (Port& port : outputs_) port = {};
  for (PortSet& set : sets_) set = {};
  output_memory_.reset();
  second_output_memory_.reset();
  return done;
}

Outcome Context::BindPort(Direction direction, uint32_t index, Source source,
                          const Binding& binding) {
  Port& port = PortAt(binding.set, direction, index);
  if (port.source == source && port.binding == binding && !port.stale) {
    return {};
  }
  Expected<void> bound = target_->Bind(number_, direction, index, binding);
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

uint64_t Context::ConvertedBytes(Direction direction, uint32_t index,
                                 const Binding& binding) const {
  if (IsNative(*shape_, direction, index, binding)) return 0;
  const std::vector<TensorAttr>& tensors =
      direction == Direction::kInput ? shape_->inputs : shape_->outputs;
  return tensors[index].elements * ElementSize(binding.type);
}

Outcome Context::CheckLimit(rknnd_v1_DeviceLimit limit, const char* has) const {
  if ((limits_ & static_cast<uint32_t>(limit)) == 0) return {};
  return Fail(Code::kUnimplemented, target_->info().soc + " " + has,
              Subject::kContext);
}

ModelOrigin Context::origin() const {
  const base::MutexLock lock(mutex_);
  return origin_;
}

void Context::set_origin(const ModelOrigin& origin) {
  const base::MutexLock lock(mutex_);
  origin_ = origin;
}

std::optional<rknn_tensor_mem> Context::ModelMemory() const {
  const base::MutexLock lock(mutex_);
  if (const auto weights = weight_memory_.lock()) return weights->api;
  return origin_.memory;
}

Expected<MemoryRange> Context::RangeOf(const Buffer& memory) const {
  if (memory.target() == target_.get()) {
    return MemoryRange{memory.number(), memory.offset(), memory.size()};
  }
  return Error{Code::kInvalidArgument,
               "this memory was made for another connection to the NPU"};
}

Outcome Context::SetInternalMemory(const Buffer& memory) {
  const Expected<MemoryRange> range = RangeOf(memory);
  if (!range.ok()) return Failure{range.error(), Subject::kNone};
  Expected<void> set = target_->SetInternalMemory(number_, *range);
  if (!set.ok()) return Failure{std::move(set).error(), Subject::kContext};
  return {};
}

Outcome Context::SetWeightMemory(
    const std::shared_ptr<const TensorMemory>& memory) {
  const Expected<MemoryRange> range = RangeOf(*memory->buffer);
  if (!range.ok()) return Failure{range.error(), Subject::kNone};
  Expected<void> set = target_->SetWeightMemory(number_, *range);
  if (!set.ok()) return Failure{std::move(set).error(), Subject::kContext};
  const base::MutexLock lock(mutex_);
  weight_memory_ = memory;
  return {};
}

Context::Port& Context::PortAt(uint32_t set, Direction direction,
                               uint32_t index) {
  const bool input = direction == Direction::kInput;
  if (set == 0) return input ? inputs_[index] : outputs_[index];
  std::vector<Port>& ports = input ? sets_[set].inputs : sets_[set].outputs;
  if (ports.empty()) ports.resize(input ? inputs_.size() : outputs_.size());
  return ports[index];
}

const Context::Port& Context::PortOf(uint32_t set, Direction direction,
                                     uint32_t index) const {
  const bool input = direction == Direction::kInput;
  const std::vector<Port>& ports =
      input ? sets_[set].inputs : sets_[set].outputs;
  if (set != 0 && !ports.empty() && ports[index].source != Source::kNone) {
    return ports[index];
  }
  return input ? inputs_[index] : outputs_[index];
}

Outcome Context::BindMemory(const Buffer& memory, const rknn_tensor_attr& attr,
                            uint32_t set) {
  if (const Expected<MemoryRange> range = RangeOf(memory); !range.ok()) {
    return Failure{range.error(), Subject::kNone};
  }
  if (Outcome checked = CheckSet(set); !checked.ok()) return checked;
  const base::MutexLock lock(mutex_);
  Expected<TensorMatch> match = MatchTensor(*shape_, attr);
  if (!match.ok()) return Failure{std::move(match).error(), Subject::kNone};
  if (match->direction == Direction::kOutput &&
      attr.type == RKNN_TENSOR_FLOAT32) {
    if (Outcome allowed =
            CheckLimit(rknnd_v1_DeviceLimit_LIMIT_NO_FLOAT32_OUTPUTS,
                       "has no float32 outputs (type 0): set type to "
                       "RKNN_TENSOR_INT8 or RKNN_TENSOR_FLOAT16");
        !allowed.ok()) {
      return allowed;
    }
  }
  Binding binding;
  binding.buffer = memory.number();
  binding.offset = memory.offset();
  binding.size = memory.size();
  binding.type = RawNumber(attr.type);
  binding.layout = RawNumber(attr.fmt);
  binding.pass_through = attr.pass_through != 0;
  binding.w_stride = attr.w_stride;
  binding.h_stride = attr.h_stride;
  binding.set = set;
  if (!model_->shapes.empty() && match->direction == Direction::kInput &&
      !binding.pass_through &&
      (attr.w_stride == shape_->inputs[match->index].w_stride ||
       attr.w_stride == model_->inputs[match->index].w_stride)) {
    // What a query said, now or of the largest shape: no padding is meant, and
    // none is there when the shape changes.
    binding.w_stride = 0;
  }
  Outcome bound =
      BindPort(match->direction, match->index, Source::kProgram, binding);
  if (!bound.ok() || match->direction == Direction::kOutput) return bound;
  PortAt(set, Direction::kInput, match->index).own.reset();
  // The banks' own are over, too.
  for (const uint32_t bank : kSecondBank) {
    if (set != 0 || !HasOwn(bank, match->index)) continue;
    binding.set = bank;
    bound =
        BindPort(Direction::kInput, match->index, Source::kProgram, binding);
    if (!bound.ok()) return bound;
    PortAt(bank, Direction::kInput, match->index).own.reset();
  }
  return {};
}

std::span<char> Context::PerfText() {
  // Nothing, as on the board: programs print what they get.
  const bool none =
      !CheckLimit(rknnd_v1_DeviceLimit_LIMIT_NO_LAYER_TIMES, "").ok();
  Expected<std::string> text =
      none ? std::string() : target_->PerfDetail(number_);
  const base::MutexLock lock(mutex_);
  // Programs take any failure here for the end of the world.
  perf_text_ = text.ok() ? *std::move(text)
                         : "no per-layer times: " + text.error().message + "\n";
  return perf_text_;
}

}  // namespace rknnd::client
