// Checks a client's bindings: index, format, offset and size are its words, the
// buffer's size is the kernel's.

#include "daemon/core/binding_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/shape_rows.h"

namespace rknnd::core {
namespace {

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
// The client library predicts the same (client/rknnrt/context.cc).
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
  if (format.w_stride != 0 && tensor.dims.size() == 4 &&
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
                      ". Allocate size_with_stride");
}

}  // namespace

std::shared_ptr<const BindingSet> BindingSet::Empty(
    std::shared_ptr<const LoadedModel> model) {
  std::shared_ptr<BindingSet> set(new BindingSet);
  const auto prepare = [](Side& side, size_t tensors) {
    side.bindings.resize(tensors);
    side.buffers.resize(tensors);
    side.sizes.resize(tensors);
    side.lost.resize(tensors);
    side.conversions.resize(tensors);
    side.unbound = tensors;
  };
  prepare(set->inputs_, model->program().inputs.size());
  prepare(set->outputs_, model->program().outputs.size());
  set->row_ = model->info().largest;
  set->chosen_ = !model->dynamic();
  set->model_ = std::move(model);
  return set;
}

absl::StatusOr<std::shared_ptr<const BindingSet>> BindingSet::With(
    const BindRequest& request, std::shared_ptr<Buffer> buffer) const {
  const size_t tensors = Tensors(program(), request.direction).size();
  if (request.index >= tensors) {
    return absl::InvalidArgumentError(absl::StrCat(
        Word(request.direction), " ", request.index, " does not exist: model '",
        model_->name, "' has ", tensors));
  }
  if (buffer != nullptr) RKNND_RETURN_IF_ERROR(Check(request, *buffer));

  std::shared_ptr<BindingSet> changed(new BindingSet(*this));
  changed->Put(request, std::move(buffer));
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
      BindRequest request;
      request.direction = direction;
      request.index = i;
      request.offset = side.bindings[i].offset;
      request.size = side.sizes[i];
      request.format = side.bindings[i].format;
      const absl::Status fits = changed->Check(request, *side.buffers[i]);
      changed->Put(request, fits.ok() ? side.buffers[i] : nullptr);
      other.lost[i] = std::string(fits.message());
    }
  }
  return changed;
}

void BindingSet::Put(const BindRequest& request,
                     std::shared_ptr<Buffer> buffer) {
  Side& side =
      request.direction == driver::Direction::kInput ? inputs_ : outputs_;
  std::shared_ptr<Buffer>& slot = side.buffers[request.index];
  side.unbound += slot == nullptr ? 0 : 1;
  side.unbound -= buffer == nullptr ? 0 : 1;
  slot = std::move(buffer);
  side.sizes[request.index] = request.size;
  side.lost[request.index].clear();
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
  return absl::OkStatus();
}

uint32_t BindingSet::Count(const Buffer* buffer) const {
  uint32_t count = 0;
  for (const Side* side : {&inputs_, &outputs_}) {
    for (const auto& bound : side->buffers) count += bound.get() == buffer;
  }
  return count;
}

absl::Status BindingSet::Check(const BindRequest& request,
                               const Buffer& buffer) const {
  const std::string name =
      TensorName(program(), request.direction, request.index);
  if (request.offset > buffer.size() ||
      request.size > buffer.size() - request.offset) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": bytes ", request.offset, " to ", request.offset,
                     "+", request.size, " are not inside the buffer of ",
                     buffer.size(), " bytes"));
  }
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
  return absl::OkStatus();
}

}  // namespace rknnd::core
