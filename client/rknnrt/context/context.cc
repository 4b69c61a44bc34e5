// Called on the program's threads with whatever the program gave: every index,
// size and type is checked here before a byte is copied.

#include "client/rknnrt/context/context.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "client/rknnrt/context/match_tensor.h"
#include "client/rknnrt/custom/custom_operators.h"
#include "client/rknnrt/tensor.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

Context::Context(uint32_t number, uint32_t flags,
                 std::shared_ptr<Target> target,
                 std::shared_ptr<const ModelDescription> model)
    : number_(number),
      flags_(flags),
      target_(std::move(target)),
      model_(std::move(model)),
      limits_(target_->info().limits),
      layer_tables_(*target_, number_),
      ports_(*target_, number_, model_),
      own_(target_, ports_, copies_),
      record_(*target_, copies_),
      shape_chosen_(model_->shapes.empty()) {}

Expected<void> Context::Destroy() {
  const std::shared_ptr<CustomOperators> custom = this->custom();
  if (custom != nullptr) custom->End();
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
  ports_.Clear();
  own_.Clear();
  return done;
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

std::shared_ptr<CustomOperators> Context::custom() const {
  const base::MutexLock lock(mutex_);
  return custom_;
}

Expected<std::shared_ptr<Context>> Context::Become(
    const std::shared_ptr<ModelSource>& whole,
    std::shared_ptr<CustomOperators> custom) {
  // The target has just loaded it.
  if (Expected<void> gone = target_->DestroyContext(number_); !gone.ok()) {
    return std::move(gone).error();
  }
  ContextRequest request;
  request.number = number_;
  request.flags = flags_;
  auto model = target_->CreateContext(request, whole);
  if (!model.ok()) return std::move(model).error();
  auto context =
      std::make_shared<Context>(number_, flags_, target_, *std::move(model));
  context->set_origin(origin());
  context->set_attr_size(attr_size());
  const base::MutexLock lock(context->mutex_);
  context->custom_ = std::move(custom);
  return context;
}

std::shared_ptr<Matmul> Context::matmul() const {
  const base::MutexLock lock(mutex_);
  return matmul_;
}

void Context::set_matmul(std::shared_ptr<Matmul> matmul) {
  const base::MutexLock lock(mutex_);
  matmul_ = std::move(matmul);
}

Outcome Context::SetCoreMask(uint32_t mask) {
  // With one core it depends on the SoC what a mask is; the daemon knows.
  const bool one_core = target_->info().cores == 1;
  switch (mask) {
    case RKNN_NPU_CORE_AUTO:
    case RKNN_NPU_CORE_0:
    case RKNN_NPU_CORE_1:
    case RKNN_NPU_CORE_2:
    case RKNN_NPU_CORE_0_1:
    case RKNN_NPU_CORE_0_1_2:
    case RKNN_NPU_CORE_ALL:
      break;
    default:
      if (one_core) break;
      return Fail(Code::kInvalidArgument,
                  "core_mask is none of RKNN_NPU_CORE_AUTO, _0, _1, _2, _0_1, "
                  "_0_1_2 and _ALL",
                  Subject::kNone);
  }
  Expected<void> set = target_->SetCoreMask(number_, mask);
  if (const auto parts = custom(); set.ok() && parts != nullptr) {
    set = parts->SetCoreMask(mask);
  }
  return ToOutcome(std::move(set), Subject::kContext);
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

Outcome Context::BindMemory(const Buffer& memory, const rknn_tensor_attr& attr,
                            uint32_t set) {
  if (const Expected<MemoryRange> range = RangeOf(memory); !range.ok()) {
    return Failure{range.error(), Subject::kNone};
  }
  if (Outcome checked = CheckSet(set); !checked.ok()) return checked;
  const base::MutexLock lock(mutex_);
  Expected<TensorMatch> match = MatchTensor(ports_.shape(), attr);
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
      (attr.w_stride == ports_.shape().inputs[match->index].w_stride ||
       attr.w_stride == model_->inputs[match->index].w_stride)) {
    // What a query said, now or of the largest shape: no padding is meant, and
    // none is there when the shape changes.
    binding.w_stride = 0;
  }
  return ports_.BindOfProgram(match->direction, match->index, binding);
}

std::span<char> Context::PerfText() {
  Expected<std::string> text = std::string();
  if (!CheckLimit(rknnd_v1_DeviceLimit_LIMIT_NO_LAYER_TIMES, "").ok()) {
    // Nothing, as on the board: programs print what they get.
  } else if (const auto operators = custom(); operators != nullptr) {
    text = operators->PerfText();
  } else {
    text = target_->PerfDetail(number_);
  }
  return layer_tables_.KeepText(std::move(text));
}

}  // namespace rknnd::client
