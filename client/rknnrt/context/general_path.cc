// The copying half of Context: rknn_inputs_set, rknn_outputs_get and
// rknn_outputs_release. Called on the program's threads.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "client/rknnrt/context/context.h"
#include "client/rknnrt/context/match_tensor.h"
#include "client/rknnrt/tensor.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

Outcome Context::CheckGeneralPath() const {
  return CheckLimit(
      rknnd_v1_DeviceLimit_LIMIT_ZERO_COPY_ONLY,
      "supports rknn_set_io_mem only: bind memory to all inputs and outputs");
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
  if (Outcome allowed = CheckGeneralPath(); !allowed.ok()) return allowed;
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
      std::vector<InputPlan> plans;
      plans.reserve(inputs.size());
      for (const rknn_input& input : inputs) {
        Expected<InputPlan> plan = PlanInput(ports_.shape(), input);
        if (!plan.ok()) {
          return Failure{std::move(plan).error(), Subject::kInput};
        }
        plans.push_back(*plan);
      }
      record_.CountEnded();
      const std::array<uint64_t, 2> readers = record_.Readers();
      const uint32_t bank = own_.NextBank(readers, IsAsync());
      reader = readers[bank];
      if (reader == 0) {
        Outcome written = own_.WriteInputs(plans, bank);
        ReportCopies();
        return written;
      }
    }
    // Its memory is being read.
    AwaitRuns(reader);
  }
}

Outcome Context::GetOutput(uint32_t index, uint32_t set, rknn_output* output) {
  const TensorAttr& attr = ports_.shape().outputs[index];
  const std::string name = std::string("output '") + attr.name + "'";
  const Port& port = ports_.Of(set, Direction::kOutput, index);
  if (port.source != PortSource::kOwn || port.own == nullptr) {
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
  if (Outcome allowed = CheckGeneralPath(); !allowed.ok()) return allowed;
  Expected<std::vector<uint32_t>> indices =
      ResolveOutputs(outputs, model_->outputs.size());
  if (!indices.ok()) {
    return Failure{std::move(indices).error(), Subject::kOutput};
  }
  RecordedRun shown;
  if (Outcome ended = AwaitOutputs(&shown); !ended.ok()) return ended;
  Outcome given;
  size_t done = 0;
  {
    const base::MutexLock lock(mutex_);
    if (!record_.HasOutputs(shown.serial)) {
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
    const std::shared_ptr<Buffer> memory = own_.outputs(shown.out_bank);
    if (memory != nullptr) memory->BeginCpuAccess(CpuAccess::kRead);
    for (; done < outputs.size() && given.ok(); ++done) {
      given = GetOutput((*indices)[done], 2U * shown.out_bank, &outputs[done]);
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
