#include "driver/rknpu/device/port.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/half.h"
#include "driver/memory/fault_guard.h"
#include "driver/soft/attached_memory.h"
#include "driver/soft/plan/frame_transfer.h"
#include "driver/soft/plan/io_transfer.h"
#include "driver/soft/plan/program.h"

namespace rknnd::rknpu {
namespace {

using driver::Direction;

size_t Up(size_t bytes) { return (bytes + 63) / 64 * 64; }

absl::Status Refuse(Direction direction, const Tensor& tensor,
                    const std::string& why) {
  return absl::UnimplementedError(
      absl::StrCat(direction == Direction::kInput ? "input '" : "output '",
                   tensor.name, "': ", why));
}

std::optional<soft::DataType> TypeInside(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return soft::DataType::kInt8;
    case ElementType::kFloat16:
    case ElementType::kFloat32:
      return soft::DataType::kFloat32;
    case ElementType::kInt32:
      return soft::DataType::kInt32;
    case ElementType::kInt64:
      return soft::DataType::kInt64;
    case ElementType::kInt16:
    case ElementType::kNone:
    case ElementType::kWords:
      break;
  }
  return std::nullopt;
}

// The means and deviations that change anything.
absl::Status TakeScaling(const InputScaling& scaling, const Tensor& tensor,
                         soft::PortConversion& conversion) {
  for (size_t c = 0; c < scaling.channel_order.size(); ++c) {
    if (scaling.channel_order[c] == c) continue;
    return Refuse(Direction::kInput, tensor,
                  "the order of its channels is changed, which is not known "
                  "here; give the channels in the model's own order");
  }
  const size_t channels = tensor.shape.size() == 4 ? tensor.shape[1] : 0;
  const auto begins_with = [&](const std::vector<float>& numbers, float one) {
    return std::all_of(numbers.begin(), numbers.end(),
                       [one](float number) { return number == one; });
  };
  if (begins_with(scaling.means, 0) && begins_with(scaling.deviations, 1)) {
    return absl::OkStatus();
  }
  const auto is_usable = [](float number) {
    return number != 0 && number - number == 0;
  };
  if (channels == 0 || scaling.means.size() < channels ||
      scaling.deviations.size() < channels ||
      !std::all_of(
          scaling.deviations.begin(),
          scaling.deviations.begin() + static_cast<std::ptrdiff_t>(channels),
          is_usable)) {
    return Refuse(Direction::kInput, tensor,
                  "its means and deviations do not fit its channels");
  }
  const auto count = static_cast<std::ptrdiff_t>(channels);
  conversion.mean.assign(scaling.means.begin(), scaling.means.begin() + count);
  conversion.deviation.assign(scaling.deviations.begin(),
                              scaling.deviations.begin() + count);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Port> Port::Make(const ProgramFile& file, Direction direction,
                                uint32_t i) {
  const bool is_input = direction == Direction::kInput;
  Port port;
  port.direction_ = direction;
  port.tensor_ = (is_input ? file.inputs : file.outputs)[i];
  const Tensor& tensor = file.tensors[port.tensor_];
  absl::StatusOr<NativeTensor> native = NativeTensor::Make(tensor);
  if (!native.ok()) {
    return Refuse(direction, tensor, std::string(native.status().message()));
  }
  port.native_ = *native;
  const std::optional<soft::DataType> type = TypeInside(tensor.type);
  if (!type.has_value()) {
    return Refuse(
        direction, tensor,
        absl::StrCat("its numbers are ", ElementTypeName(tensor.type)));
  }
  port.is_half_ = tensor.type == ElementType::kFloat16;
  port.bytes_ = tensor.bytes;
  port.slices_ = file.batch;
  soft::PortConversion conversion;
  conversion.half = port.is_half_;
  if (tensor.type == ElementType::kInt8) {
    if (tensor.scales.size() != 1 || !(tensor.scales[0] > 0) ||
        tensor.zero_points[0] < -128 || tensor.zero_points[0] > 127) {
      return Refuse(direction, tensor, "it has no one scale and zero point");
    }
    conversion.quantization =
        soft::Quantization{tensor.scales[0], tensor.zero_points[0]};
  }
  if (is_input && !file.input_scaling.empty()) {
    RKNND_RETURN_IF_ERROR(
        TakeScaling(file.input_scaling[i], tensor, conversion));
  }
  const soft::Shape shape(tensor.shape.begin(), tensor.shape.end());
  RKNND_ASSIGN_OR_RETURN(
      soft::IoPort io, soft::IoPort::Make(direction, tensor.name, *type, shape,
                                          8, std::move(conversion)));
  if (file.batch > 1) io.Repeat(file.batch);
  port.attr_ = io.attr();
  port.native_attr_ = io.native();
  port.io_ = std::move(io);
  port.TakeNativeSizes(tensor, file.batch);
  return port;
}

// The file may have more blocks of channels than the shape needs, and bytes
// behind each of them.
void Port::TakeNativeSizes(const Tensor& tensor, uint32_t batch) {
  if (native_attr_.layout == driver::TensorLayout::kNc1hwc2 &&
      tensor.native_shape.size() == native_attr_.dims.size()) {
    native_attr_.dims = tensor.native_shape;
    native_attr_.dims[0] *= batch;
    native_attr_.elements = 1;
    for (const uint32_t dim : native_attr_.dims) native_attr_.elements *= dim;
    native_attr_.size =
        native_attr_.elements * driver::ElementSize(native_attr_.type);
  }
  for (driver::TensorAttr* attr : {&attr_, &native_attr_}) {
    attr->size_with_stride =
        std::max({attr->size_with_stride, attr->size, tensor.bytes * batch});
  }
}

// Parts of an output that no task writes would keep what the program has there.
void Port::AllowDirect(uint64_t touched) {
  is_direct_ = touched != 0 &&
               (direction_ == Direction::kInput || touched >= native_.extent());
}

// Whatever the addresses of the NPU have to be multiples of.
Port::Direct Port::DirectOf(const driver::TensorBinding& binding) const {
  constexpr uint64_t kAtom = 16;
  if (!is_direct_ || binding.frame != nullptr) return {};
  const absl::StatusOr<soft::ClientLayout> layout =
      io_->Resolve(binding.format);
  if (!layout.ok() || layout->type != native_attr_.type) return {};
  // Halves are normalised on the way, bytes are what they are.
  const bool is_as_is = layout->as_is || !is_half_ ||
                        direction_ == Direction::kOutput ||
                        !io_->conversion().normalises();
  const auto step = [](int64_t elements) {
    return static_cast<size_t>(elements);
  };
  if (!is_as_is || !native_.LiesAt({.group = step(layout->group),
                                    .pixel = step(layout->pitch),
                                    .line = step(layout->row),
                                    .groups = step(layout->plane),
                                    .item = step(layout->item)})) {
    return {};
  }
  const auto& client =
      static_cast<const soft::AttachedMemory&>(*binding.memory);
  const std::span<std::byte> range = client.From(binding.offset);
  const uint64_t needed = (slices_ - 1) * layout->slice_step + bytes_;
  if (range.size() < needed || binding.offset % kAtom != 0 ||
      layout->slice_step % kAtom != 0 || client.torn() ||
      (direction_ == Direction::kOutput && !client.writable())) {
    return {};
  }
  return {range.first(static_cast<size_t>(needed)), layout->slice_step};
}

std::span<std::byte> Port::RangeOf(const driver::TensorBinding& binding) const {
  if (binding.frame != nullptr) return {};
  if (const Direct direct = DirectOf(binding); !direct.bytes.empty()) {
    return direct.bytes;
  }
  const absl::StatusOr<soft::ClientLayout> layout =
      io_->Resolve(binding.format);
  if (!layout.ok()) return {};
  const std::span<std::byte> rest =
      static_cast<const soft::AttachedMemory&>(*binding.memory)
          .From(binding.offset);
  return rest.first(std::min<size_t>(rest.size(), layout->bytes));
}

soft::TensorSpec Port::Dense() const {
  soft::TensorSpec spec;
  spec.type = io_->type();
  spec.shape = io_->shape();
  return spec;
}

// The dense tensor, its halves, and what the conversions need.
size_t Port::scratch_bytes() const {
  return Up(native_.elements() * 8) + Up(native_.dense_bytes()) +
         soft::InputScratch(io_->shape());
}

void Port::Unpack(const std::byte* native, std::byte* dense,
                  std::byte* scratch) const {
  if (!is_half_) return native_.Unpack(native, dense);
  native_.Unpack(native, scratch);
  base::HalfToFloat(
      {reinterpret_cast<const base::Half*>(scratch), native_.elements()},
      {reinterpret_cast<float*>(dense), native_.elements()});
}

void Port::Pack(const std::byte* dense, std::byte* native,
                std::byte* scratch) const {
  if (!is_half_) return native_.Pack(dense, native);
  base::FloatToHalf(
      {reinterpret_cast<const float*>(dense), native_.elements()},
      {reinterpret_cast<base::Half*>(scratch), native_.elements()});
  native_.Pack(scratch, native);
}

absl::StatusOr<std::span<std::byte>> Port::Bound(
    const driver::TensorBinding& binding, uint32_t slice,
    soft::ClientLayout& layout) const {
  RKNND_ASSIGN_OR_RETURN(layout, io_->Resolve(binding.format));
  const auto& client =
      static_cast<const soft::AttachedMemory&>(*binding.memory);
  if (client.torn()) {
    return absl::DataLossError(
        absl::StrCat("the memory bound to '", attr_.name,
                     "' went away during an earlier job: attach it again"));
  }
  const std::span<std::byte> range = client.From(binding.offset);
  if (range.size() < layout.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the memory bound to '", attr_.name, "' has ",
                     range.size(), " bytes, ", layout.bytes, " needed"));
  }
  if (direction_ == Direction::kOutput && !client.writable()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the memory bound to output '", attr_.name,
                     "' was attached for reading only"));
  }
  return range.subspan(static_cast<size_t>(slice * layout.slice_step),
                       static_cast<size_t>(layout.slice_bytes));
}

absl::Status Port::ReadDense(const driver::TensorBinding& binding,
                             uint32_t slice, std::byte* scratch) const {
  std::byte* const rest = RestOf(scratch);
  if (binding.frame != nullptr) {
    return soft::ReadFrame(*io_, *binding.frame, Dense(), scratch, rest);
  }
  soft::ClientLayout layout;
  RKNND_ASSIGN_OR_RETURN(const std::span<std::byte> range,
                         Bound(binding, slice, layout));
  if (driver::Guarded(range, [&] {
        soft::ReadInput(layout, range.data(), Dense(), scratch, rest,
                        io_->conversion());
      })) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "the memory bound to input '", attr_.name,
      "' went away during the job: its file was truncated or punched"));
}

absl::Status Port::WriteDense(const driver::TensorBinding& binding,
                              uint32_t slice, std::byte* scratch) const {
  soft::ClientLayout layout;
  RKNND_ASSIGN_OR_RETURN(const std::span<std::byte> range,
                         Bound(binding, slice, layout));
  if (driver::Guarded(range, [&] {
        soft::WriteOutput(layout, range.data(), Dense(), scratch,
                          RestOf(scratch), io_->conversion());
      })) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "the memory bound to output '", attr_.name,
      "' went away during the job: its file was truncated or punched"));
}

absl::Status Port::Read(const driver::TensorBinding& binding, uint32_t slice,
                        std::byte* native, std::byte* scratch) const {
  RKNND_RETURN_IF_ERROR(ReadDense(binding, slice, scratch));
  Pack(scratch, native, HalvesOf(scratch));
  return absl::OkStatus();
}

absl::Status Port::Write(const std::byte* native,
                         const driver::TensorBinding& binding, uint32_t slice,
                         std::byte* scratch) const {
  Unpack(native, scratch, HalvesOf(scratch));
  return WriteDense(binding, slice, scratch);
}

std::byte* Port::HalvesOf(std::byte* scratch) const {
  return scratch + Up(native_.elements() * 8);
}

std::byte* Port::RestOf(std::byte* scratch) const {
  return HalvesOf(scratch) + Up(native_.dense_bytes());
}

}  // namespace rknnd::rknpu
