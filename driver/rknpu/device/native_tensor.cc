#include "driver/rknpu/device/native_tensor.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace rknnd::rknpu {
namespace {

constexpr uint64_t kAtom = 16;
constexpr uint64_t kMostElements = uint64_t{1} << 32;

uint64_t Up(uint64_t number, uint64_t to) {
  return (number + to - 1) / to * to;
}

absl::Status TooFewBytes(const Tensor& tensor) {
  return absl::InvalidArgumentError(
      absl::StrCat("tensor '", tensor.name, "' has ", tensor.bytes,
                   " bytes, its shape needs more"));
}

}  // namespace

absl::StatusOr<NativeTensor> NativeTensor::Make(const Tensor& tensor) {
  NativeTensor made;
  made.element_bytes_ = ElementBytes(tensor.type);
  if (made.element_bytes_ == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", tensor.name, "' has no elements"));
  }
  uint64_t elements = 1;
  for (const uint32_t dim : tensor.shape) {
    if (dim == 0 || dim > kMostElements / elements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", tensor.name, "' is empty, or larger than any memory"));
    }
    elements *= dim;
  }
  made.elements_ = elements;
  uint64_t needed = 0;  // elements in memory
  switch (tensor.layout) {
    case Layout::kPlain:
    case Layout::kNchw:
      made.width_ = made.line_ = elements;
      needed = elements;
      break;
    case Layout::kFeature: {
      if (tensor.shape.size() != 4) {
        return absl::UnimplementedError(
            absl::StrCat("tensor '", tensor.name, "' of ", tensor.shape.size(),
                         " axes is a feature map, which is only known of 4"));
      }
      made.batch_ = tensor.shape[0];
      made.channels_ = tensor.shape[1];
      made.height_ = tensor.shape[2];
      made.width_ = tensor.shape[3];
      const bool is_interleaved =
          tensor.interleaved() && tensor.native_shape[4] == made.channels_;
      if (is_interleaved) {
        made.group_ = made.pixel_ = made.channels_;
        made.line_ = Up(made.width_, 16) * made.channels_;
        made.item_ = made.height_ * made.line_;
        needed = made.batch_ * made.item_;
        break;
      }
      made.group_ = made.pixel_ = kAtom / made.element_bytes_;
      if (tensor.native_shape[4] != made.group_ ||
          tensor.native_shape[1] <
              (made.channels_ + made.group_ - 1) / made.group_) {
        return absl::UnimplementedError(absl::StrCat(
            "tensor '", tensor.name, "' has blocks of ", tensor.native_shape[4],
            " channels, not of ", made.group_, ", or too few of them"));
      }
      const uint64_t pixels = made.height_ * made.width_;
      const uint64_t atoms = tensor.bytes / kAtom;
      if (pixels > atoms || tensor.native_shape[1] > atoms ||
          made.batch_ > atoms) {
        return TooFewBytes(tensor);
      }
      made.line_ = made.width_ * made.group_;
      made.group_step_ = (pixels == 1 ? 1 : Up(pixels, 4)) * made.group_;
      made.item_ = tensor.native_shape[1] * made.group_step_;
      const uint64_t groups = (made.channels_ + made.group_ - 1) / made.group_;
      if (made.item_ > tensor.bytes) return TooFewBytes(tensor);
      needed = (made.batch_ - 1) * made.item_ + groups * made.group_step_;
      break;
    }
    case Layout::kNhwc:
    case Layout::kWeights:
      return absl::UnimplementedError(
          absl::StrCat("tensor '", tensor.name,
                       "' has a layout that is only known of the "
                       "NPU's own steps"));
  }
  if (needed > tensor.bytes / made.element_bytes_) {
    return TooFewBytes(tensor);
  }
  return made;
}

// A distance that no two elements have does not matter.
bool NativeTensor::LiesAt(const Steps& steps) const {
  const bool one_group = channels_ <= group_ && channels_ <= steps.group;
  return (one_group ||
          (steps.group == group_ && steps.groups == group_step_)) &&
         (width_ == 1 || steps.pixel == pixel_) &&
         (height_ == 1 || steps.line == line_) &&
         (batch_ == 1 || steps.item == item_);
}

size_t NativeTensor::extent() const {
  const size_t last =
      (batch_ - 1) * item_ + (channels_ - 1) / group_ * group_step_ +
      (height_ - 1) * line_ + (width_ - 1) * pixel_ + (channels_ - 1) % group_;
  return (last + 1) * element_bytes_;
}

template <class T, class Copy>
void NativeTensor::Walk(Copy&& copy) const {
  size_t dense = 0;
  for (size_t n = 0; n < batch_; ++n) {
    for (size_t c = 0; c < channels_; ++c) {
      const size_t plane = n * item_ + c / group_ * group_step_ + c % group_;
      for (size_t y = 0; y < height_; ++y) {
        size_t place = plane + y * line_;
        for (size_t x = 0; x < width_; ++x, ++dense, place += pixel_) {
          copy(dense * sizeof(T), place * sizeof(T));
        }
      }
    }
  }
}

template <class T>
void NativeTensor::UnpackAs(const std::byte* native, std::byte* dense) const {
  Walk<T>([&](size_t to, size_t from) {
    std::memcpy(dense + to, native + from, sizeof(T));
  });
}

template <class T>
void NativeTensor::PackAs(const std::byte* dense, std::byte* native) const {
  Walk<T>([&](size_t from, size_t to) {
    std::memcpy(native + to, dense + from, sizeof(T));
  });
}

void NativeTensor::Unpack(const std::byte* native, std::byte* dense) const {
  switch (element_bytes_) {
    case 1:
      return UnpackAs<uint8_t>(native, dense);
    case 2:
      return UnpackAs<uint16_t>(native, dense);
    case 4:
      return UnpackAs<uint32_t>(native, dense);
    default:
      return UnpackAs<uint64_t>(native, dense);
  }
}

void NativeTensor::Pack(const std::byte* dense, std::byte* native) const {
  switch (element_bytes_) {
    case 1:
      return PackAs<uint8_t>(dense, native);
    case 2:
      return PackAs<uint16_t>(dense, native);
    case 4:
      return PackAs<uint32_t>(dense, native);
    default:
      return PackAs<uint64_t>(dense, native);
  }
}

}  // namespace rknnd::rknpu
