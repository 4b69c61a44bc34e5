// One input or output of a program: what vendor programs are told about it, and
// which bytes a client may bind to it.

#ifndef DRIVER_SOFT_PLAN_IO_PORT_H_
#define DRIVER_SOFT_PLAN_IO_PORT_H_

#include <cstdint>
#include <optional>
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
  bool as_is = false;  // no mean, no deviation: pass_through
};

// What happens to the numbers of a port on their way: of a quantised port, and
// of an image whose mean and deviation the model takes off itself.
struct PortConversion {
  std::optional<Quantization> quantization;
  // For each channel, or empty: (x - mean) / deviation.
  std::vector<float> mean, deviation;
  // The network itself is NHWC: its channels are the last axis, not axis 1.
  bool channels_last = false;
  // Of a quantised input: what each uint8 becomes, for each channel or once.
  std::vector<uint8_t> table;

  [[nodiscard]] bool normalises() const { return !mean.empty(); }
  // Of an element at `channel` (of axis 1) and `pixel` (of the axes behind it,
  // the last of which has `width`).
  [[nodiscard]] int64_t Channel(int64_t channel, int64_t pixel,
                                int64_t width) const {
    return channels_last ? pixel % width : channel;
  }
  [[nodiscard]] float Normalise(float x, int64_t channel) const {
    const auto c = static_cast<size_t>(channel);
    return (x - mean[c]) / deviation[c];
  }
};

// Thread: any; immutable once made.
class IoPort {
 public:
  // `half_block`: C2 of half precision on this SoC. UNIMPLEMENTED where the C
  // API has no type for it.
  static absl::StatusOr<IoPort> Make(driver::Direction direction,
                                     const std::string& name, DataType type,
                                     const Shape& shape, uint32_t half_block,
                                     PortConversion conversion = {});

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
  [[nodiscard]] absl::Status CheckType(
      const driver::TensorFormat& format) const;
  [[nodiscard]] absl::Status Refuse(const std::string& what) const;

  driver::Direction direction_ = driver::Direction::kInput;
  driver::TensorAttr attr_, native_;
  DataType type_ = DataType::kFloat32;
  Shape shape_;
  uint32_t block_ = 8;  // C2 of its type
  PortConversion conversion_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_IO_PORT_H_
