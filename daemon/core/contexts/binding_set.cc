// Checks a client's bindings: index, format, offset and size are its words, the
// buffer's size is the kernel's.

#include "daemon/core/contexts/binding_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/contexts/shape_rows.h"

namespace rknnd::core {
namespace {

// What the starts of intermediate tensors are aligned to.
constexpr uint64_t kInternalAlignment = 64;

const char* Word(driver::Direction direction) {
  return direction == driver::Direction::kInput ? "input" : "output";
}

const std::vector<driver::TensorAttr>& Tensors(
    const driver::ProgramInfo& program, driver::Direction direction) {
  return direction == driver::Direction::kInput ? program.inputs
                                                : program.outputs;
}

// "output 1 'boxes'".
std::string TensorName(const driver::ProgramInfo& program,
                       driver::Direction direction, size_t index) {
  return absl::StrCat(Word(direction), " ", index, " '",
                      Tensors(program, direction)[index].name, "'");
}

// Whether the NPU's first or last layer takes memory in this format as it is.
// The client library predicts the same (client/rknnrt/context/context.cc).
bool IsNative(const driver::ProgramInfo& program, driver::Direction direction,
              size_t index, const driver::TensorFormat& format) {
  using driver::TensorLayout;
  const bool input = direction == driver::Direction::kInput;
  const driver::TensorAttr& tensor = Tensors(program, direction)[index];
  const auto& natives = input ? program.native_inputs : program.native_outputs;
  const driver::TensorAttr& native =
      index < natives.size() ? natives[index] : tensor;
  if (format.pass_through) return true;
  const bool channels_last =
      tensor.dims.size() == 4 && format.layout == TensorLayout::kNhwc;
  // Pixels: normalisation and quantisation are part of the first layer.
  if (input && channels_last && format.type == driver::TensorType::kUint8) {
    return true;
  }
  return format.type == native.type &&
         (channels_last || format.layout == native.layout ||
          // Not 4-D: the order is the model's whatever the layout says.
          native.layout == TensorLayout::kUndefined);
}

// Why more than the packed tensor is needed, where a client chose a stride.
std::string StrideReason(const driver::TensorAttr& tensor,
                         const driver::TensorFormat& format) {
  if (tensor.dims.size() == 4 && format.w_stride > tensor.dims[2] &&
      format.layout == driver::TensorLayout::kNhwc &&
      tensor.layout == driver::TensorLayout::kNhwc) {
    return absl::StrCat(": width ", tensor.dims[2], " is stored with stride ",
                        format.w_stride,
                        ". Allocate size_with_stride and tell the producer "
                        "(RGA wstride=",
                        format.w_stride, ")");
  }
  return absl::StrCat(" in ", driver::TensorTypeName(format.type), " ",
                      driver::TensorLayoutName(format.layout),
                      format.type == tensor.type
                          ? ". Allocate size_with_stride"
                          : ", whatever size_with_stride says of the type "
                            "that was queried");
}

MemoryRange RangeOf(const Buffer& buffer, uint64_t offset, uint64_t bytes) {
  const uint64_t begin = buffer.origin() + offset;
  return {buffer.identity(), begin, begin + bytes};
}

absl::Status CheckInside(uint64_t offset, uint64_t size, uint64_t buffer,
                         const std::string& name) {
  if (offset <= buffer && size <= buffer - offset) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": bytes ", offset, " to ", offset, "+", size,
                   " are not inside the buffer of ", buffer, " bytes"));
}

}  // namespace

std::shared_ptr<const BindingSet> BindingSet::Empty(
    std::shared_ptr<const LoadedModel> model, bool internal_outside) {
  std::shared_ptr<BindingSet> set(new BindingSet);
  const auto prepare = [](Side& side, size_t tensors) {
    side.bindings.resize(tensors);
    side.buffers.resize(tensors);
    side.sizes.resize(tensors);
    side.needed.resize(tensors);
    side.frames.resize(tensors);
    side.lost.resize(tensors);
    side.conversions.resize(tensors);
    side.unbound = tensors;
  };
  prepare(set->inputs_, model->program().inputs.size());
  prepare(set->outputs_, model->program().outputs.size());
  set->row_ = model->info().largest;
  set->chosen_ = !model->dynamic();
  set->lacks_internal_ = internal_outside && model->internal_size() != 0;
  set->model_ = std::move(model);
  return set;
}

absl::Status BindingSet::CheckIndex(driver::Direction direction,
                                    uint32_t index) const {
  const size_t tensors = Tensors(program(), direction).size();
  if (index < tensors) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Word(direction), " ", index, " does not exist: model '",
                   model_->name, "' has ", tensors));
}

absl::StatusOr<std::shared_ptr<const BindingSet>> BindingSet::With(
    const BindRequest& request, std::shared_ptr<Buffer> buffer) const {
  RKNND_RETURN_IF_ERROR(CheckIndex(request.direction, request.index));
  uint64_t needed = 0;
  if (buffer != nullptr) {
    RKNND_ASSIGN_OR_RETURN(needed, Check(request, *buffer));
  }
  std::shared_ptr<BindingSet> changed(new BindingSet(*this));
  changed->Put(request, std::move(buffer), needed);
  changed->NoteConflict();
  return changed;
}

absl::StatusOr<std::shared_ptr<const BindingSet>> BindingSet::WithFrame(
    const FrameRequest& request, PlaneBuffers buffers) const {
  RKNND_RETURN_IF_ERROR(CheckIndex(driver::Direction::kInput, request.index));
  RKNND_ASSIGN_OR_RETURN(
      auto frame,
      BoundFrame::Make(
          *model_->model, row_, request, std::move(buffers),
          TensorName(program(), driver::Direction::kInput, request.index)));
  std::shared_ptr<BindingSet> changed(new BindingSet(*this));
  changed->PutFrame(std::move(frame));
  changed->NoteConflict();
  return changed;
}

absl::StatusOr<std::shared_ptr<const BindingSet>> BindingSet::WithInternal(
    const MemoryRequest& request, std::shared_ptr<Buffer> buffer) const {
  std::shared_ptr<BindingSet> changed(new BindingSet(*this));
  const uint64_t needed = model_->internal_size();
  if (buffer != nullptr) {
    const std::string name =
        absl::StrCat("internal memory of model '", model_->name, "'");
    RKNND_RETURN_IF_ERROR(CheckRange(request, *buffer, name));
    if (request.offset % kInternalAlignment != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": offset ", request.offset,
                       " is not a multiple of ", kInternalAlignment));
    }
    if (request.size < needed) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, " has ", request.size, " bytes, ", needed, " needed",
          model_->dynamic() ? " for its largest shape" : "",
          ": give total_internal_size of RKNN_QUERY_MEM_SIZE"));
    }
    changed->internal_.range = RangeOf(*buffer, request.offset, needed);
  } else {
    changed->internal_.range = {};
  }
  changed->lacks_internal_ = buffer == nullptr && needed != 0;
  changed->internal_.buffer = std::move(buffer);
  changed->NoteConflict();
  return changed;
}

std::shared_ptr<const BindingSet> BindingSet::ForRow(uint32_t row) const {
  std::shared_ptr<BindingSet> changed(new BindingSet(*this));
  changed->row_ = row;
  changed->chosen_ = true;
  for (auto direction :
       {driver::Direction::kInput, driver::Direction::kOutput}) {
    const bool input = direction == driver::Direction::kInput;
    const Side& side = input ? inputs_ : outputs_;
    Side& other = input ? changed->inputs_ : changed->outputs_;
    for (uint32_t i = 0; i < side.buffers.size(); ++i) {
      if (side.buffers[i] == nullptr) continue;
      if (side.frames[i] != nullptr) {
        other.lost[i] = changed->Refit(*side.frames[i]);
        continue;
      }
      BindRequest request;
      request.direction = direction;
      request.index = i;
      request.offset = side.bindings[i].offset;
      request.size = side.sizes[i];
      request.format = side.bindings[i].format;
      const auto fits = changed->Check(request, *side.buffers[i]);
      changed->Put(request, fits.ok() ? side.buffers[i] : nullptr,
                   fits.ok() ? *fits : 0);
      other.lost[i] = std::string(fits.status().message());
    }
  }
  changed->NoteConflict();
  return changed;
}

std::string BindingSet::Refit(const BoundFrame& frame) {
  const FrameRequest& request = frame.request();
  auto fits = BoundFrame::Make(
      *model_->model, row_, request, frame.buffers(),
      TensorName(program(), driver::Direction::kInput, request.index));
  if (fits.ok()) {
    PutFrame(*std::move(fits));
    return "";
  }
  BindRequest nothing;
  nothing.index = request.index;
  Put(nothing, nullptr, 0);
  return std::string(fits.status().message());
}

void BindingSet::Put(const BindRequest& request, std::shared_ptr<Buffer> buffer,
                     uint64_t needed) {
  Side& side =
      request.direction == driver::Direction::kInput ? inputs_ : outputs_;
  std::shared_ptr<Buffer>& slot = side.buffers[request.index];
  side.unbound += slot == nullptr ? 0 : 1;
  side.unbound -= buffer == nullptr ? 0 : 1;
  slot = std::move(buffer);
  side.sizes[request.index] = request.size;
  side.needed[request.index] = needed;
  side.lost[request.index].clear();
  side.frames[request.index] = nullptr;
  side.bindings[request.index] =
      slot == nullptr ? driver::TensorBinding{}
                      : driver::TensorBinding{slot->memory(), request.offset,
                                              request.format,
                                              // As the vendor's runtime does.
                                              slot->imported()};
  uint64_t& conversion = side.conversions[request.index];
  side.converted -= conversion;
  conversion = 0;
  if (slot != nullptr &&
      !IsNative(program(), request.direction, request.index, request.format)) {
    conversion = Tensors(program(), request.direction)[request.index].elements *
                 driver::ElementSize(request.format.type);
  }
  side.converted += conversion;
}

void BindingSet::PutFrame(std::shared_ptr<const BoundFrame> frame) {
  BindRequest first;
  first.index = frame->request().index;
  first.offset = frame->request().planes[0].offset;
  first.size = frame->request().planes[0].size;
  // What a frame becomes; Put counts it as pixels that need no conversion.
  first.format = {.type = driver::TensorType::kUint8,
                  .layout = driver::TensorLayout::kNhwc};
  Put(first, frame->buffers()[0], frame->needed()[0]);
  driver::TensorBinding& binding = inputs_.bindings[first.index];
  binding.program_syncs = frame->imported();
  binding.frame = &frame->frame();
  uint64_t& conversion = inputs_.conversions[first.index];
  inputs_.converted -= conversion;
  conversion = program().inputs[first.index].elements;
  inputs_.converted += conversion;
  inputs_.frames[first.index] = std::move(frame);
}

absl::Status BindingSet::CheckComplete() const {
  if (!chosen_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "model '", model_->name, "' lists ", model_->info().programs.size(),
        " shapes and none is chosen: call rknn_set_input_shapes before the "
        "first run, with one of ",
        RowsText(model_->info())));
  }
  for (auto direction :
       {driver::Direction::kInput, driver::Direction::kOutput}) {
    const Side& side =
        direction == driver::Direction::kInput ? inputs_ : outputs_;
    const auto unbound =
        std::find(side.buffers.begin(), side.buffers.end(), nullptr);
    if (unbound == side.buffers.end()) continue;
    const auto index = static_cast<size_t>(unbound - side.buffers.begin());
    if (!side.lost[index].empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the memory of model '", model_->name,
          "' does not fit the shape chosen since it was bound: ",
          side.lost[index], "; bind other memory (rknn_set_io_mem)"));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        TensorName(program(), direction, index), " of model '", model_->name,
        "' has no memory: set it before the run (rknn_inputs_set or "
        "rknn_set_io_mem)"));
  }
  if (lacks_internal_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "model '", model_->name, "' needs ", model_->internal_size(),
        " bytes of internal memory and the context was made to get them from "
        "outside: call rknn_set_internal_mem before the run"));
  }
  if (!conflict_.empty()) return absl::FailedPreconditionError(conflict_);
  return absl::OkStatus();
}

void BindingSet::NoteConflict() {
  NoteRunKey();
  conflict_.clear();
  std::vector<MemoryUse> uses;
  size_t name = 0;
  for (const Side* side : {&inputs_, &outputs_}) {
    for (size_t i = 0; i < side->buffers.size(); ++i, ++name) {
      if (side->buffers[i] == nullptr) continue;
      uses.push_back({RangeOf(*side->buffers[i], side->bindings[i].offset,
                              side->needed[i]),
                      side == &outputs_, name});
      if (side->frames[i] == nullptr) continue;
      const BoundFrame& frame = *side->frames[i];
      for (size_t p = 1; p < frame.buffers().size(); ++p) {
        if (frame.buffers()[p] == nullptr) continue;
        uses.push_back(
            {RangeOf(*frame.buffers()[p], frame.request().planes[p].offset,
                     frame.needed()[p]),
             false, name});
      }
    }
  }
  if (alone() != nullptr) uses.push_back({*alone(), true, name});
  const auto conflict = FindConflict(uses);
  if (!conflict.has_value()) return;
  conflict_ =
      absl::StrCat(UseName(conflict->first), " and ", UseName(conflict->second),
                   " of model '", model_->name,
                   "' are in the same memory and a run would write "
                   "over one of them: give each memory of its own");
}

std::string BindingSet::UseName(size_t use) const {
  const size_t inputs = inputs_.buffers.size();
  if (use < inputs) {
    return TensorName(program(), driver::Direction::kInput, use);
  }
  if (use - inputs < outputs_.buffers.size()) {
    return TensorName(program(), driver::Direction::kOutput, use - inputs);
  }
  return "the internal memory";
}

void BindingSet::Side::Take(const Side& other, size_t i) {
  unbound += buffers[i] == nullptr ? 0 : 1;
  unbound -= other.buffers[i] == nullptr ? 0 : 1;
  converted += other.conversions[i] - conversions[i];
  bindings[i] = other.bindings[i];
  buffers[i] = other.buffers[i];
  sizes[i] = other.sizes[i];
  needed[i] = other.needed[i];
  frames[i] = other.frames[i];
  lost[i] = other.lost[i];
  conversions[i] = other.conversions[i];
}

std::shared_ptr<const BindingSet> BindingSet::Over(
    const BindingSet& base, const TensorChoice& own) const {
  std::shared_ptr<BindingSet> changed(new BindingSet(base));
  for (size_t i = 0; i < inputs_.buffers.size(); ++i) {
    if (own.inputs[i]) changed->inputs_.Take(inputs_, i);
  }
  for (size_t i = 0; i < outputs_.buffers.size(); ++i) {
    if (own.outputs[i]) changed->outputs_.Take(outputs_, i);
  }
  changed->NoteConflict();
  return changed;
}

uint32_t BindingSet::Side::Count(const Buffer* buffer, size_t i) const {
  uint32_t count = buffers[i].get() == buffer ? 1 : 0;
  for (size_t p = 1; frames[i] != nullptr && p < driver::kMaxPlanes; ++p) {
    count += frames[i]->buffers()[p].get() == buffer ? 1 : 0;
  }
  return count;
}

uint32_t BindingSet::Count(const Buffer* buffer) const {
  uint32_t count = internal_.buffer.get() == buffer ? 1 : 0;
  for (const Side* side : {&inputs_, &outputs_}) {
    for (size_t i = 0; i < side->buffers.size(); ++i) {
      count += side->Count(buffer, i);
    }
  }
  return count;
}

uint32_t BindingSet::Count(const Buffer* buffer,
                           const TensorChoice& among) const {
  uint32_t count = 0;
  for (size_t i = 0; i < among.inputs.size(); ++i) {
    if (among.inputs[i]) count += inputs_.Count(buffer, i);
  }
  for (size_t i = 0; i < among.outputs.size(); ++i) {
    if (among.outputs[i]) count += outputs_.Count(buffer, i);
  }
  return count;
}

absl::StatusOr<uint64_t> BindingSet::Check(const BindRequest& request,
                                           const Buffer& buffer) const {
  const std::string name =
      TensorName(program(), request.direction, request.index);
  RKNND_RETURN_IF_ERROR(
      CheckInside(request.offset, request.size, buffer.size(), name));
  RKNND_ASSIGN_OR_RETURN(
      const uint64_t needed,
      model_->model->CheckBinding(row_, request.direction, request.index,
                                  request.format));
  if (needed > request.size) {
    const driver::TensorAttr& tensor =
        Tensors(program(), request.direction)[request.index];
    return absl::InvalidArgumentError(absl::StrCat(
        "buffer bound to ", name, " has ", request.size, " bytes, ", needed,
        " needed", StrideReason(tensor, request.format)));
  }
  const size_t element = driver::ElementSize(request.format.type);
  if (element > 1 && request.offset % element != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": offset ", request.offset, " is not a multiple of the ",
        element, " bytes of ", driver::TensorTypeName(request.format.type)));
  }
  if (request.direction == driver::Direction::kOutput && buffer.read_only()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " cannot be bound to memory whose fd allows reading only"));
  }
  return needed;
}

absl::Status CheckRange(const MemoryRequest& request, const Buffer& buffer,
                        const std::string& name) {
  RKNND_RETURN_IF_ERROR(
      CheckInside(request.offset, request.size, buffer.size(), name));
  if (buffer.read_only()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " cannot be memory whose fd allows reading only"));
  }
  return absl::OkStatus();
}

}  // namespace rknnd::core
