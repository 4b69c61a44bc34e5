// Called on the program's threads with whatever the program gave: every index,
// size and type is checked here before a byte is copied.

#include "client/rknnrt/context/own_memory.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/values/overflow.h"
#include "client/rknnrt/tensor.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

namespace {

// Where each output starts in the memory they share: cache lines of their own.
constexpr uint64_t kOutputAlignment = 64;

// The program's word for a layout, where the tensor has one to choose: one that
// is not 4-D comes in its own axis order whatever `fmt` says.
uint32_t BufferLayout(const TensorAttr& attr, uint32_t fmt) {
  return attr.layout == RKNN_TENSOR_UNDEFINED || fmt == RKNN_TENSOR_UNDEFINED
             ? attr.layout
             : fmt;
}

}  // namespace

Expected<InputPlan> PlanInput(const ModelDescription& model,
                              const rknn_input& input) {
  if (input.index >= model.inputs.size()) {
    return Error{Code::kOutOfRange,
                 NoSuchTensor("input", input.index, model.inputs.size())};
  }
  const TensorAttr& attr = model.inputs[input.index];
  const std::string name = std::string("input '") + attr.name + "'";
  if (input.buf == nullptr) {
    return Error{Code::kInvalidArgument, name + ": buf is NULL"};
  }
  const auto type = RawNumber(input.type);
  const bool pass_through = input.pass_through != 0;
  InputPlan plan;
  plan.index = input.index;
  plan.bytes = input.buf;
  plan.format.pass_through = pass_through;
  plan.format.type = type;
  plan.format.layout = BufferLayout(attr, RawNumber(input.fmt));
  if (pass_through && input.index < model.native_inputs.size()) {
    const TensorAttr& native = model.native_inputs[input.index];
    plan.format.layout = native.layout;
    plan.format.w_stride = native.w_stride;  // rows lie as it says
    plan.size = std::max(native.size, native.size_with_stride);
  } else {
    const auto size = base::CheckedMultiply(attr.elements, ElementSize(type));
    if (ElementSize(type) == 0 || !size) {
      return Error{Code::kInvalidArgument,
                   name + ": type " + std::to_string(type) +
                       " cannot be given to rknn_inputs_set"};
    }
    plan.size = *size;
  }
  if (pass_through) {
    if (input.size >= plan.size) return plan;
    return Error{Code::kInvalidArgument,
                 name + ": " + std::to_string(input.size) + " bytes given, " +
                     std::to_string(plan.size) +
                     " needed with pass_through (size_with_stride of "
                     "RKNN_QUERY_NATIVE_INPUT_ATTR)"};
  }
  Expected<void> fits = CheckInputSize(attr, type, input.size, plan.size);
  if (!fits.ok()) return std::move(fits).error();
  return plan;
}

uint32_t OwnMemory::NextBank(const std::array<uint64_t, 2>& readers,
                             bool async) const {
  return readers[in_bank_] != 0 && async ? in_bank_ ^ 1 : in_bank_;
}

Outcome OwnMemory::BindInput(uint32_t bank, uint32_t input, Binding binding) {
  binding.set = bank;
  Outcome bound =
      ports_.Bind(Direction::kInput, input, PortSource::kOwn, binding);
  if (!bound.ok() || bank == 0) return bound;
  binding.set = bank + 2;
  return ports_.Bind(Direction::kInput, input, PortSource::kOwn, binding);
}

Outcome OwnMemory::WriteInput(const InputPlan& plan, uint32_t bank) {
  std::shared_ptr<Buffer> memory =
      ports_.At(bank, Direction::kInput, plan.index).own;
  if (memory == nullptr || memory->size() < plan.size) {
    Expected<std::unique_ptr<Buffer>> made =
        Buffer::Allocate(target_, plan.size, RKNN_FLAG_MEMORY_FLAGS_DEFAULT);
    if (!made.ok()) return Failure{std::move(made).error(), Subject::kNone};
    memory = *std::move(made);
  }
  Binding binding = plan.format;
  binding.buffer = memory->number();
  binding.size = memory->size();
  memory->BeginCpuAccess(CpuAccess::kWrite);
  std::memcpy(memory->bytes().data(), plan.bytes,
              static_cast<size_t>(plan.size));
  memory->EndCpuAccess(CpuAccess::kWrite);
  copies_.to_device_inputs_set.fetch_add(plan.size, std::memory_order_relaxed);
  if (Outcome bound = BindInput(bank, plan.index, binding); !bound.ok()) {
    return Failure{bound.failure().error, Subject::kInput};
  }
  ports_.At(bank, Direction::kInput, plan.index).own = std::move(memory);
  return {};
}

Outcome OwnMemory::WriteInputs(std::span<const InputPlan> plans,
                               uint32_t bank) {
  for (uint32_t i = 0; bank != in_bank_ && i < ports_.inputs(); ++i) {
    const bool given =
        std::any_of(plans.begin(), plans.end(),
                    [i](const InputPlan& plan) { return plan.index == i; });
    const Port& from = ports_.Of(in_bank_, Direction::kInput, i);
    if (given || from.source != PortSource::kOwn || from.own == nullptr) {
      continue;
    }
    // As if the program had given it again.
    const std::shared_ptr<Buffer> memory = from.own;
    InputPlan again;
    again.index = i;
    again.format = from.binding;
    again.bytes = memory->bytes().data();
    again.size = from.binding.size;
    memory->BeginCpuAccess(CpuAccess::kRead);
    Outcome written = WriteInput(again, bank);
    memory->EndCpuAccess(CpuAccess::kRead);
    if (!written.ok()) return written;
  }
  for (const InputPlan& plan : plans) {
    if (Outcome written = WriteInput(plan, bank); !written.ok()) return written;
  }
  in_bank_ = bank;
  return {};
}

Outcome OwnMemory::BindOutputs() {
  uint64_t total = 0;
  bool shared = false;  // some output lies in the memory that there is
  std::vector<uint64_t> offsets(ports_.outputs());
  for (uint32_t i = 0; i < ports_.outputs(); ++i) {
    const PortSource source = ports_.At(0, Direction::kOutput, i).source;
    shared = shared || source == PortSource::kOwn;
    if (source != PortSource::kNone) continue;
    const TensorAttr& attr = ports_.shape().outputs[i];
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
  std::shared_ptr<Buffer>& memory = output_memory_[0];
  if (shared || memory == nullptr || memory->size() < total) {
    Expected<std::unique_ptr<Buffer>> made =
        Buffer::Allocate(target_, total, RKNN_FLAG_MEMORY_FLAGS_DEFAULT);
    if (!made.ok()) return Failure{std::move(made).error(), Subject::kNone};
    memory = *std::move(made);
  }
  for (uint32_t i = 0; i < ports_.outputs(); ++i) {
    if (ports_.At(0, Direction::kOutput, i).source != PortSource::kNone) {
      continue;
    }
    const TensorAttr& attr = ports_.shape().outputs[i];
    Binding binding;
    binding.buffer = memory->number();
    binding.offset = offsets[i];
    binding.type = InternalOutputType(attr);
    binding.size = attr.elements * ElementSize(binding.type);
    binding.layout = attr.layout;
    if (Outcome done =
            ports_.Bind(Direction::kOutput, i, PortSource::kOwn, binding);
        !done.ok()) {
      return done;
    }
    ports_.At(0, Direction::kOutput, i).own = memory;
  }
  return {};
}

Outcome OwnMemory::TurnOutputs() {
  if (out_bank_ == 1) {
    out_bank_ = 0;
    return {};
  }
  const std::shared_ptr<Buffer>& first = output_memory_[0];
  std::shared_ptr<Buffer>& second = output_memory_[1];
  if (second == nullptr || second->size() < first->size()) {
    Expected<std::unique_ptr<Buffer>> made = Buffer::Allocate(
        target_, first->size(), RKNN_FLAG_MEMORY_FLAGS_DEFAULT);
    if (!made.ok()) return Failure{std::move(made).error(), Subject::kNone};
    second = *std::move(made);
  }
  for (uint32_t i = 0; i < ports_.outputs(); ++i) {
    // Laid out as the first.
    Binding binding = ports_.At(0, Direction::kOutput, i).binding;
    binding.buffer = second->number();
    for (const uint32_t set : {2U, 3U}) {
      binding.set = set;
      if (Outcome done =
              ports_.Bind(Direction::kOutput, i, PortSource::kOwn, binding);
          !done.ok()) {
        return done;
      }
      ports_.At(set, Direction::kOutput, i).own = second;
    }
  }
  out_bank_ = 1;
  return {};
}

void OwnMemory::Clear() {
  for (std::shared_ptr<Buffer>& memory : output_memory_) memory.reset();
}

}  // namespace rknnd::client
