#include "driver/soft/plan/io_port.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/quantization.h"

namespace rknnd::soft {
namespace {

using driver::Direction;
using driver::TensorAttr;
using driver::TensorFormat;
using driver::TensorLayout;
using driver::TensorType;

// What a value looks like from outside. The NPU's float is the half.
std::optional<TensorType> OuterType(DataType type) {
  return type == DataType::kFloat32 ? TensorType::kFloat16 : PlainType(type);
}

// The answers for all bytes an image can hold.
std::vector<uint8_t> TableOf(const PortConversion& conversion, DataType type) {
  const size_t channels = conversion.normalises() ? conversion.mean.size() : 1;
  std::vector<uint8_t> table;
  for (size_t c = 0; c < channels; ++c) {
    for (int32_t byte = 0; byte < 256; ++byte) {
      auto x = static_cast<float>(byte);
      if (conversion.normalises()) {
        x = conversion.Normalise(x, static_cast<int64_t>(c));
      }
      const float steps = x / conversion.quantization->scale;
      const int32_t zero = conversion.quantization->zero;
      table.push_back(type == DataType::kInt8
                          ? static_cast<uint8_t>(Quantize<int8_t>(steps, zero))
                          : Quantize<uint8_t>(steps, zero));
    }
  }
  return table;
}

void SetSizes(TensorAttr& attr) {
  attr.elements = 1;
  for (uint32_t dim : attr.dims) attr.elements *= dim;
  attr.size = attr.elements * driver::ElementSize(attr.type);
  attr.size_with_stride = attr.size;
}

}  // namespace

std::optional<TensorType> PlainType(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return TensorType::kFloat32;
    case DataType::kInt8:
      return TensorType::kInt8;
    case DataType::kUint8:
      return TensorType::kUint8;
    case DataType::kInt16:
      return TensorType::kInt16;
    case DataType::kUint16:
      return TensorType::kUint16;
    case DataType::kInt32:
      return TensorType::kInt32;
    case DataType::kUint32:
      return TensorType::kUint32;
    case DataType::kInt64:
      return TensorType::kInt64;
    case DataType::kBool:
      return TensorType::kBool;
    case DataType::kUint64:
    case DataType::kFloat64:
      break;
  }
  return std::nullopt;
}

absl::StatusOr<IoPort> IoPort::Make(Direction direction,
                                    const std::string& name, DataType type,
                                    const Shape& shape, const NativeForm& form,
                                    PortConversion conversion) {
  const char* kind = direction == Direction::kInput ? "input" : "output";
  std::optional<TensorType> outer = OuterType(type);
  if (!outer.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat(kind, " '", name, "' is ", DataTypeName(type),
                     ", for which the API has no type"));
  }
  if (shape.size() > driver::kMaxDims) {
    return absl::UnimplementedError(
        absl::StrCat(kind, " '", name, "' has ", shape.size(),
                     " dimensions, the API has room for ", driver::kMaxDims));
  }
  for (int64_t dim : shape) {
    if (dim <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          kind, " '", name, "' of shape ", ShapeText(shape), " is empty"));
    }
  }
  IoPort port;
  port.direction_ = direction;
  port.type_ = type;
  port.shape_ = shape;
  if (!conversion.quantization.has_value()) {
    port.attr_.file_type = conversion.half
                               ? TensorType::kFloat16
                               : PlainType(type).value_or(TensorType::kFloat32);
  }
  const Quantization stands_for =
      conversion.stands_for.value_or(Quantization{});
  if (type == DataType::kInt8 && !conversion.quantization.has_value()) {
    // The vendor's runtime knows no bytes without a scale.
    conversion.quantization = stands_for;
  }
  const bool quantized = conversion.quantization.has_value();
  if (quantized && direction == Direction::kInput) {
    conversion.table = TableOf(conversion, type);
  }
  TensorAttr& attr = port.attr_;
  attr.name = name;
  attr.type = *outer;
  if (quantized) {
    // The NPU knows no other 8-bit numbers: an unsigned one is 128 less.
    attr.type = TensorType::kInt8;
    attr.scale = conversion.quantization->scale;
    attr.zero_point =
        conversion.quantization->zero - (type == DataType::kUint8 ? 128 : 0);
  } else if (type == DataType::kUint8) {
    // The file's own bytes stay what they are.
    attr.scale = stands_for.scale;
    attr.zero_point = stands_for.zero;
  }
  port.conversion_ = std::move(conversion);
  attr.dims.assign(shape.begin(), shape.end());
  if (attr.dims.empty()) attr.dims = {1};
  if (shape.size() == 4) {
    // Inputs are NHWC outside whatever they are inside, but for the two types
    // of which the vendor's guide says (5.2.3, a) that they are NCHW.
    if (direction == Direction::kInput && type != DataType::kBool &&
        type != DataType::kInt64) {
      attr.layout = TensorLayout::kNhwc;
      attr.dims = {attr.dims[0], attr.dims[2], attr.dims[3], attr.dims[1]};
      attr.w_stride = attr.dims[2];
    } else {
      attr.layout = TensorLayout::kNchw;
    }
  }
  SetSizes(attr);
  port.MakeNative(form);
  return port;
}

// Few channels stay side by side, in rows of whole alignments; more of them go
// into blocks. What is neither is filled up at its end.
void IoPort::MakeNative(const NativeForm& form) {
  native_ = attr_;
  alignment_ = form.alignment;
  const auto up = [](uint64_t value, uint64_t to) {
    return (value + to - 1) / to * to;
  };
  if (shape_.size() != 4) {
    native_.size_with_stride = up(native_.size, form.alignment);
    attr_.size_with_stride = native_.size_with_stride;
    return;
  }
  const int64_t channels = shape_[1];
  const bool few = channels == 1 || channels == 3 || channels == 4;
  const bool input = direction_ == Direction::kInput;
  if (input && few && attr_.layout == TensorLayout::kNhwc) {
    native_.w_stride =
        static_cast<uint32_t>(up(attr_.w_stride, form.alignment));
    native_.size_with_stride = native_.size / attr_.w_stride * native_.w_stride;
  } else if (!input || !few) {
    block_ = native_.type == TensorType::kFloat16 ? form.half_block
             : native_.type == TensorType::kInt8  ? form.int8_block
             : native_.type == TensorType::kInt16 ? form.int16_block
                                                  : 0;
  }
  if (block_ != 0) {
    const auto blocks = static_cast<uint32_t>((channels + block_ - 1) /
                                              static_cast<int64_t>(block_));
    native_.layout = TensorLayout::kNc1hwc2;
    native_.w_stride = 0;
    native_.dims = {static_cast<uint32_t>(shape_[0]), blocks,
                    static_cast<uint32_t>(shape_[2]),
                    static_cast<uint32_t>(shape_[3]), block_};
    SetSizes(native_);
  }
  // Memory sized for the native form takes every other one of this type.
  attr_.size_with_stride = std::max(attr_.size, native_.size_with_stride);
}

void IoPort::Repeat(uint32_t slices) {
  slices_ = slices;
  for (TensorAttr* attr : {&attr_, &native_}) {
    attr->dims[0] *= slices;
    attr->elements *= slices;
    attr->size *= slices;
    attr->size_with_stride *= slices;
  }
}

absl::Status IoPort::Refuse(const std::string& what) const {
  return absl::InvalidArgumentError(
      absl::StrCat(direction_ == Direction::kInput ? "input '" : "output '",
                   attr_.name, "': ", what));
}

// The vendor's tables 5-3 (inputs), 5-4 and 5-6 (outputs), by the type that a
// query names.
std::span<const TensorType> IoPort::Takes() const {
  static constexpr TensorType kHalfInput[] = {
      TensorType::kFloat32, TensorType::kFloat16, TensorType::kUint8};
  static constexpr TensorType kHalfOutput[] = {TensorType::kFloat32,
                                               TensorType::kFloat16};
  static constexpr TensorType kByteInput[] = {
      TensorType::kInt8, TensorType::kUint8, TensorType::kFloat32};
  static constexpr TensorType kByteOutput[] = {
      TensorType::kInt8, TensorType::kFloat32, TensorType::kFloat16};
  const bool input = direction_ == Direction::kInput;
  switch (attr_.type) {
    case TensorType::kFloat16:
      if (input) return kHalfInput;
      return kHalfOutput;
    case TensorType::kInt8:
      if (input) return kByteInput;
      return kByteOutput;
    default:
      return {&attr_.type, 1};
  }
}

absl::Status IoPort::CheckType(const TensorFormat& format) const {
  if (format.pass_through) {
    if (format.type == native_.type) return absl::OkStatus();
    return Refuse(
        absl::StrCat("pass_through means the bytes are ",
                     driver::TensorTypeName(native_.type),
                     " already, but type ", static_cast<uint32_t>(format.type),
                     " (", driver::TensorTypeName(format.type), ") is given"));
  }
  const std::span<const TensorType> takes = Takes();
  if (std::find(takes.begin(), takes.end(), format.type) != takes.end()) {
    return absl::OkStatus();
  }
  std::string names;
  for (const TensorType type : takes) {
    absl::StrAppend(&names, names.empty() ? "" : ", ",
                    driver::TensorTypeName(type));
  }
  return Refuse(absl::StrCat("type ", static_cast<uint32_t>(format.type), " (",
                             driver::TensorTypeName(format.type),
                             ") cannot be bound here: use ", names));
}

// Of what is not 4-D. Programs say NCHW of every output, classifiers' 2-D ones
// included: channels before pixels is the model's own order. NHWC is the same
// bytes where there are no pixels behind the channels, or one channel.
bool IoPort::MeansOwnOrder(TensorLayout layout) const {
  if (layout == TensorLayout::kNhwc) {
    const auto extends = [](int64_t dim) { return dim != 1; };
    return shape_.size() <= 2 || shape_[1] == 1 ||
           std::none_of(shape_.begin() + 2, shape_.end(), extends);
  }
  return layout == TensorLayout::kUndefined || layout == TensorLayout::kNchw;
}

absl::Status IoPort::CheckLayout(const TensorFormat& format) const {
  const auto number = static_cast<uint32_t>(format.layout);
  if (number >= driver::kTensorLayoutCount) {
    return Refuse(absl::StrCat("layout ", number, " does not exist"));
  }
  const char* const name = driver::TensorLayoutName(format.layout);
  if (shape_.size() != 4) {
    if (MeansOwnOrder(format.layout)) return absl::OkStatus();
    return Refuse(absl::StrCat(
        "layout ", number, " (", name, ") has no one meaning for a tensor of ",
        shape_.size(), " axes: use UNDEFINED, the model's own order"));
  }
  if (format.layout == TensorLayout::kUndefined) {
    return Refuse(
        "layout 3 (UNDEFINED) is for tensors that are not 4-D: use NHWC or "
        "NCHW");
  }
  if (format.pass_through && format.layout != native_.layout) {
    return Refuse(absl::StrCat("pass_through means the bytes are ",
                               driver::TensorLayoutName(native_.layout),
                               " already, but layout ", number, " (", name,
                               ") is given"));
  }
  if (format.layout == TensorLayout::kNc1hwc2 &&
      native_.layout != TensorLayout::kNc1hwc2) {
    return Refuse(absl::StrCat("layout 2 (NC1HWC2) is not its native one, ",
                               "which is ",
                               driver::TensorLayoutName(native_.layout)));
  }
  return absl::OkStatus();
}

absl::Status IoPort::CheckStrides(const TensorFormat& format) const {
  const auto height = static_cast<uint64_t>(shape_[2]);
  const auto width = static_cast<uint64_t>(shape_[3]);
  const uint64_t w_stride = format.w_stride == 0 ? width : format.w_stride;
  const uint64_t h_stride = format.h_stride == 0 ? height : format.h_stride;
  if (w_stride < width) {
    return Refuse(
        absl::StrCat("w_stride ", w_stride, " is less than the width ", width));
  }
  if (h_stride < height) {
    return Refuse(absl::StrCat("h_stride ", h_stride,
                               " is less than the height ", height));
  }
  if (direction_ == Direction::kOutput) {
    if (w_stride == width && h_stride == height) return absl::OkStatus();
    return Refuse(absl::StrCat("w_stride ", format.w_stride, ", h_stride ",
                               format.h_stride,
                               ": an output has no gaps between its rows, "
                               "leave both 0"));
  }
  const bool aligned = w_stride % alignment_ == 0;
  if (!format.pass_through) {
    if (aligned || w_stride == width) return absl::OkStatus();
    return Refuse(absl::StrCat("w_stride ", w_stride, " is neither the width ",
                               width, " nor a multiple of ", alignment_,
                               " pixels"));
  }
  if (native_.w_stride == 0) {
    if (w_stride == width) return absl::OkStatus();
    return Refuse(absl::StrCat(
        "w_stride ", w_stride, ": pass_through means rows of ", width,
        " pixels without gaps, as RKNN_QUERY_NATIVE_INPUT_ATTR says"));
  }
  // 0: as the NPU has its rows.
  if (aligned || format.w_stride == 0) return absl::OkStatus();
  return Refuse(absl::StrCat("w_stride ", w_stride,
                             ": pass_through means rows of a multiple of ",
                             alignment_, " pixels: use ", native_.w_stride,
                             ", the w_stride of RKNN_QUERY_NATIVE_INPUT_ATTR"));
}

absl::StatusOr<ClientLayout> IoPort::Resolve(const TensorFormat& format) const {
  if (absl::Status status = CheckType(format); !status.ok()) return status;
  if (absl::Status status = CheckLayout(format); !status.ok()) return status;
  ClientLayout layout;
  layout.type = format.type;
  layout.as_is = format.pass_through;
  auto size = static_cast<uint64_t>(driver::ElementSize(format.type));
  if (shape_.size() != 4) {
    if (format.w_stride != 0 || format.h_stride != 0) {
      return Refuse(absl::StrCat("w_stride ", format.w_stride, ", h_stride ",
                                 format.h_stride,
                                 ": only 4-D tensors have rows"));
    }
    layout.width = static_cast<int64_t>(attr_.elements / slices_);
    layout.row = layout.plane = layout.item = layout.width;
    layout.bytes = attr_.elements * size;
    layout.slice_step = layout.slice_bytes = layout.bytes / slices_;
    return layout;
  }
  if (absl::Status status = CheckStrides(format); !status.ok()) return status;
  layout.batch = shape_[0];
  layout.channels = shape_[1];
  layout.height = shape_[2];
  layout.width = shape_[3];
  int64_t groups = 1;
  if (format.layout == TensorLayout::kNchw) {
    layout.group = 1;
    groups = layout.channels;
  } else if (format.layout == TensorLayout::kNc1hwc2 &&
             (direction_ == Direction::kOutput || format.pass_through)) {
    layout.group = block_;
    groups = (layout.channels + block_ - 1) / block_;
  } else {
    // Also an input that a query calls NC1HWC2 and that is not passed through:
    // the vendor's runtime takes pixels then, and makes the blocks itself.
    layout.group = layout.channels;
  }
  int64_t w_stride = format.w_stride;
  if (w_stride == 0) {
    w_stride = format.pass_through && native_.w_stride != 0 ? native_.w_stride
                                                            : layout.width;
  }
  const int64_t h_stride =
      format.h_stride == 0 ? layout.height : format.h_stride;
  layout.pitch = layout.group;
  layout.row = w_stride * layout.pitch;
  // 2^32 rows of 2^32 pixels are no memory's.
  int64_t last = 0;
  bool overflow = __builtin_mul_overflow(layout.row, h_stride, &layout.plane) ||
                  __builtin_mul_overflow(layout.plane, groups, &layout.item) ||
                  __builtin_mul_overflow(layout.item, layout.batch, &last) ||
                  __builtin_mul_overflow(last, int64_t{slices_}, &last) ||
                  last > INT64_MAX / 16;
  if (overflow) {
    return Refuse(absl::StrCat("w_stride ", w_stride, ", h_stride ", h_stride,
                               " make more bytes than there are"));
  }
  // The last row need not be followed by padding.
  int64_t end = (layout.batch - 1) * layout.item + (groups - 1) * layout.plane +
                (layout.height - 1) * layout.row + layout.width * layout.pitch;
  layout.slice_bytes = static_cast<uint64_t>(end) * size;
  layout.slice_step = static_cast<uint64_t>(layout.item * layout.batch) * size;
  layout.bytes = (slices_ - 1) * layout.slice_step + layout.slice_bytes;
  return layout;
}

}  // namespace rknnd::soft
