#include "driver/rknnrt/description.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/overflow.h"
#include "base/values/printable.h"

namespace rknnd::rknnrt {
namespace {

using driver::TensorAttr;
using driver::TensorFormat;
using driver::TensorLayout;
using driver::TensorType;

absl::Status Broken(const std::string& what) {
  return absl::DataLossError(absl::StrCat(
      "what the vendor's library tells of the model cannot be: ", what));
}

// What a worker wrote, without what would spoil messages.
std::string Text(const char* text, size_t room) {
  return base::Printable({text, strnlen(text, room)});
}

// Of an enumeration that somebody else has written, and which may be none of
// it.
template <class Enum>
uint32_t Number(const Enum& value) {
  static_assert(sizeof value == sizeof(uint32_t));
  uint32_t number = 0;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

absl::StatusOr<TensorAttr> ToAttribute(const rknn_tensor_attr& from) {
  TensorAttr to;
  to.name = Text(from.name, sizeof from.name - 1);
  if (from.n_dims == 0 || from.n_dims > driver::kMaxDims) {
    return Broken(absl::StrCat("tensor '", to.name, "' has ", from.n_dims,
                               " dimensions"));
  }
  const uint32_t type = Number(from.type);
  const uint32_t layout = Number(from.fmt);
  const uint32_t quantization = Number(from.qnt_type);
  if (type >= driver::kTensorTypeCount ||
      layout >= driver::kTensorLayoutCount || quantization > 2) {
    return Broken(absl::StrCat("tensor '", to.name, "' is of type ", type,
                               ", layout ", layout, ", quantisation ",
                               quantization));
  }
  to.dims.assign(from.dims, from.dims + from.n_dims);
  std::optional<uint64_t> elements = 1;
  for (const uint32_t dim : to.dims) {
    elements = base::CheckedMultiply(*elements, dim);
    if (!elements.has_value() || *elements > UINT32_MAX || dim == 0) {
      return Broken(
          absl::StrCat("tensor '", to.name, "' has no elements, or too many"));
    }
  }
  to.elements = *elements;
  to.type = static_cast<TensorType>(type);
  to.layout = static_cast<TensorLayout>(layout);
  const uint64_t bytes = to.type == TensorType::kInt4
                             ? (to.elements + 1) / 2
                             : to.elements * driver::ElementSize(to.type);
  to.size = bytes;
  // Older versions leave it at 0.
  to.size_with_stride = std::max<uint64_t>(from.size_with_stride, bytes);
  to.quantization = static_cast<driver::Quantization>(quantization);
  to.zero_point = from.zp;
  to.scale = from.scale;
  const bool has_rows = to.layout == TensorLayout::kNhwc && to.dims.size() == 4;
  to.w_stride = has_rows && from.w_stride >= to.dims[2] ? from.w_stride : 0;
  to.file_type = to.type;
  return to;
}

// Walks through attributes that lie one behind the other.
class Attributes {
 public:
  explicit Attributes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  absl::StatusOr<std::vector<TensorAttr>> Take(uint32_t count) {
    std::vector<TensorAttr> list;
    for (uint32_t i = 0; i < count; ++i) {
      rknn_tensor_attr attribute;
      if (bytes_.size() < sizeof attribute) return Broken("it is cut short");
      std::memcpy(&attribute, bytes_.data(), sizeof attribute);
      bytes_ = bytes_.subspan(sizeof attribute);
      RKNND_ASSIGN_OR_RETURN(list.emplace_back(), ToAttribute(attribute));
    }
    return list;
  }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

uint64_t InputElements(const driver::ProgramInfo& program) {
  uint64_t sum = 0;
  for (const TensorAttr& input : program.inputs) sum += input.elements;
  return sum;
}

absl::Status CannotBind(const TensorAttr& attr, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("tensor '", attr.name, "' cannot be bound so: ", why));
}

}  // namespace

absl::StatusOr<Description> Describe(std::span<const std::byte> payload,
                                     const std::string& name) {
  LoadedModel about;
  if (payload.size() < sizeof about) return Broken("it is cut short");
  std::memcpy(&about, payload.data(), sizeof about);
  if (about.inputs > kMostTensors || about.outputs > kMostTensors ||
      about.inputs + about.outputs > kMostTensors || about.outputs == 0 ||
      about.rows == 0 || about.rows > kMostRows) {
    return Broken(absl::StrCat(about.inputs, " inputs, ", about.outputs,
                               " outputs and ", about.rows, " shapes"));
  }
  Description description;
  description.internal_outside = about.internal_outside != 0;
  description.library_version =
      Text(about.api_version, sizeof about.api_version - 1);
  description.driver_version =
      Text(about.driver_version, sizeof about.driver_version - 1);
  driver::ModelInfo& info = description.info;
  info.name = name;
  info.weight_size = about.weight_bytes;
  info.custom_string =
      Text(about.custom_string, sizeof about.custom_string - 1);
  Attributes attributes(payload.subspan(sizeof about));
  for (uint32_t row = 0; row < about.rows; ++row) {
    driver::ProgramInfo& program = info.programs.emplace_back();
    RKNND_ASSIGN_OR_RETURN(program.inputs, attributes.Take(about.inputs));
    RKNND_ASSIGN_OR_RETURN(program.outputs, attributes.Take(about.outputs));
    RKNND_ASSIGN_OR_RETURN(program.native_inputs,
                           attributes.Take(about.inputs));
    RKNND_ASSIGN_OR_RETURN(program.native_outputs,
                           attributes.Take(about.outputs));
    program.internal_size =
        description.internal_outside ? about.internal_bytes : 0;
    if (InputElements(program) > InputElements(info.programs[info.largest])) {
      info.largest = row;
    }
  }
  if (!attributes.empty()) return Broken("more follows than it says");
  return description;
}

PortAttributes AttributesOf(const driver::ProgramInfo& program,
                            driver::Direction direction, uint32_t index) {
  if (direction == driver::Direction::kInput) {
    return {&program.inputs[index], &program.native_inputs[index]};
  }
  return {&program.outputs[index], &program.native_outputs[index]};
}

bool IsNative(const PortAttributes& port, const TensorFormat& format) {
  return format.pass_through || (format.layout == TensorLayout::kNc1hwc2 &&
                                 port.native->layout == TensorLayout::kNc1hwc2);
}

absl::StatusOr<uint64_t> BytesOf(const PortAttributes& port,
                                 const TensorFormat& format) {
  const bool is_native = IsNative(port, format);
  const TensorAttr& attr = is_native ? *port.native : *port.usual;
  if (static_cast<uint32_t>(format.type) >= driver::kTensorTypeCount) {
    return CannotBind(
        attr, absl::StrCat("element type ", static_cast<uint32_t>(format.type),
                           " is none"));
  }
  const uint64_t element = driver::ElementSize(format.type);
  if (element == 0) {
    return CannotBind(attr, "the vendor's library converts no 4-bit numbers");
  }
  if (is_native) {
    if (format.pass_through &&
        (format.type != attr.type || format.layout != attr.layout)) {
      return CannotBind(attr,
                        absl::StrCat("with pass_through it has to be ",
                                     driver::TensorTypeName(attr.type), " in ",
                                     driver::TensorLayoutName(attr.layout)));
    }
    const uint64_t own = driver::ElementSize(attr.type);
    return own == 0 ? attr.size_with_stride
                    : attr.size_with_stride / own * element;
  }
  const bool is_picture = attr.dims.size() == 4;
  const bool fits = is_picture ? format.layout == TensorLayout::kNhwc ||
                                     format.layout == TensorLayout::kNchw
                               : format.layout == attr.layout ||
                                     format.layout == TensorLayout::kUndefined;
  if (!fits) {
    return CannotBind(
        attr, absl::StrCat("layout ", driver::TensorLayoutName(format.layout),
                           " is not one of it"));
  }
  if (!is_picture || attr.layout != TensorLayout::kNhwc ||
      format.layout != TensorLayout::kNhwc) {
    if (format.w_stride != 0 && is_picture) {
      const uint32_t width =
          attr.dims[attr.layout == TensorLayout::kNhwc ? 2 : 3];
      if (format.w_stride != width) {
        return CannotBind(attr, absl::StrCat("rows of ", format.w_stride,
                                             " pixels: only NHWC inputs have "
                                             "rows with gaps"));
      }
    }
    return attr.elements * element;
  }
  const uint32_t width = attr.dims[2];
  const uint32_t pitch = attr.w_stride == 0 ? width : attr.w_stride;
  if (format.w_stride != 0 && format.w_stride != pitch) {
    return CannotBind(
        attr,
        absl::StrCat("rows of ", format.w_stride,
                     " pixels: the vendor's library reads rows of ", pitch));
  }
  // Both strides are somebody's word.
  const uint64_t rows = std::max<uint64_t>(attr.dims[1], format.h_stride);
  std::optional<uint64_t> bytes =
      uint64_t{attr.dims[0] - 1} * rows + attr.dims[1];
  for (const uint64_t factor :
       {uint64_t{pitch}, uint64_t{attr.dims[3]}, element}) {
    if (bytes.has_value()) bytes = base::CheckedMultiply(*bytes, factor);
  }
  if (!bytes.has_value() || *bytes > UINT32_MAX) {
    return CannotBind(attr, "with these strides it has more than 4 GiB");
  }
  return *bytes;
}

}  // namespace rknnd::rknnrt
