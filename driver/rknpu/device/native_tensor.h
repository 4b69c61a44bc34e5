// Tensors as the NPU has them in memory, element by element: NC1HWC2, pixels
// side by side in lines of 16, or plain. Conversions of ports and the nodes of
// the CPU go through dense tensors in the model's own order of axes.
//
// Made from the file, checked against the tensor's bytes. Thread: any.

#ifndef DRIVER_RKNPU_DEVICE_NATIVE_TENSOR_H_
#define DRIVER_RKNPU_DEVICE_NATIVE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/rknpu/file/program_file.h"

namespace rknnd::rknpu {

class NativeTensor {
 public:
  // UNIMPLEMENTED: a layout that is not known; INVALID_ARGUMENT: its elements
  // do not fit its bytes.
  static absl::StatusOr<NativeTensor> Make(const Tensor& tensor);

  // All of them dense, row-major, in the order of Tensor::shape.
  void Unpack(const std::byte* native, std::byte* dense) const;
  // What lies between the elements keeps its bytes.
  void Pack(const std::byte* dense, std::byte* native) const;

  // Distances of neighbours, in elements.
  struct Steps {
    size_t group = 1;  // channels that lie side by side
    size_t pixel = 1, line = 0, groups = 0, item = 0;
  };
  // Whether every element lies where it does by these distances.
  [[nodiscard]] bool LiesAt(const Steps& steps) const;
  // Bytes from the first to the last element.
  [[nodiscard]] size_t extent() const;

  [[nodiscard]] size_t elements() const { return elements_; }
  [[nodiscard]] size_t element_bytes() const { return element_bytes_; }
  [[nodiscard]] size_t dense_bytes() const {
    return elements_ * element_bytes_;
  }

 private:
  // Calls `copy(element, place)` for runs of one element.
  template <class T, class Copy>
  void Walk(Copy&& copy) const;
  template <class T>
  void UnpackAs(const std::byte* native, std::byte* dense) const;
  template <class T>
  void PackAs(const std::byte* dense, std::byte* native) const;

  size_t elements_ = 0, element_bytes_ = 1;
  // Axes N, C, H, W; distances in elements. A channel lies (c / group) groups
  // and (c % group) elements from the first one.
  size_t batch_ = 1, channels_ = 1, height_ = 1, width_ = 1;
  size_t group_ = 1, group_step_ = 0, item_ = 0, line_ = 0, pixel_ = 1;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_DEVICE_NATIVE_TENSOR_H_
