// The copying half of Context: rknn_inputs_set, rknn_outputs_get and
// rknn_outputs_release. Called on the program's threads.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "base/posix/overflow.h"
#include "client/rknnrt/context.h"
#include "client/rknnrt/tensor.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

namespace {

// Where each output starts in the memory they share: cache lines of their own.
constexpr uint64_t kOutputAlignment = 64;
// What SoCs without this path have.
constexpr char kZeroCopyOnly[] =
    "supports rknn_set_io_mem only: bind memory to all inputs and outputs";

std::string OutOfRange(const char* what, uint32_t index, size_t count) {
  return std::string(what) + " index " + std::to_string(index) +
         " does not exist: the model has " + std::to_string(count);
}

// The program's word for a layout, where the tensor has one to choose: one that
// is not 4-D comes in its own axis order whatever `fmt` says.
uint32_t BufferLayout(const TensorAttr& attr, uint32_t fmt) {
  return attr.layout == RKNN_TENSOR_UNDEFINED || fmt == RKNN_TENSOR_UNDEFINED
             ? attr.layout
             : fmt;
}

}  // namespace

Outcome Context::PlanInput(const ModelDescription& model,
                           const rknn_input& input, InputPlan* plan) {
  if (input.index >= model.inputs.size()) {
    return Fail(Code::kOutOfRange,
                OutOfRange("input", input.index, model.inputs.size()),
                Subject::kInput);
  }
  const TensorAttr& attr = model.inputs[input.index];
  const std::string name = std::string("input '") + attr.name + "'";
  if (input.buf == nullptr) {
    return Fail(Code::kInvalidArgument, name + ": buf is NULL",
                Subject::kInput);
  }
  const auto type = RawNumber(input.type);
  const bool pass_through = input.pass_through != 0;
  plan->index = input.index;
  plan->bytes = input.buf;
  plan->format.pass_through = pass_through;
  plan->format.type = type;
  plan->format.layout = BufferLayout(attr, RawNumber(input.fmt));
  if (pass_through && input.index < model.native_inputs.size()) {
    const TensorAttr& native = model.native_inputs[input.index];
    plan->format.layout = native.layout;
    plan->format.w_stride = native.w_stride;  // rows lie as it says
    plan->size = std::max(native.size, native.size_with_stride);
  } else {
    const auto size = base::CheckedMultiply(attr.elements, ElementSize(type));
    if (ElementSize(type) == 0 || !size) {
      return Fail(Code::kInvalidArgument,
                  name + ": type " + std::to_string(type) +
                      " cannot be given to rknn_inputs_set",
                  Subject::kInput);
    }
    plan->size = *size;
  }
  if (pass_through) {
    if (input.size >= plan->size) return {};
    return Fail(Code::kInvalidArgument,
                name + ": " + std::to_string(input.size) + " bytes given, " +
                    std::to_string(plan->size) +
                    " needed with pass_through (size_with_stride of "
                    "RKNN_QUERY_NATIVE_INPUT_ATTR)",
                Subject::kInput);
  }
  Expected<void> fits = CheckInputSize(attr, type, input.size, plan->size);
  if (!fits.ok()) return Failure{std::move(fits).error(), Subject::kInput};
  return {};
}

void Context::ReportCopies() {
  // Another thread's call may end after rknn_destroy; what the target keeps for
  // a context it no longer has would stay.
  if (destroyed_) return;
  target_->ReportCopies(
      number_, copies_.to_device_inputs_set.load(std::memory_order_relaxed),
      copies_.from_device_outputs_get.load(std::memory_order_relaxed));
}

Outcome Context::SetInputs(std::span<const rknn_input> inputs) {
  if (Outcome allowed =
          CheckLimit(rknnd_v1_DeviceLimit_LIMIT_ZERO_COPY_ONLY, kZeroCopyOnly);
      !allowed.ok()) {
    return allowed;
  }
  if (inputs.empty() || inputs.size() > model_->inputs.size()) {
    return Fail(Code::kInvalidArgument,
                "n_inputs is " + std::to_string(inputs.size()) +
                    ", the model has " + std::to_string(model_->inputs.size()),
                Subject::kInput);
  }
  for (;;) {
    uint64_t reader = 0;
    {
      const base::MutexLock lock(mutex_);
      if (!shape_chosen_) return NoShape();
      // All is checked before anything is copied: a failed call changes
      // nothing.
      std::vector<InputPlan> plans(inputs.size());
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (Outcome checked = PlanInput(*shape_, inputs[i], &plans[i]);
            !checked.ok()) {
          return checked;
        }
      }
      const uint32_t bank = NextBank(&reader);
      if (reader == 0) {
        Outcome applied = CarryOver(plans, bank);
        for (size_t i = 0; i < plans.size() && applied.ok(); ++i) {
          applied = ApplyInput(plans[i], bank);
        }
        if (applied.ok()) in_bank_ = bank;
        ReportCopies();
        return applied;
      }
    }
    // Its memory is being read.
    AwaitRuns(reader);
  }
}

Outcome Context::BindOwnOutputs() {
  uint64_t total = 0;
  std::vector<uint64_t> offsets(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].source != Source::kNone) continue;
    if (Outcome allowed = CheckLimit(rknnd_v1_DeviceLimit_LIMIT_ZERO_COPY_ONLY,
                                     kZeroCopyOnly);
        !allowed.ok()) {
      return allowed;
    }
    const TensorAttr& attr = shape_->outputs[i];
    const uint64_t element = ElementSize(InternalOutputType(attr));
    const auto size = base::CheckedMultiply(attr.elements, element);
    const auto start = base::CheckedAlignUp(total, kOutputAlignment);
    const auto end =
        size && start ? base::CheckedAdd(*start, *size) : std::nullopt;
    if (element == 0 || !end) {
      return Fail(Code::kFailedPrecondition,
                  std::string("output '") + attr.name +
                      "' has no memory: bind some with rknn_set_io_mem",
                  Subject::kOutput);
    }
    offsets[i] = *start;
    total = *end;
  }
  if (total == 0) return {};
  // After a change of shape there is memory already, with nothing in it.
  const bool shared =
      std::any_of(outputs_.begin(), outputs_.end(),
                  [](const Port& port) { return port.source == Source::kOwn; });
  if (shared || output_memory_ == nullptr || output_memory_->size() < total) {
    Expected<std::unique_ptr<Buffer>> made =
        Buffer::Allocate(target_, total, RKNN_FLAG_MEMORY_FLAGS_DEFAULT);
    if (!made.ok()) return Failure{std::move(made).error(), Subject::kNone};
    output_memory_ = *std::move(made);
  }
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].source != Source::kNone) continue;
    const TensorAttr& attr = shape_->outputs[i];
    Binding binding;
    binding.buffer = output_memory_->number();
    binding.offset = offsets[i];
    binding.type = InternalOutputType(attr);
    binding.size = attr.elements * ElementSize(binding.type);
    binding.layout = attr.layout;
    if (Outcome done = BindPort(Direction::kOutput, i, Source::kOwn, binding);
        !done.ok()) {
      return done;
    }
    outputs_[i].own = output_memory_;
  }
  return {};
}

Expected<std::vector<uint32_t>> ResolveOutputs(
    std::span<const rknn_output> outputs, size_t model_outputs) {
  if (outputs.empty() || outputs.size() > model_outputs) {
    return Error{Code::kInvalidArgument,
                 "n_outputs is " + std::to_string(outputs.size()) +
                     ", the model has " + std::to_string(model_outputs)};
  }
  const bool by_position =
      outputs.size() > 1 &&
      std::all_of(outputs.begin(), outputs.end(),
                  [](const rknn_output& output) { return output.index == 0; });
  std::vector<uint32_t> indices(outputs.size());
  std::vector<bool> taken(model_outputs);
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const uint32_t index = by_position ? i : outputs[i].index;
    if (index >= model_outputs) {
      return Error{Code::kOutOfRange,
                   OutOfRange("output", index, model_outputs)};
    }
    if (taken[index]) {
      return Error{Code::kInvalidArgument,
                   "output index " + std::to_string(index) +
                       " is asked for twice: set each entry's index"};
    }
    taken[index] = true;
    indices[i] = index;
  }
  return indices;
}

Outcome Context::GetOutput(uint32_t index, uint32_t set, rknn_output* output) {
  const TensorAttr& attr = shape_->outputs[index];
  const std::string name = std::string("output '") + attr.name + "'";
  const Port& port = PortOf(set, Direction::kOutput, index);
  if (port.source != Source::kOwn || port.own == nullptr) {
    return Fail(Code::kFailedPrecondition,
                name +
                    " is in memory that rknn_set_io_mem bound: read it "
                    "there, after rknn_mem_sync where needed",
                Subject::kOutput);
  }
  const bool want_float = output->want_float != 0;
  Expected<uint64_t> needed = OutputSize(attr, want_float);
  if (!needed.ok()) {
    return Failure{std::move(needed).error(), Subject::kOutput};
  }
  const size_t size = static_cast<size_t>(*needed);
  if (output->is_prealloc != 0) {
    if (output->buf == nullptr || output->size < size) {
      return Fail(Code::kInvalidArgument,
                  name + ": is_prealloc is set, so buf needs " +
                      std::to_string(size) + " bytes and has " +
                      std::to_string(output->buf == nullptr ? 0 : output->size),
                  Subject::kOutput);
    }
  } else {
    // Room in the list first: what malloc gives is then never lost.
    results_.reserve(results_.size() + 1);
    output->buf = malloc(std::max<size_t>(size, 1));  // NOLINT: C's to free
    if (output->buf == nullptr) {
      return Fail(Code::kResourceExhausted,
                  name + ": no memory for " + std::to_string(size) + " bytes",
                  Subject::kNone);
    }
    results_.push_back(output->buf);
  }
  const std::span<std::byte> from =
      port.own->bytes().subspan(static_cast<size_t>(port.binding.offset),
                                static_cast<size_t>(port.binding.size));
  ConvertOutput(attr, want_float, from,
                std::span(static_cast<std::byte*>(output->buf), size));
  output->size = static_cast<uint32_t>(size);
  output->index = index;
  copies_.from_device_outputs_get.fetch_add(size, std::memory_order_relaxed);
  return {};
}

Outcome Context::GetOutputs(std::span<rknn_output> outputs,
                            rknn_output_extend* extend) {
  if (Outcome allowed =
          CheckLimit(rknnd_v1_DeviceLimit_LIMIT_ZERO_COPY_ONLY, kZeroCopyOnly);
      !allowed.ok()) {
    return allowed;
  }
  Expected<std::vector<uint32_t>> indices =
      ResolveOutputs(outputs, model_->outputs.size());
  if (!indices.ok()) {
    return Failure{std::move(indices).error(), Subject::kOutput};
  }
  Started shown;
  if (Outcome ended = AwaitOutputs(&shown); !ended.ok()) return ended;
  Outcome given;
  size_t done = 0;
  {
    const base::MutexLock lock(mutex_);
    if (shown.serial <= shape_run_) {
      return Fail(Code::kFailedPrecondition,
                  shown.serial == 0
                      ? "there are no outputs yet: call rknn_run first"
                      : "there are no outputs of the shape that was chosen "
                        "since: call rknn_run first",
                  Subject::kContext);
    }
    // What they hold on entry means nothing, and must not be freed below.
    for (rknn_output& output : outputs) {
      if (output.is_prealloc == 0) output.buf = nullptr;
    }
    const bool second = shown.out_bank != 0;
    const std::shared_ptr<Buffer> memory =
        second ? second_output_memory_ : output_memory_;
    if (memory != nullptr) memory->BeginCpuAccess(CpuAccess::kRead);
    for (; done < outputs.size() && given.ok(); ++done) {
      given = GetOutput((*indices)[done], second ? 2 : 0, &outputs[done]);
    }
    if (memory != nullptr) memory->EndCpuAccess(CpuAccess::kRead);
    if (given.ok() && extend != nullptr) extend->frame_id = shown.frame;
    ReportCopies();
  }
  if (!given.ok()) ReleaseOutputs(outputs);
  return given;
}

void Context::ReleaseOutputs(std::span<rknn_output> outputs) {
  const base::MutexLock lock(mutex_);
  for (rknn_output& output : outputs) {
    if (output.is_prealloc != 0 || output.buf == nullptr) continue;
    const auto result = std::find(results_.begin(), results_.end(), output.buf);
    if (result == results_.end()) continue;
    free(*result);  // NOLINT: made by malloc
    results_.erase(result);
    output.buf = nullptr;
  }
}

}  // namespace rknnd::client
