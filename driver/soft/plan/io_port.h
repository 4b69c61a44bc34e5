// One input or output of a program: what vendor programs are told about it, and
// which bytes a client may bind to it.

#ifndef DRIVER_SOFT_PLAN_IO_PORT_H_
#define DRIVER_SOFT_PLAN_IO_PORT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/device.h"
#include "driver/soft/graph/graph.h"
#include "driver/tensor.h"

namespace rknnd::soft {

// The bytes of one bound tensor as a walk: for each batch item and group of
// channels, rows of pixels. NHWC has one group of all channels, NC1HWC2 groups
// of C2, NCHW (and what is not 4-D) a group for each channel.
struct ClientLayout {
  driver::TensorType type = driver::TensorType::kFloat32;
  int64_t batch = 1, channels = 1, height = 1, width = 1;
  int64_t group = 1;   // channels of a group
  int64_t pitch = 1;   // elements from pixel to pixel
  int64_t row = 0;     // elements from row to row
  int64_t plane = 0;   // elements from group to group
  int64_t item = 0;    // elements from batch item to batch item
  uint64_t bytes = 0;  // from the first to the last element
  // All above but `bytes` is one slice's; where the port has several, one
  // starts so many bytes behind the other and has so many.
  uint64_t slice_step = 0, slice_bytes = 0;
  bool as_is = false;  // no mean, no deviation: pass_through
};

// The C API's type for a value as it is inside; nothing for uint64.
std::optional<driver::TensorType> PlainType(DataType type);

// What happens to the numbers of a port on their way: of a quantised port, and
// of an image whose mean and deviation the model takes off itself.
struct PortConversion {
  std::optional<Quantization> quantization;
  // For each channel, or empty: (x - mean) / deviation.
  std::vector<float> mean, deviation;
  // Of a quantised input: what each uint8 becomes, for each channel or once.
  std::vector<uint8_t> table;
  bool half = false;  // the file's numbers are halves
  // Of a port that the file declares as 8-bit: what its numbers stand for, by
  // the network's nodes.
  std::optional<Quantization> stands_for = {};

  [[nodiscard]] bool normalises() const { return !mean.empty(); }
  [[nodiscard]] float Normalise(float x, int64_t channel) const {
    const auto c = static_cast<size_t>(channel);
    return (x - mean[c]) / deviation[c];
  }
};

// How the SoC wants tensors at its first and last layers: C2 of NC1HWC2 by what
// a channel is, and what the rows of images, and tensors that are not 4-D, are
// filled up to.
struct NativeForm {
  uint32_t half_block = 8, int8_block = 16, int16_block = 8;
  uint32_t alignment = 16;  // pixels of a row; bytes of a tensor

  NativeForm() = default;
  // The others as they are on every SoC so far, where bytes are half a half.
  NativeForm(uint32_t half)  // NOLINT(google-explicit-constructor)
      : half_block(half),
        int8_block(2 * half),
        int16_block(half),
        alignment(2 * half) {}
};

// Thread: any; immutable once made.
class IoPort {
 public:
  // UNIMPLEMENTED where the C API has no type for it.
  static absl::StatusOr<IoPort> Make(driver::Direction direction,
                                     const std::string& name, DataType type,
                                     const Shape& shape, const NativeForm& form,
                                     PortConversion conversion = {});

  // From outside, `slices` tensors one behind the other: the first dimension,
  // which is 1, becomes their number. shape() stays that of one.
  void Repeat(uint32_t slices);

  [[nodiscard]] const driver::TensorAttr& attr() const { return attr_; }
  [[nodiscard]] const driver::TensorAttr& native() const { return native_; }
  [[nodiscard]] DataType type() const { return type_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] const PortConversion& conversion() const { return conversion_; }

  // How memory in `format` is walked, or which number of the format cannot be.
  // An accepted format allocates nothing.
  [[nodiscard]] absl::StatusOr<ClientLayout> Resolve(
      const driver::TensorFormat& format) const;

 private:
  void MakeNative(const NativeForm& form);
  // Element types that memory may have.
  [[nodiscard]] std::span<const driver::TensorType> Takes() const;
  [[nodiscard]] absl::Status CheckType(
      const driver::TensorFormat& format) const;
  [[nodiscard]] bool MeansOwnOrder(driver::TensorLayout layout) const;
  [[nodiscard]] absl::Status CheckLayout(
      const driver::TensorFormat& format) const;
  [[nodiscard]] absl::Status CheckStrides(
      const driver::TensorFormat& format) const;
  [[nodiscard]] absl::Status Refuse(const std::string& what) const;

  driver::Direction direction_ = driver::Direction::kInput;
  driver::TensorAttr attr_, native_;
  DataType type_ = DataType::kFloat32;
  Shape shape_;
  uint32_t slices_ = 1;
  uint32_t block_ = 0;      // C2 of its type; 0: none
  uint32_t alignment_ = 1;  // of rows with gaps, in pixels
  PortConversion conversion_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_IO_PORT_H_
