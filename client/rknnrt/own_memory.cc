// The library's own memory of a context's tensors, and with
// RKNN_FLAG_ASYNC_MASK its two banks on each side (context.h): what a run on
// its way reads is never written. Called on the program's threads, with the
// context's lock.

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/rknnrt/context.h"

namespace rknnd::client {

using base::Expected;

uint32_t Context::NextBank(uint64_t* reader) {
  CountEnded();
  std::array<uint64_t, 2> readers = {0, 0};
  for (const Started& started : started_) {
    if (!started.counted) readers[started.in_bank] = started.serial;
  }
  const uint32_t bank =
      readers[in_bank_] != 0 && IsAsync() ? in_bank_ ^ 1 : in_bank_;
  *reader = readers[bank];
  return bank;
}

Outcome Context::BindBank(uint32_t bank, uint32_t input, Binding binding) {
  binding.set = bank;
  if (Outcome bound = BindPort(Direction::kInput, input, Source::kOwn, binding);
      !bound.ok()) {
    return bound;
  }
  if (bank == 0) return {};
  binding.set = bank + 2;
  return BindPort(Direction::kInput, input, Source::kOwn, binding);
}

Outcome Context::ApplyInput(const InputPlan& plan, uint32_t bank) {
  Port& port = PortAt(bank, Direction::kInput, plan.index);
  std::shared_ptr<Buffer> memory = port.own;
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
  if (Outcome bound = BindBank(bank, plan.index, binding); !bound.ok()) {
    return Failure{bound.failure().error, Subject::kInput};
  }
  PortAt(bank, Direction::kInput, plan.index).own = std::move(memory);
  return {};
}

Outcome Context::CarryOver(std::span<const InputPlan> plans, uint32_t bank) {
  if (bank == in_bank_) return {};
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    const bool given =
        std::any_of(plans.begin(), plans.end(),
                    [i](const InputPlan& plan) { return plan.index == i; });
    const Port& from = PortOf(in_bank_, Direction::kInput, i);
    if (given || from.source != Source::kOwn || from.own == nullptr) continue;
    // As if the program had given it again.
    const std::shared_ptr<Buffer> memory = from.own;
    InputPlan again;
    again.index = i;
    again.format = from.binding;
    again.bytes = memory->bytes().data();
    again.size = from.binding.size;
    memory->BeginCpuAccess(CpuAccess::kRead);
    Outcome applied = ApplyInput(again, bank);
    memory->EndCpuAccess(CpuAccess::kRead);
    if (!applied.ok()) return applied;
  }
  return {};
}

Outcome Context::BindSecondOutputs() {
  if (second_output_memory_ == nullptr ||
      second_output_memory_->size() < output_memory_->size()) {
    Expected<std::unique_ptr<Buffer>> made = Buffer::Allocate(
        target_, output_memory_->size(), RKNN_FLAG_MEMORY_FLAGS_DEFAULT);
    if (!made.ok()) return Failure{std::move(made).error(), Subject::kNone};
    second_output_memory_ = *std::move(made);
  }
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    // Laid out as the first.
    Binding binding = outputs_[i].binding;
    binding.buffer = second_output_memory_->number();
    for (const uint32_t set : {2U, 3U}) {
      binding.set = set;
      if (Outcome done = BindPort(Direction::kOutput, i, Source::kOwn, binding);
          !done.ok()) {
        return done;
      }
      PortAt(set, Direction::kOutput, i).own = second_output_memory_;
    }
  }
  return {};
}

}  // namespace rknnd::client
